// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// line.cc -- commands for many connections whose completions stand in one queue of the program
//
// Connection number n of the client is number n of the server. In a turn the client writes into
// its share of the server's region and sends a message, and the server sends one back. Both
// sides attribute each completion by its queue pair and check that it is the connection's next.

#include "peer.hh"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace {

constexpr size_t WORD = 8;                // bytes of all that is written or sent
constexpr uint32_t WRITES = 4;            // of a turn; a share has these words,
constexpr uint32_t OUT = WRITES;          // what is sent,
constexpr uint32_t IN = OUT + 1;          // and two places for what is received, by turns
constexpr size_t SHARE = (IN + 2) * WORD; // bytes
constexpr uint32_t BYE = 0xfffffff;       // turn number of the client's last message
constexpr uint32_t ECHO = OUT + 1;        // marks what the server sends
constexpr uint64_t WAKE_UP = UINT64_MAX;

struct Place {
    uint64_t posted = 0, completed = 0; // operations of the send queue
    uint32_t heard = 0;                 // messages
    uint32_t turns = 0, answered = 0;   // turns begun, and of the client: turns answered
    bool said_bye = false;
};

struct Line {
    std::vector<Place> places;
    std::unordered_map<uint32_t, uint32_t>
        owners; // numbers of connections by those of queue pairs
    std::mutex mutex;
    bool is_client;
    uint64_t begun, wanted; // turns of all connections
    size_t left;            // connections that have sent their last message
    uint64_t outstanding;   // operations of all send queues
} line;

uint64_t word(uint32_t number, uint32_t turn, uint32_t which) {
    return uint64_t{number + 1} << 32 | turn << 4 | which;
}

size_t at(uint32_t number, size_t which) {
    return number * SHARE + which * WORD;
}

uint64_t &word_at(uint32_t number, size_t which) {
    return reinterpret_cast<uint64_t &>(world.memory[0][at(number, which)]);
}

// ---- connections -------------------------------------------------------------------------

void receive(uint32_t number, uint32_t slot) {
    must(rpma_recv(world.conn[number], world.mr[0], at(number, IN + slot), WORD,
                   context_of(slot)));
}

void line_up(uint32_t number, rpma_conn *conn) {
    world.conn[number] = conn;
    line.owners[get(rpma_conn_get_qp_num, conn)] = number;
    receive(number, 0);
    receive(number, 1);
}

void accept(const Args &args) {
    line.places.assign(args.below(MAX_CONNS + 1, "count"), {});
    line.owners.clear();
    for (size_t i = 0; i < line.places.size(); i++) {
        ScopedReq req;
        rpma_conn *conn = nullptr;
        must(rpma_ep_next_conn_req(world.ep, the_cfg(args), &req.it));
        const uint32_t number = number_of(get(rpma_conn_req_get_private_data, req.it));
        must_be(number < line.places.size(), ERR_MISMATCH);
        must(rpma_conn_req_connect(&req.it, nullptr, &conn));
        line_up(number, conn);
    }
    for (size_t i = 0; i < line.places.size(); i++)
        await_event(world.conn[i], RPMA_CONN_ESTABLISHED);
}

void connect(const Args &args) {
    line.places.assign(args.below(MAX_CONNS + 1, "count"), {});
    line.owners.clear();
    for (uint32_t i = 0; i < line.places.size(); i++) {
        std::vector<unsigned char> number = number_as_data(i);
        const rpma_conn_private_data pdata = private_data(number);
        line_up(i, connect_to(args, the_cfg(args), &pdata));
        await_event(world.conn[i], RPMA_CONN_ESTABLISHED);
    }
}

// The client disconnects, and the server finishes that.
void end(const Args &args) {
    const std::span conns(world.conn, line.places.size());
    for (size_t i = 0; args.is("begins") && i < conns.size(); i++)
        must(rpma_conn_disconnect(conns[i]));
    for (rpma_conn *&conn : conns) {
        await_event(conn, RPMA_CONN_CLOSED);
        if (!args.is("begins"))
            must(rpma_conn_disconnect(conn));
        must(rpma_conn_delete(&conn));
    }
}

// ---- turns: all with the mutex held ------------------------------------------------------

const void *next_context(uint32_t number) {
    line.outstanding++;
    return context_of(line.places[number].posted++);
}

void say(uint32_t number, uint64_t text) {
    word_at(number, OUT) = text;
    must(rpma_send(world.conn[number], world.mr[0], at(number, OUT), WORD,
                   RPMA_F_COMPLETION_ALWAYS, next_context(number)));
}

void begin_turn(uint32_t number) {
    const uint32_t turn = ++line.places[number].turns;
    line.begun++;
    for (uint32_t i = 0; i < WRITES; i++) {
        word_at(number, i) = word(number, turn, i);
        must(rpma_write(world.conn[number], world.remote[0], at(number, i), world.mr[0],
                        at(number, i), WORD, RPMA_F_COMPLETION_ALWAYS, next_context(number)));
    }
    say(number, word(number, turn, OUT));
}

// A turn of the client ends when its operations have completed and the answer has arrived.
void go_on(uint32_t number) {
    Place &place = line.places[number];
    if (!line.is_client || place.completed < place.posted || place.answered < place.turns)
        return;
    if (place.said_bye) {
        line.left++;
    } else if (line.begun < line.wanted) {
        begin_turn(number);
    } else {
        place.said_bye = true;
        say(number, word(number, BYE, OUT));
    }
}

// Fails unless it holds, and says what was found.
void check(bool holds, const char *what, const ibv_wc &wc, uint64_t found) {
    if (holds)
        return;
    reply("what", what);
    reply("qp", wc.qp_num);
    reply("status", int{wc.status});
    reply("ctx", wc.wr_id);
    reply("found", found);
    throw Failed{ERR_MISMATCH};
}

// A message of the client proves that its writes of the same turn have arrived.
void answer_turn(uint32_t number, const ibv_wc &wc, uint64_t text) {
    const uint32_t turn = ++line.places[number].turns;
    check(text == word(number, turn, OUT), "message", wc, text);
    for (uint32_t i = 0; i < WRITES; i++)
        check(word_at(number, i) == word(number, turn, i), "written", wc, word_at(number, i));
    say(number, word(number, turn, ECHO));
}

void hear(uint32_t number, const ibv_wc &wc) {
    Place &place = line.places[number];
    const uint32_t slot = place.heard++ % 2;
    const uint64_t text = word_at(number, IN + slot);
    check(wc.wr_id == slot && wc.byte_len == WORD, "receive", wc, slot);
    receive(number, slot);
    if (line.is_client)
        check(++place.answered == place.turns && text == word(number, place.turns, ECHO),
              "answer", wc, text);
    else if (text == word(number, BYE, OUT))
        line.left++;
    else
        answer_turn(number, wc, text);
}

void attribute(const ibv_wc &wc) {
    check(wc.status == IBV_WC_SUCCESS, "failed", wc, 0);
    if (wc.wr_id == WAKE_UP)
        return;
    const auto owner = line.owners.find(wc.qp_num);
    check(owner != line.owners.end(), "unknown", wc, 0);
    Place &place = line.places[owner->second];
    if ((wc.opcode & IBV_WC_RECV) != 0) {
        hear(owner->second, wc);
    } else {
        check(wc.wr_id == place.completed, "order", wc, place.completed);
        place.completed++;
        line.outstanding--;
    }
    go_on(owner->second);
}

// Waits for the queue and empties it; the wake-up may have been stale. Returns whether all is
// done.
bool wait_and_drain(rpma_cq *cq) {
    ibv_wc wc[16];
    int got = 0, code = rpma_cq_wait(cq);
    const std::lock_guard locked(line.mutex);
    if (code == 0 || code == RPMA_E_NO_COMPLETION)
        while ((code = rpma_cq_get_wc(cq, 16, wc, &got)) == 0)
            std::for_each_n(wc, got, attribute);
    must_be(code == RPMA_E_NO_COMPLETION, code);
    return line.left == line.places.size() && line.outstanding == 0;
}

// ---- waiting -----------------------------------------------------------------------------

// One thread waits for one or two queues among other descriptors.
void wait_by_epoll() {
    for (uint64_t i = 0; i < 2 && world.lent[i] != nullptr; i++) {
        const int fd = get(rpma_cq_get_fd, world.lent[i]);
        make_nonblocking(fd);
        watch(fd, i);
    }
    for (bool is_done = false; !is_done;)
        for (const uint64_t i : ready_ones(PATIENCE_MS))
            is_done = wait_and_drain(world.lent[i]);
}

// One of several threads, each of which blocks. The first to see the end wakes another one up.
void wait_by_blocking(size_t, const std::atomic<bool> &) {
    const AtEnd woken{[] {
        (void)rpma_write(world.conn[0], nullptr, 0, nullptr, 0, 0, RPMA_F_COMPLETION_ALWAYS,
                         context_of(WAKE_UP));
    }};
    while (!wait_and_drain(world.lent[0])) {
    }
}

// turns=: the client stops after so many on all connections; the server answers until all have
// said bye. Answers with the least and the most turns that a connection had.
void take_turns(const Args &args) {
    const size_t threads = args.number("threads", 0);
    line.wanted = args.number("turns", 0);
    line.is_client = line.wanted > 0;
    line.begun = line.left = line.outstanding = 0;
    for (Place &place : line.places) {
        place.turns = place.answered = 0;
        place.said_bye = false;
    }
    const AtEnd told{[] {
        const auto [least, most] = std::ranges::minmax(line.places, {}, &Place::turns);
        reply("turns", line.begun);
        reply("left", line.left);
        reply("outstanding", line.outstanding);
        reply("least", least.turns);
        reply("most", most.turns);
    }};
    for (uint32_t i = 0; i < line.places.size(); i++)
        go_on(i);
    if (threads > 0)
        in_threads(threads, wait_by_blocking);
    else
        wait_by_epoll();
}

const Commands here{
    {"line-accept", accept},
    {"line-connect", connect},
    {"line", take_turns},
    {"line-end", end},
};

} // namespace
