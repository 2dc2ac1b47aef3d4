// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// crowd.cc -- commands of a client with many connections to a server that executes "serve"

#include "crowd.hh"

#include "peer.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

namespace {

// Kinds of steps that a member executes.
enum { WRITES = 1 << 0, ATOMIC_WRITES = 1 << 1, MESSAGES = 1 << 2, ALL_KINDS = (1 << 3) - 1 };

// A member's memory in region 0: data to write, data read back, messages to send and received.
constexpr size_t BACK = SHARE, SEND_AT = 2 * SHARE, RECV_AT = SEND_AT + MESSAGE;
constexpr size_t ROOM_SIZE = RECV_AT + MESSAGE;

// A connection that checks all its data.
class Member {
  public:
    explicit Member(size_t number);

    // Fills its share with its own pattern and exchanges a message.
    void fill_and_exchange();
    // Executes one of these kinds of steps, at random.
    void execute_random(int kinds, bool without_imm);

    rpma_conn *conn() const { return conn_; }
    int executed_kinds() const { return executed_kinds_; }
    uint64_t rounds() const { return rounds_; }

  private:
    size_t pick(size_t below) { return random_() % below; }
    ibv_wc finish() { return await_completion(cq_); }
    char *at(size_t offset) const { return &fixture.memory[0][room_ + offset]; }
    area bytes(size_t offset, size_t len) const {
        return fixture.memory[0].subspan(room_ + offset, len);
    }
    void write_pattern(size_t roff, size_t len);
    void write_atomically();
    void read_back(size_t roff, const char *wanted, size_t len);
    void exchange(bool without_imm);

    rpma_conn *conn_;
    rpma_cq *cq_ = nullptr;
    std::minstd_rand random_;
    size_t room_;            // offset of its memory in region 0
    uint64_t seed_;          // of the next pattern; initially the member's number at the server
    size_t share_;           // offset of its share in the server
    int executed_kinds_ = 0; // kinds of steps executed so far
    uint64_t rounds_ = 0;
};

std::vector<Member> crowd; // member n has connection n

// The private data of the reply has the number at the server, then the region's descriptor. If
// region 0 is too small for all members, all use the memory of the first.
Member::Member(size_t number)
    : conn_(fixture.conn[number]), random_(static_cast<unsigned>(number)),
      room_((number + 1) * ROOM_SIZE <= fixture.memory[0].size() ? number * ROOM_SIZE : 0) {
    const rpma_conn_private_data pdata = get(rpma_conn_get_private_data, conn_);
    uint32_t own;
    require(pdata.len > sizeof(own), ERR_MISMATCH);
    memcpy(&own, pdata.ptr, sizeof(own));
    seed_ = own;
    share_ = own * SHARE;
    if (fixture.remote[0] == nullptr)
        must(rpma_mr_remote_from_descriptor(static_cast<char *>(pdata.ptr) + sizeof(own),
                                            pdata.len - sizeof(own), &fixture.remote[0]));
    cq_ = queue_of(conn_);
}

// Reads len bytes at roff back and compares them with the written data.
void Member::read_back(size_t roff, const char *wanted, size_t len) {
    memset(at(BACK), 0, len);
    must(rpma_read(conn_, fixture.mr[0], room_ + BACK, fixture.remote[0], share_ + roff, len,
                   RPMA_F_COMPLETION_ALWAYS, nullptr));
    finish();
    require(memcmp(at(BACK), wanted, len) == 0, ERR_MISMATCH);
}

void Member::write_pattern(size_t roff, size_t len) {
    pattern_fill(bytes(0, len), seed_);
    must(rpma_write(conn_, fixture.remote[0], share_ + roff, fixture.mr[0], room_, len,
                    RPMA_F_COMPLETION_ON_ERROR, nullptr));
    must(rpma_flush(conn_, fixture.remote[0], share_ + roff, len, RPMA_FLUSH_TYPE_VISIBILITY,
                    RPMA_F_COMPLETION_ALWAYS, nullptr));
    finish();
    read_back(roff, at(0), len);
}

void Member::write_atomically() {
    char word[RPMA_ATOMIC_WRITE_ALIGNMENT];
    const size_t roff = pick(SHARE / sizeof(word)) * sizeof(word);
    pattern_fill(word, seed_);
    must(rpma_atomic_write(conn_, fixture.remote[0], share_ + roff, word,
                           RPMA_F_COMPLETION_ALWAYS, nullptr));
    finish();
    read_back(roff, word, sizeof(word));
}

// The server echoes the message or the immediate data.
void Member::exchange(bool without_imm) {
    const size_t len = pick(MESSAGE) + 1;
    const bool with_imm = pick(2) != 0 && !without_imm;
    const uint32_t imm = static_cast<uint32_t>(seed_);
    pattern_fill(bytes(SEND_AT, len), seed_);
    memset(at(RECV_AT), 0, len);
    must(rpma_recv(conn_, fixture.mr[0], room_ + RECV_AT, MESSAGE, nullptr));
    must(send(conn_, fixture.mr[0], room_ + SEND_AT, len, with_imm, imm));
    ibv_wc received = finish();
    if (const ibv_wc other = finish(); (other.opcode & IBV_WC_RECV) != 0)
        received = other;
    require(received.byte_len == len && memcmp(at(SEND_AT), at(RECV_AT), len) == 0 &&
                ((received.wc_flags & IBV_WC_WITH_IMM) != 0) == with_imm &&
                (!with_imm || ntohl(received.imm_data) == imm),
            ERR_MISMATCH);
}

void Member::fill_and_exchange() {
    write_pattern(0, SHARE);
    exchange(false);
}

void Member::execute_random(int kinds, bool without_imm) {
    int kind;
    do
        kind = 1 << pick(3);
    while ((kinds & kind) == 0);
    seed_++;
    if (kind == WRITES) {
        const size_t len = pick(SHARE) + 1;
        write_pattern(pick(SHARE - len + 1), len);
    } else if (kind == ATOMIC_WRITES) {
        write_atomically();
    } else {
        exchange(without_imm);
    }
    rounds_++;
    executed_kinds_ |= kind;
}

// Runs work(n) in count threads. Throws the first failure after all threads have ended.
void run_in_threads(size_t count, const std::function<void(size_t)> &work) {
    std::optional<Failed> first;
    std::mutex mutex;
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < count; i++)
        threads.emplace_back([&, i] {
            try {
                work(i);
            } catch (const Failed &failed) {
                const std::lock_guard locked(mutex);
                if (!first)
                    first = failed;
            }
        });
    threads.clear();
    if (first)
        throw Failed(*first);
}

// Calls work for each member, with threads=1 in a thread per member.
void for_each_member(const Args &args, size_t count, const std::function<void(size_t)> &work) {
    if (args.is("threads"))
        run_in_threads(count, work);
    else
        for (size_t i = 0; i < count; i++)
            work(i);
}

// Establishes count= connections.
void connect_all(const Args &args) {
    const size_t count = args.below(MAX_CONNS + 1, "count");
    for_each_member(args, count, [&](size_t number) {
        fixture.conn[number] = connect_to(args);
        await_event(fixture.conn[number], RPMA_CONN_ESTABLISHED);
    });
    for (crowd.clear(); crowd.size() < count;)
        crowd.emplace_back(crowd.size());
}

void fill_and_exchange(const Args &) {
    std::ranges::for_each(crowd, &Member::fill_and_exchange);
}

// Runs one thread per connection. imm=0: without immediate data; atomic=0: without atomic
// writes; apart=1: every second thread only exchanges messages, and the others do everything
// else.
void load_in_threads(const Args &args) {
    const Clock clock;
    const ScopeExit report{[&] {
        for (size_t i = 0; i < crowd.size(); i++)
            reply("rounds" + std::to_string(i), crowd[i].rounds());
    }};
    run_in_threads(crowd.size(), [&](size_t i) {
        int kinds = args.number<bool>("atomic", true) ? ALL_KINDS : ALL_KINDS & ~ATOMIC_WRITES;
        if (args.is("apart"))
            kinds &= i % 2 == 0 ? ~MESSAGES : MESSAGES;
        // On a busy machine the time may end before each kind has been executed once.
        while (crowd[i].executed_kinds() != kinds || clock.ms() < args.number<int64_t>("ms"))
            crowd[i].execute_random(kinds, !args.number<bool>("imm", true));
    });
}

// Ends every connection from this side.
void end(const Args &args) {
    for (const Member &member : crowd)
        must(rpma_conn_disconnect(member.conn()));
    for_each_member(args, crowd.size(), [](size_t number) {
        await_event(fixture.conn[number], RPMA_CONN_CLOSED);
        must(rpma_conn_delete(&fixture.conn[number]));
    });
    must(rpma_mr_remote_delete(&fixture.remote[0]));
    crowd = std::vector<Member>(); // frees the memory, because the test compares the heap
}

const Commands here{
    {"crowd", connect_all},
    {"crowd-exchange", fill_and_exchange},
    {"crowd-in-threads", load_in_threads},
    {"crowd-end", end},
};

} // namespace

int send(rpma_conn *conn, rpma_mr_local *mr, size_t at, size_t len, bool with_imm,
         uint32_t imm) {
    return with_imm
               ? rpma_send_with_imm(conn, mr, at, len, RPMA_F_COMPLETION_ALWAYS, imm, nullptr)
               : rpma_send(conn, mr, at, len, RPMA_F_COMPLETION_ALWAYS, nullptr);
}
