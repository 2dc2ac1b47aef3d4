// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// atomics.cc -- commands that use remote atomics many times, as many clients do at once

#include "peer.hh"

#include <cstring>

namespace {

// Words of this side: the result of an atomic, and the number that the lock guards.
enum { BEFORE = 0, NUMBER = 8 };

// rmr=: a lock at roff=, and behind it a number. mr=: 16 bytes of this side.
class Words {
  public:
    explicit Words(const Args &args)
        : conn_(the_conn(args)), cq_(the_queue(args)), mr_(the_mr(args)),
          base_(world.memory[args.slot("mr", MAX_REGIONS)].base), remote_(the_remote(args)),
          roff_(args.number_or("roff", 0)) {}

    uint64_t word(size_t offset) const {
        uint64_t word;
        memcpy(&word, base_ + offset, sizeof(word));
        return word;
    }

    rpma_work atomic(rpma_work_type type, uint64_t compare, uint64_t value) const {
        rpma_work work = operation(type, BEFORE);
        work.compare = compare;
        work.value = value;
        return work;
    }

    // Posts the operations and waits for the last one, which has a completion.
    void perform(std::initializer_list<rpma_work> works) const {
        ibv_wc wc;
        must(rpma_post(conn_, works.begin(), static_cast<uint32_t>(works.size()), nullptr));
        await_completion(cq_, &wc);
    }

    // Takes the lock, adds 1 to the number by a read and a write, and gives the lock back.
    void add_under_lock(uint64_t owner) const {
        do
            perform({atomic(RPMA_WORK_COMPARE_SWAP, 0, owner)});
        while (word(BEFORE) != 0);
        perform({operation(RPMA_WORK_READ, NUMBER)});
        const uint64_t number = word(NUMBER) + 1;
        memcpy(base_ + NUMBER, &number, sizeof(number));
        rpma_work store = operation(RPMA_WORK_WRITE, NUMBER);
        store.flags = RPMA_F_COMPLETION_ON_ERROR;
        perform({store, atomic(RPMA_WORK_COMPARE_SWAP, owner, 0)});
        must_be(word(BEFORE) == owner, ERR_MISMATCH);
    }

  private:
    // With the same word here and there.
    rpma_work operation(rpma_work_type type, size_t offset) const {
        rpma_work work = {};
        work.type = type;
        work.remote = remote_;
        work.remote_offset = roff_ + offset;
        work.local = {mr_, offset, sizeof(uint64_t)};
        work.flags = RPMA_F_COMPLETION_ALWAYS;
        return work;
    }

    rpma_conn *conn_;
    rpma_cq *cq_;
    rpma_mr_local *mr_;
    char *base_;
    rpma_mr_remote *remote_;
    size_t roff_;
};

// Adds 1, times= times. Each result is above the one before.
void count(const Args &args) {
    const Words words(args);
    uint64_t above = 0;
    for (uint64_t i = args.number("times"); i > 0; i--) {
        words.perform({words.atomic(RPMA_WORK_FETCH_ADD, 0, 1)});
        const uint64_t result = words.word(BEFORE);
        if (result < above) {
            reply("result", result);
            reply("above", above);
            throw Failed{ERR_MISMATCH};
        }
        above = result + 1;
    }
}

void guard(const Args &args) {
    const Words words(args);
    for (uint64_t i = args.number("times"); i > 0; i--)
        words.add_under_lock(args.number("owner"));
}

const Commands here{{"count", count}, {"guard", guard}};

} // namespace
