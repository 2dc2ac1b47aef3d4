// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// line.cc -- commands for many connections whose completions stand in one queue of the program
//
// Connection number n of the client is number n of the server. In a turn the client writes into
// its share of the server's region and sends a message, and the server sends one back. Both
// sides attribute each completion by its queue pair and check that it is the connection's next.

#include "peer.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <mutex>
#include <sys/epoll.h>
#include <unistd.h>
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
    uint32_t received = 0;              // messages
    uint32_t turns = 0, answered = 0;   // turns begun, and of the client: turns answered
    bool said_bye = false;
};

struct Line {
    std::vector<Place> places;
    std::unordered_map<uint32_t, uint32_t>
        owners;        // numbers of connections by those of queue pairs
    rpma_cq *queue[2]; // the second one for receives, or NULL
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

uint64_t *words(uint32_t number) {
    return reinterpret_cast<uint64_t *>(world.memory[0].base + at(number, 0));
}

const void *context(uint64_t number) {
    return reinterpret_cast<const void *>(number);
}

// ---- connections -------------------------------------------------------------------------

void begin(const Args &args) {
    line.places.assign(args.slot("count", MAX_CONNS + 1), {});
    line.owners.clear();
    line.left = line.begun = line.outstanding = 0;
}

void line_up(rpma_conn_req **req, uint32_t number, const rpma_conn_private_data *pdata) {
    uint32_t qp_num = 0;
    must_be(number < line.places.size(), ERR_MISMATCH);
    for (uint32_t i = 0; i < 2; i++)
        must(rpma_conn_req_recv(*req, world.mr[0], at(number, IN + i), WORD, context(i)));
    must(rpma_conn_req_connect(req, pdata, &world.conn[number]));
    must(rpma_conn_get_qp_num(world.conn[number], &qp_num));
    line.owners[qp_num] = number;
}

void accept(const Args &args) {
    begin(args);
    for (size_t i = 0; i < line.places.size(); i++) {
        ScopedReq req;
        rpma_conn_private_data pdata = {};
        uint32_t number = 0;
        must(rpma_ep_next_conn_req(world.ep, world.cfg[args.slot("cfg", MAX_OTHERS)], &req.it));
        must(rpma_conn_req_get_private_data(req.it, &pdata));
        must_be(pdata.len >= sizeof(number), ERR_MISMATCH);
        memcpy(&number, pdata.ptr, sizeof(number));
        line_up(&req.it, ntohl(number), nullptr);
    }
    for (size_t i = 0; i < line.places.size(); i++)
        await_event(world.conn[i], RPMA_CONN_ESTABLISHED);
}

void connect(const Args &args) {
    begin(args);
    for (uint32_t i = 0; i < line.places.size(); i++) {
        ScopedReq req;
        uint32_t number = htonl(i);
        const rpma_conn_private_data pdata = {&number, sizeof(number)};
        must(rpma_conn_req_new(world.peer, args.text("addr").c_str(), args.text("port").c_str(),
                               world.cfg[args.slot("cfg", MAX_OTHERS)], &req.it));
        line_up(&req.it, i, &pdata);
        await_event(world.conn[i], RPMA_CONN_ESTABLISHED);
    }
}

// The client disconnects, and the server finishes that.
void end(const Args &args) {
    for (size_t i = 0; args.is("begins") && i < line.places.size(); i++)
        must(rpma_conn_disconnect(world.conn[i]));
    for (size_t i = 0; i < line.places.size(); i++) {
        await_event(world.conn[i], RPMA_CONN_CLOSED);
        if (!args.is("begins"))
            must(rpma_conn_disconnect(world.conn[i]));
        must(rpma_conn_delete(&world.conn[i]));
    }
}

// ---- turns: all with the mutex held ------------------------------------------------------

void say(uint32_t number, uint64_t text) {
    words(number)[OUT] = text;
    line.outstanding++;
    must(rpma_send(world.conn[number], world.mr[0], at(number, OUT), WORD,
                   RPMA_F_COMPLETION_ALWAYS, context(line.places[number].posted++)));
}

void begin_turn(uint32_t number) {
    Place &place = line.places[number];
    const uint32_t turn = ++place.turns;
    line.begun++;
    for (uint32_t i = 0; i < WRITES; i++) {
        words(number)[i] = word(number, turn, i);
        line.outstanding++;
        must(rpma_write(world.conn[number], world.remote[0], at(number, i), world.mr[0],
                        at(number, i), WORD, RPMA_F_COMPLETION_ALWAYS,
                        context(place.posted++)));
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
    Place &place = line.places[number];
    if (text == word(number, BYE, OUT)) {
        line.left++;
        return;
    }
    place.turns++;
    check(text == word(number, place.turns, OUT), "message", wc, text);
    for (uint32_t i = 0; i < WRITES; i++)
        check(words(number)[i] == word(number, place.turns, i), "written", wc,
              words(number)[i]);
    say(number, word(number, place.turns, ECHO));
}

void note_answer(uint32_t number, const ibv_wc &wc, uint64_t text) {
    Place &place = line.places[number];
    place.answered++;
    check(place.answered == place.turns && text == word(number, place.turns, ECHO), "answer",
          wc, text);
    go_on(number);
}

void hear(uint32_t number, const ibv_wc &wc) {
    const uint32_t slot = line.places[number].received++ % 2;
    const uint64_t text = words(number)[IN + slot];
    check(wc.wr_id == slot && wc.byte_len == WORD, "receive", wc, slot);
    must(
        rpma_recv(world.conn[number], world.mr[0], at(number, IN + slot), WORD, context(slot)));
    (line.is_client ? note_answer : answer_turn)(number, wc, text);
}

void attribute(const ibv_wc &wc) {
    check(wc.status == IBV_WC_SUCCESS, "failed", wc, 0);
    if (wc.wr_id == WAKE_UP)
        return;
    const auto owner = line.owners.find(wc.qp_num);
    check(owner != line.owners.end(), "unknown", wc, 0);
    if ((wc.opcode & IBV_WC_RECV) != 0) {
        hear(owner->second, wc);
        return;
    }
    Place &place = line.places[owner->second];
    check(wc.wr_id == place.completed, "order", wc, place.completed);
    place.completed++;
    line.outstanding--;
    go_on(owner->second);
}

// The wake-up before it may have been stale.
void drain(rpma_cq *cq, int woken) {
    ibv_wc wc[16];
    int got = 0, code = woken;
    if (code == 0 || code == RPMA_E_NO_COMPLETION)
        while ((code = rpma_cq_get_wc(cq, 16, wc, &got)) == 0)
            std::for_each_n(wc, got, attribute);
    must_be(code == RPMA_E_NO_COMPLETION, code);
}

bool is_done() {
    return line.left == line.places.size() && line.outstanding == 0;
}

// ---- waiting -----------------------------------------------------------------------------

// One thread waits for the queues among other descriptors.
void wait_by_epoll() {
    epoll_event events[2];
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    const AtEnd closed{[&] { close(epoll); }};
    for (uint32_t i = 0; i < 2 && line.queue[i] != nullptr; i++) {
        epoll_event event = {.events = EPOLLIN, .data = {.u32 = i}};
        const int fd = fd_of(rpma_cq_get_fd, line.queue[i]);
        make_nonblocking(fd);
        must_system(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
    }
    while (!is_done()) {
        const int ready = epoll_wait(epoll, events, 2, PATIENCE_MS);
        must_be(ready > 0, ERR_TIMEOUT);
        for (int i = 0; i < ready; i++) {
            rpma_cq *cq = line.queue[events[i].data.u32];
            drain(cq, rpma_cq_wait(cq));
        }
    }
}

// One of several threads, each of which blocks. The first to see the end wakes another one up.
void wait_by_blocking(size_t) {
    const AtEnd woken{[] {
        (void)rpma_write(world.conn[0], nullptr, 0, nullptr, 0, 0, RPMA_F_COMPLETION_ALWAYS,
                         context(WAKE_UP));
    }};
    for (bool done = false; !done;) {
        const int code = rpma_cq_wait(line.queue[0]);
        const std::lock_guard locked(line.mutex);
        drain(line.queue[0], code);
        done = is_done();
    }
}

// turns=: the client stops after so many on all connections; the server answers until all have
// said bye. Answers with the least and the most turns that a connection had.
void take_turns(const Args &args) {
    const size_t threads = args.number_or("threads", 0);
    const int64_t began = now_ms();
    std::vector<uint32_t> before;
    line.wanted = args.number_or("turns", 0);
    line.is_client = line.wanted > 0;
    line.begun = line.left = 0;
    std::copy_n(world.lent, 2, line.queue);
    for (Place &place : line.places) {
        before.push_back(place.turns);
        place.said_bye = false;
    }
    const AtEnd told{[&] {
        std::vector<uint32_t> shares;
        for (size_t i = 0; i < before.size(); i++)
            shares.push_back(line.places[i].turns - before[i]);
        const auto [least, most] = std::ranges::minmax(shares);
        reply("turns", line.begun);
        reply("left", line.left);
        reply("outstanding", line.outstanding);
        reply("least", least);
        reply("most", most);
        reply("ms", now_ms() - began);
    }};
    for (uint32_t i = 0; line.is_client && i < line.places.size(); i++)
        begin_turn(i);
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
