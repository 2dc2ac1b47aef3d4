// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load.cc -- commands that work on many connections or with many operations at once

#include "load.hh"

#include <arpa/inet.h>
#include <cstring>

void send(rpma_conn *conn, rpma_mr_local *mr, size_t at, size_t len, bool with_imm,
          uint32_t imm) {
    must(with_imm
             ? rpma_send_with_imm(conn, mr, at, len, RPMA_F_COMPLETION_ALWAYS, imm, nullptr)
             : rpma_send(conn, mr, at, len, RPMA_F_COMPLETION_ALWAYS, nullptr));
}

ibv_wc Worker::finish() {
    ibv_wc wc = {};
    const AtEnd noted{[&] { status = wc.status; }};
    await_completion(cq, &wc);
    return wc;
}

// Reads len bytes at roff back and compares them with what was written.
void Worker::read_back(size_t roff, const char *wanted, size_t len) {
    memset(base + BACK, 0, len);
    must(rpma_read(conn, mr, BACK, remote, share + roff, len, RPMA_F_COMPLETION_ALWAYS,
                   nullptr));
    finish();
    must_be(memcmp(base + BACK, wanted, len) == 0, ERR_MISMATCH);
}

void Worker::write_pattern(size_t roff, size_t len, uint64_t number) {
    pattern_fill(base, len, number);
    must(rpma_write(conn, remote, share + roff, mr, 0, len, RPMA_F_COMPLETION_ON_ERROR,
                    nullptr));
    must(rpma_flush(conn, remote, share + roff, len, RPMA_FLUSH_TYPE_VISIBILITY,
                    RPMA_F_COMPLETION_ALWAYS, nullptr));
    finish();
    read_back(roff, base, len);
}

void Worker::write_atomically() {
    char word[RPMA_ATOMIC_WRITE_ALIGNMENT];
    const size_t roff = pick(REMOTE / sizeof(word)) * sizeof(word);
    pattern_fill(word, sizeof(word), ++seed);
    must(
        rpma_atomic_write(conn, remote, share + roff, word, RPMA_F_COMPLETION_ALWAYS, nullptr));
    finish();
    read_back(roff, word, sizeof(word));
}

void Worker::exchange() {
    const size_t len = pick(MESSAGE) + 1;
    const bool with_imm = pick(2) != 0 && !without_imm;
    const uint32_t imm = static_cast<uint32_t>(++seed);
    pattern_fill(base + SEND_AT, len, seed);
    memset(base + RECV_AT, 0, len);
    must(rpma_recv(conn, mr, RECV_AT, MESSAGE, nullptr));
    ::send(conn, mr, SEND_AT, len, with_imm, imm);
    ibv_wc received = finish();
    if (const ibv_wc other = finish(); (other.opcode & IBV_WC_RECV) != 0)
        received = other;
    must_be(received.byte_len == len && memcmp(base + SEND_AT, base + RECV_AT, len) == 0 &&
                ((received.wc_flags & IBV_WC_WITH_IMM) != 0) == with_imm &&
                (!with_imm || ntohl(received.imm_data) == imm),
            ERR_MISMATCH);
}

void Worker::say_goodbye() {
    ::send(conn, nullptr, 0, 0, false, 0);
    finish();
}

void Worker::any_operation() {
    static const char *const names[] = {"write-and-flush", "atomic-write", "exchange"};
    size_t step;
    do
        step = pick(std::size(names));
    while ((without & 1 << step) != 0);
    doing = names[step];
    if (step == 0) {
        const size_t len = pick(REMOTE) + 1;
        write_pattern(pick(REMOTE - len + 1), len, ++seed);
    } else if (step == 1) {
        write_atomically();
    } else {
        exchange();
    }
    rounds++;
    tried |= 1 << step;
}

// Posts the next receive before the answer, which lets the other side send again.
void Worker::echo() {
    for (;;) {
        const ibv_wc wc = finish();
        if ((wc.opcode & IBV_WC_RECV) == 0)
            continue;
        if (wc.byte_len == 0)
            return;
        must(rpma_recv(conn, mr, echo_at(rounds + 1), MESSAGE, nullptr));
        ::send(conn, mr, echo_at(rounds), wc.byte_len, (wc.wc_flags & IBV_WC_WITH_IMM) != 0,
               ntohl(wc.imm_data));
        rounds++;
    }
}

namespace {

// Thread n uses connection, local and remote region n. imm=0: no immediate data; atomic=0: no
// atomic write; apart=1: every second thread only exchanges messages, and the others do all the
// rest.
void run_threads(const Args &args, void run(const Args &, Worker &)) {
    std::vector<Worker> workers(args.slot("threads", MAX_OTHERS + 1));
    for (size_t i = 0; i < workers.size(); i++) {
        Worker &w = workers[i];
        w.conn = world.conn[i];
        w.cq = queue_of(w.conn);
        w.mr = world.mr[i];
        w.remote = world.remote[i];
        w.base = world.memory[i].base;
        w.without_imm = args.number_or("imm", 1) == 0;
        w.without = args.number_or("atomic", 1) == 0 ? ATOMIC_WRITES : 0;
        if (args.is("apart"))
            w.without |= i % 2 == 0 ? MESSAGES : WRITES | ATOMIC_WRITES;
        w.random.seed(static_cast<unsigned>(i) + 1);
        w.seed = i << 24;
    }
    const AtEnd told{[&] {
        for (size_t i = 0; i < workers.size(); i++)
            reply("rounds" + std::to_string(i), workers[i].rounds);
    }};
    in_threads(workers.size(), [&](size_t i) {
        try {
            run(args, workers[i]);
        } catch (const Failed &failed) {
            fprintf(stderr, "peer: thread %zu: %s: %s, status %d\n", i, workers[i].doing,
                    code_name(failed.code), workers[i].status);
            throw;
        }
    });
}

void load(const Args &args) {
    run_threads(args, [](const Args &args_of_all, Worker &w) {
        const int64_t deadline =
            now_ms() + 1000 * static_cast<int64_t>(args_of_all.number_or("seconds", 0));
        // On a busy machine the time may be over before a kind has had its first turn.
        while ((w.tried | w.without) != EVERY_STEP || now_ms() < deadline)
            w.any_operation();
        w.say_goodbye();
    });
}

// Writes count= blocks, each to its own place, with at most window= of them outstanding. With
// last=1 an event of the connection ends the load, because no completion need follow.
void write_blocks(const Args &args) {
    rpma_conn *conn = the_conn(args);
    rpma_cq *cq = queue_of(conn);
    const uint64_t count = args.number("count"), window = args.number("window");
    const size_t len = args.number("len");
    const int64_t began = now_ms();
    ibv_wc wc = {};
    uint64_t posted = 0, done = 0;
    const AtEnd told{[&] {
        reply("done", done);
        reply("ms", now_ms() - began);
        reply("status", int{wc.status});
    }};
    while (done < count) {
        if (posted < count && posted - done < window) {
            must(rpma_write(conn, the_remote(args), posted * len, the_mr(args), posted * len,
                            len, RPMA_F_COMPLETION_ALWAYS,
                            reinterpret_cast<const void *>(posted)));
            posted++;
            continue;
        }
        must_be(await_either(conn, cq, &wc, args.is("last")), RPMA_E_PROVIDER);
        must_be(wc.wr_id == done, ERR_MISMATCH);
        done++;
    }
}

const Commands here{
    {"load", load},
    {"echo",
     [](const Args &args) { run_threads(args, [](const Args &, Worker &w) { w.echo(); }); }},
    {"write-blocks", write_blocks},
};

} // namespace
