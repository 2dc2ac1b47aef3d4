// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// wait.cc -- commands for completions and events of the device, blocking and with descriptors

#include "call.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <iterator>
#include <poll.h>
#include <sys/epoll.h>

namespace {

void reply_completion(const ibv_wc &wc, size_t number) {
    const bool worked = wc.status == IBV_WC_SUCCESS;
    const bool has_imm = worked && (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
    std::ostringstream text;
    text << wc.status << ':' << (worked ? std::to_string(wc.opcode) : "-") << ':' << wc.wr_id
         << ':' << (worked ? wc.byte_len : 0) << ':' << (has_imm ? ntohl(wc.imm_data) : 0)
         << ':' << wc.qp_num;
    reply("wc" + std::to_string(number), text.str());
}

// Polls once for the missing completions and adds them to the reply.
int poll_completions(rpma_cq *cq, size_t wanted, size_t *got) {
    ibv_wc wc[16];
    int count = 0;
    const int code = rpma_cq_get_wc(
        cq, static_cast<int>(std::min(wanted - *got, std::size(wc))), wc, &count);
    for (int i = 0; code == 0 && i < count; i++)
        reply_completion(wc[i], (*got)++);
    return code;
}

// A stale wake-up is harmless, because the caller polls the queue again.
void wait_for_wake_up(rpma_conn *conn, rpma_cq *cq, int64_t timeout_ms) {
    wait_readable(get(rpma_cq_get_fd, cq), timeout_ms);
    int code = rpma_cq_wait(cq);
    if (code == RPMA_E_SHARED_CHANNEL) {
        rpma_cq *fired = nullptr;
        code = rpma_conn_wait(conn, 0, &fired, nullptr);
    }
    if (code != RPMA_E_NO_COMPLETION)
        must(code);
}

// Collects count= completions within timeout=; with 0 it polls once. With busy=1 it never
// sleeps.
void completions(const Args &args) {
    rpma_cq *cq = object_of<rpma_cq>(args);
    const size_t wanted = args.number("count", 1);
    const int64_t timeout = args.number<int64_t>("timeout", TIMEOUT_MS);
    const Clock clock;
    size_t got = 0;
    const ScopeExit report{[&] { reply("ms", clock.ms()); }};
    while (got < wanted) {
        const int code = poll_completions(cq, wanted, &got);
        if (code != RPMA_E_NO_COMPLETION) {
            must(code);
            continue;
        }
        const int64_t left = timeout - clock.ms();
        require(left > 0, timeout > 0 ? ERR_TIMEOUT : RPMA_E_NO_COMPLETION);
        if (!args.is("busy"))
            wait_for_wake_up(args.in(fixture.conn, "conn"), cq, left);
    }
}

// Replies with the queue that the connection's shared channel reports.
void wait_for_connection(const Args &args) {
    rpma_cq *cq = nullptr;
    bool is_rcq = false;
    must(rpma_conn_wait(object_of<rpma_conn>(args), 0, &cq, &is_rcq));
    reply("queue", cq == queue_of(object_of<rpma_conn>(args)) ? "main" : "rcq");
    reply("rcq", is_rcq);
}

int descriptor_named(const Args &args) {
    const std::string &name = args.text("fd");
    return name == "ep"        ? get(rpma_ep_get_fd, fixture.ep)
           : name == "req"     ? get(rpma_conn_req_get_event_fd, object_of<rpma_conn_req>(args))
           : name == "event"   ? get(rpma_conn_get_event_fd, object_of<rpma_conn>(args))
           : name == "channel" ? get(rpma_conn_get_compl_fd, object_of<rpma_conn>(args))
           : name == "device"  ? get(rpma_peer_get_event_fd, fixture.peer)
                               : get(rpma_cq_get_fd, object_of<rpma_cq>(args));
}

void wait_by_epoll(const Args &args) {
    const std::vector<uint64_t> tags = wait_for_ready(args.number<int>("timeout", TIMEOUT_MS));
    reply("n", tags.size());
    for (size_t i = 0; i < tags.size(); i++)
        reply("tag" + std::to_string(i), tags[i]);
}

// ---- events of the device ----------------------------------------------------------------

// Replies with the index of an object in an array of fixture.
template <class Objects, class Object>
void reply_index(const char *key, const Objects &objects, const Object *object) {
    const auto *found = std::ranges::find(objects, object);
    if (object != nullptr && found != std::end(objects))
        reply(key, found - objects);
}

// Replies with the arguments that name the queue in other commands.
void reply_queue(const rpma_cq *cq) {
    for (const rpma_srq *srq : fixture.srq)
        if (srq != nullptr && get(rpma_srq_get_rcq, srq) == cq) {
            reply("queue", "srq");
            reply_index("srq", fixture.srq, srq);
        }
    for (const rpma_conn *conn : fixture.conn)
        if (conn != nullptr && (queue_of(conn) == cq || get(rpma_conn_get_rcq, conn) == cq)) {
            reply("queue", queue_of(conn) == cq ? "main" : "rcq");
            reply_index("conn", fixture.conn, conn);
        }
    reply_index("shared_cq", fixture.shared_cq, cq);
}

// Replies with the next event of the device and the numbers of its handles. second=1 reads it
// through another peer of the device.
void device_event(const Args &args) {
    Scoped<rpma_peer, rpma_peer_delete> second;
    rpma_peer *peer = fixture.peer;
    if (args.is("second")) {
        must(rpma_peer_new(fixture.device, &second.it));
        peer = second.it;
    }
    if (args.number<bool>("polled", true))
        wait_readable(get(rpma_peer_get_event_fd, peer),
                      args.number<int64_t>("timeout", TIMEOUT_MS));
    const rpma_peer_event event = get(rpma_peer_next_event, peer);
    reply("type", int{event.type});
    reply("port", unsigned{event.port});
    reply_index("conn", fixture.conn, event.conn);
    reply_index("srq", fixture.srq, event.srq);
    if (event.cq != nullptr)
        reply_queue(event.cq);
}

const Commands here{
    {"wc", completions},
    {"cq-wait", call(rpma_cq_wait)},
    {"conn-wait", wait_for_connection},
    {"nonblock", [](const Args &args) { make_nonblocking(descriptor_named(args)); }},
    // Adds a descriptor that "epoll-wait" reports as tag.
    {"epoll-add", [](const Args &args) { watch(descriptor_named(args), args.number("tag")); }},
    {"epoll-wait", wait_by_epoll},
    {"device-event", device_event},
    {"cq-take-event", call(rpma_cq_take_event)},
    {"cq-arm", call(rpma_cq_arm, {"solicited=0"})},
};

} // namespace

int64_t Clock::now() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

int64_t Clock::ms() const {
    return now() - began_;
}

void wait_readable(int fd, int64_t timeout_ms) {
    pollfd polled = {.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&polled, 1, static_cast<int>(timeout_ms));
    require(ready != 0 && !(ready < 0 && errno == EINTR), ERR_TIMEOUT);
    require_system(ready > 0, "poll");
}

void make_nonblocking(int fd) {
    require_system(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0, "fcntl");
}

void watch(int fd, uint64_t tag) {
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = tag}};
    if (fixture.epoll_fd < 0)
        fixture.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    require_system(epoll_ctl(fixture.epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ||
                       errno == EEXIST,
                   "epoll_ctl");
}

std::vector<uint64_t> wait_for_ready(int timeout_ms) {
    epoll_event events[64];
    std::vector<uint64_t> tags;
    const int ready = epoll_wait(fixture.epoll_fd, events, std::size(events), timeout_ms);
    require(ready != 0, ERR_TIMEOUT);
    require_system(ready > 0, "epoll_wait");
    for (int i = 0; i < ready; i++)
        tags.push_back(events[i].data.u64);
    return tags;
}

template <> rpma_cq *object_of<rpma_cq>(const Args &args) {
    const std::string name = args.text("queue", "main");
    rpma_cq *cq = name == "main"        ? queue_of(object_of<rpma_conn>(args))
                  : name == "rcq"       ? get(rpma_conn_get_rcq, object_of<rpma_conn>(args))
                  : name == "srq"       ? get(rpma_srq_get_rcq, object_of<rpma_srq>(args))
                  : name == "shared_cq" ? args.in(fixture.shared_cq, "shared_cq")
                                        : nullptr;
    if (cq == nullptr)
        args.refuse("no queue '" + name + "'");
    return cq;
}

ibv_wc await_completion(rpma_cq *cq) {
    ibv_wc wc = {};
    int code;
    while ((code = rpma_cq_get_wc(cq, 1, &wc, nullptr)) == RPMA_E_NO_COMPLETION)
        if ((code = rpma_cq_wait(cq)) != RPMA_E_NO_COMPLETION)
            must(code);
    must(code);
    if (wc.status != IBV_WC_SUCCESS)
        fprintf(stderr, "peer: a completion: %s\n", ibv_wc_status_str(wc.status));
    require(wc.status == IBV_WC_SUCCESS, RPMA_E_PROVIDER);
    return wc;
}

void await_event(rpma_conn *conn, rpma_conn_event wanted) {
    const rpma_conn_event event = get(rpma_conn_next_event, conn);
    if (event == wanted)
        return;
    fprintf(stderr, "peer: %s instead of %s\n", rpma_utils_conn_event_2str(event),
            rpma_utils_conn_event_2str(wanted));
    throw Failed{ERR_MISMATCH};
}
