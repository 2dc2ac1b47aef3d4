// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// events.cc -- commands for the events of the device, and for the halves of rpma_cq_wait()

#include "peer.hh"

#include <sys/epoll.h>
#include <unistd.h>

namespace {

// Says whose queue it is, as the argument "queue" of other commands does.
void reply_queue(const rpma_cq *cq) {
    for (size_t i = 0; i < MAX_OTHERS; i++) {
        rpma_cq *of_srq = nullptr;
        if (world.lent[i] == cq) {
            reply("queue", "lent");
            reply("lent", i);
        }
        if (world.srq[i] != nullptr && rpma_srq_get_rcq(world.srq[i], &of_srq) == 0 &&
            of_srq == cq) {
            reply("queue", "srq");
            reply("srq", i);
        }
    }
    for (size_t i = 0; i < MAX_CONNS; i++) {
        rpma_cq *main = nullptr, *rcq = nullptr;
        if (world.conn[i] == nullptr || rpma_conn_get_cq(world.conn[i], &main) != 0 ||
            rpma_conn_get_rcq(world.conn[i], &rcq) != 0 || (cq != main && cq != rcq))
            continue;
        reply("queue", cq == main ? "main" : "rcq");
        reply("conn", i);
    }
}

// Answers with the next event of the device, and the numbers of the handles that it names.
// second=1 takes it through another peer on the device.
void device_event(const Args &args) {
    Scoped<rpma_peer, rpma_peer_delete> second;
    rpma_peer *peer = world.peer;
    rpma_peer_event event;
    if (args.is("second")) {
        must(rpma_peer_new(world.device, &second.it));
        peer = second.it;
    }
    if (args.number_or("polled", 1) != 0)
        wait_readable(fd_of(rpma_peer_get_event_fd, peer),
                      static_cast<int>(args.number_or("timeout", PATIENCE_MS)));
    must(rpma_peer_next_event(peer, &event));
    reply("type", int{event.type});
    reply("ibv", int{event.ibv_event});
    reply("port", unsigned{event.port});
    for (size_t i = 0; event.conn != nullptr && i < MAX_CONNS; i++)
        if (world.conn[i] == event.conn)
            reply("conn", i);
    for (size_t i = 0; event.srq != nullptr && i < MAX_OTHERS; i++)
        if (world.srq[i] == event.srq)
            reply("srq", i);
    if (event.cq != nullptr)
        reply_queue(event.cq);
}

void set_limit(const Args &args) {
    must(rpma_srq_set_limit(the_srq(args), static_cast<uint32_t>(args.number("limit"))));
}

void moderate(const Args &args) {
    must(rpma_cq_set_moderation(the_queue(args), static_cast<uint32_t>(args.number("count")),
                                static_cast<uint32_t>(args.number("us"))));
}

// Takes and replaces receives until the CQ is empty; returns how many.
unsigned take_receives(const Args &args, rpma_cq *cq) {
    ibv_wc wc[16];
    unsigned taken = 0;
    int got = 0, code;
    while ((code = rpma_cq_get_wc(cq, 16, wc, &got)) == 0)
        for (int i = 0; i < got; i++, taken++)
            must(rpma_recv(the_conn(args), world.mr[0], 0, 8, nullptr));
    must_be(code == RPMA_E_NO_COMPLETION, code);
    return taken;
}

// Sleeps until the CQ has an event, which is armed for the next one before it is emptied.
unsigned with_epoll(const Args &args, rpma_cq *cq, int epoll_fd) {
    epoll_event ready;
    must_be(epoll_wait(epoll_fd, &ready, 1, PATIENCE_MS) == 1, ERR_TIMEOUT);
    must(rpma_cq_take_event(cq));
    must(rpma_cq_arm(cq, false));
    return take_receives(args, cq);
}

// Sleeps only if a second look after arming finds nothing.
unsigned poll_then_sleep(const Args &args, rpma_cq *cq) {
    must(rpma_cq_arm(cq, false));
    if (const unsigned taken = take_receives(args, cq); taken != 0)
        return taken;
    wait_readable(fd_of(rpma_cq_get_fd, cq));
    must(rpma_cq_take_event(cq));
    return take_receives(args, cq);
}

// Receives count messages with one of the loops of rpma_cq_arm(3).
void receive_armed(const Args &args) {
    rpma_cq *cq = the_queue(args);
    const bool is_epoll = args.text("how") == "epoll";
    epoll_event event = {.events = EPOLLIN, .data = {}};
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    unsigned taken = 0, rounds = 0;
    const AtEnd told{[&] {
        close(epoll_fd);
        reply("n", taken);
        reply("rounds", rounds);
    }};
    must_system(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd_of(rpma_cq_get_fd, cq), &event) == 0,
                "epoll_ctl");
    for (; taken < args.number("count"); rounds++)
        taken += is_epoll ? with_epoll(args, cq, epoll_fd) : poll_then_sleep(args, cq);
}

const Commands here{
    {"receive-armed", receive_armed},
    {"device-event", device_event},
    {"srq-limit", set_limit},
    {"moderate", moderate},
    {"cq-take-event", [](const Args &args) { must(rpma_cq_take_event(the_queue(args))); }},
    {"cq-arm",
     [](const Args &args) { must(rpma_cq_arm(the_queue(args), args.is("solicited"))); }},
};

} // namespace
