// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// wait.cc -- commands for completions, blocking and with descriptors

#include "peer.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

namespace {

void reply_completion(const ibv_wc &wc, size_t number) {
    const bool worked = wc.status == IBV_WC_SUCCESS;
    std::ostringstream text;
    text << wc.status << ':';
    if (worked)
        text << wc.opcode << ':' << wc.wr_id << ':' << wc.byte_len << ':'
             << ((wc.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc.imm_data) : 0);
    else
        text << "-:" << wc.wr_id << ":0:0";
    text << ':' << wc.qp_num;
    reply("wc" + std::to_string(number), text.str());
}

// Takes completions until there are wanted ones, and adds each to the answer.
int take(rpma_cq *cq, size_t wanted, size_t *got) {
    ibv_wc wc[16];
    int count = 0;
    const int code = rpma_cq_get_wc(
        cq, static_cast<int>(std::min(wanted - *got, std::size(wc))), wc, &count);
    for (int i = 0; code == 0 && i < count; i++)
        reply_completion(wc[i], (*got)++);
    return code;
}

// The wake-up may be stale: the caller polls the queue again in any case.
void wake_up(rpma_conn *conn, rpma_cq *cq, int timeout_ms) {
    wait_readable(fd_of(rpma_cq_get_fd, cq), timeout_ms);
    int code = rpma_cq_wait(cq);
    if (code == RPMA_E_SHARED_CHANNEL) {
        rpma_cq *fired = nullptr;
        code = rpma_conn_wait(conn, 0, &fired, nullptr);
    }
    if (code != RPMA_E_NO_COMPLETION)
        must(code);
}

// Collects count= completions within timeout=; with busy=1 it never sleeps.
void completions(const Args &args) {
    rpma_cq *cq = the_queue(args);
    const size_t wanted = args.number_or("count", 1);
    const int64_t began = now_ms();
    const int64_t deadline =
        began + static_cast<int64_t>(args.number_or("timeout", PATIENCE_MS));
    size_t got = 0;
    const AtEnd told{[&] {
        reply("n", got);
        reply("ms", now_ms() - began);
    }};
    while (got < wanted) {
        const int code = take(cq, wanted, &got);
        if (code != RPMA_E_NO_COMPLETION) {
            must(code);
            continue;
        }
        const int64_t left = deadline - now_ms();
        must_be(left > 0, ERR_TIMEOUT);
        if (!args.is("busy"))
            wake_up(world.conn[args.slot("conn", MAX_CONNS)], cq, static_cast<int>(left));
    }
}

void poll_completions(const Args &args) {
    size_t got = 0;
    const int code = take(the_queue(args), args.number_or("count", 1), &got);
    reply("n", got);
    must(code);
}

// Answers with the queue that the connection's shared channel reports.
void wait_for_connection(const Args &args) {
    rpma_cq *cq = nullptr;
    bool is_rcq = false;
    must(rpma_conn_wait(the_conn(args), 0, &cq, &is_rcq));
    reply("queue", cq == queue_of(the_conn(args)) ? "main" : "rcq");
    reply("rcq", is_rcq);
}

int the_descriptor(const Args &args) {
    const std::string &what = args.text("fd");
    return what == "ep"        ? fd_of(rpma_ep_get_fd, world.ep)
           : what == "event"   ? fd_of(rpma_conn_get_event_fd, the_conn(args))
           : what == "channel" ? fd_of(rpma_conn_get_compl_fd, the_conn(args))
           : what == "device"  ? fd_of(rpma_peer_get_event_fd, world.peer)
                               : fd_of(rpma_cq_get_fd, the_queue(args));
}

void wait_by_epoll(const Args &args) {
    epoll_event events[64];
    const int ready = epoll_wait(world.epoll_fd, events, std::size(events),
                                 static_cast<int>(args.number_or("timeout", PATIENCE_MS)));
    must_be(ready != 0, ERR_TIMEOUT);
    must_system(ready > 0, "epoll_wait");
    reply("n", ready);
    for (int i = 0; i < ready; i++)
        reply("tag" + std::to_string(i), events[i].data.u64);
}

// The other side may be gone: an event reports that, and while the device keeps retrying, only
// a disconnected queue pair completes its outstanding operations.
void heed_event(rpma_conn *conn, bool is_last) {
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    must(rpma_conn_next_event(conn, &event));
    reply("event", event == RPMA_CONN_CLOSED ? "CLOSED" : "another");
    must(rpma_conn_disconnect(conn));
    must_be(!is_last, ERR_CLOSED);
}

const Commands here{
    {"wc", completions},
    {"cq-wait", [](const Args &args) { must(rpma_cq_wait(the_queue(args))); }},
    {"poll-wc", poll_completions},
    {"conn-wait", wait_for_connection},
    {"nonblock", [](const Args &args) { make_nonblocking(the_descriptor(args)); }},
    // Adds a descriptor that will be reported as tag.
    {"epoll-add", [](const Args &args) { watch(the_descriptor(args), args.number("tag")); }},
    {"epoll-wait", wait_by_epoll},
};

} // namespace

int64_t now_ms() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

rpma_cq *queue_of(const rpma_conn *conn) {
    rpma_cq *cq = nullptr;
    must(rpma_conn_get_cq(conn, &cq));
    return cq;
}

void wait_readable(int fd, int timeout_ms) {
    pollfd polled = {.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&polled, 1, timeout_ms);
    must_be(ready != 0 && !(ready < 0 && errno == EINTR), ERR_TIMEOUT);
    must_system(ready > 0, "poll");
}

void make_nonblocking(int fd) {
    must_system(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0, "fcntl");
}

void watch(int fd, uint64_t tag) {
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = tag}};
    if (world.epoll_fd < 0)
        world.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    must_system(epoll_ctl(world.epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EEXIST,
                "epoll_ctl");
}

rpma_cq *the_queue(const Args &args) {
    const std::string name = args.text_or("queue", "main");
    rpma_cq *cq = nullptr;
    if (name == "main")
        cq = queue_of(the_conn(args));
    else if (name == "rcq")
        must(rpma_conn_get_rcq(the_conn(args), &cq));
    else if (name == "srq")
        must(rpma_srq_get_rcq(the_srq(args), &cq));
    else if (name == "lent")
        cq = world.lent[args.slot("lent", MAX_OTHERS)];
    if (cq == nullptr)
        bad_script(args.verb() + ": no queue '" + name + "'");
    return cq;
}

void await_completion(rpma_cq *cq, ibv_wc *wc) {
    int code;
    while ((code = rpma_cq_get_wc(cq, 1, wc, nullptr)) == RPMA_E_NO_COMPLETION) {
        code = rpma_cq_wait(cq);
        if (code != RPMA_E_NO_COMPLETION)
            must(code);
    }
    must(code);
    must_be(wc->status == IBV_WC_SUCCESS, RPMA_E_PROVIDER);
}

void await_event(rpma_conn *conn, rpma_conn_event wanted) {
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    must(rpma_conn_next_event(conn, &event));
    if (event == wanted)
        return;
    fprintf(stderr, "peer: %s instead of %s\n", rpma_utils_conn_event_2str(event),
            rpma_utils_conn_event_2str(wanted));
    throw Failed{ERR_MISMATCH};
}

bool await_either(rpma_conn *conn, rpma_cq *cq, ibv_wc *wc, bool event_is_last) {
    pollfd fds[] = {
        {.fd = fd_of(rpma_cq_get_fd, cq), .events = POLLIN, .revents = 0},
        {.fd = fd_of(rpma_conn_get_event_fd, conn), .events = POLLIN, .revents = 0}};
    int code;
    while ((code = rpma_cq_get_wc(cq, 1, wc, nullptr)) == RPMA_E_NO_COMPLETION) {
        poll(fds, 2, -1);
        if ((fds[0].revents & POLLIN) == 0 && (fds[1].revents & POLLIN) != 0)
            heed_event(conn, event_is_last);
        else if ((code = rpma_cq_wait(cq)) != RPMA_E_NO_COMPLETION)
            must(code);
    }
    must(code);
    return wc->status == IBV_WC_SUCCESS;
}
