// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// event_loop.cc -- one side of a client-server pair: waits for messages, connections and
// workers

#include "event_loop.hh"

#include <algorithm>
#include <sys/eventfd.h>

static ibv_context *open_device(const std::string &address, rpma_util_ibv_context_type type) {
    return attempt(
        fmt::format("no RDMA device for the address {} (rpma-info lists the devices)",
                    escaped(address)),
        [&] { return rpma::get_ibv_context(address.c_str(), type); });
}

Device::Device(const std::string &address, rpma_util_ibv_context_type type)
    : context(open_device(address, type)),
      peer(attempt("cannot use the RDMA device", [this] { return rpma::peer(context); })),
      name(context->device->name) {}

bool Device::has_atomics() const {
    ibv_device_attr attributes{};
    return ibv_query_device(context, &attributes) == 0 &&
           attributes.atomic_cap != IBV_ATOMIC_NONE;
}

void EventLoop::watch_control() {
    epoll.add(control.link.fd, EVENTS);
    (void)advance();
}

// Returns true if the control connection has just been established.
bool EventLoop::advance() {
    const int before = control.cq_fd();
    const bool was_up = control.link.is_established;
    control.advance();
    if (control.cq_fd() != before)
        epoll.add(control.cq_fd(), CQ);
    return control.link.is_established && !was_up;
}

void EventLoop::watch(const Connection &watched) const {
    epoll.add(watched.link.fd, CONNECTIONS + watched.index);
}

void EventLoop::begin(std::unique_ptr<LoadGenerator> made) {
    generator = std::move(made);
    epoll.add(generator->wake_fd, WAKE);
}

// Handles the most urgent event; epoll reports the others again.
Event EventLoop::poll(int milliseconds) {
    std::array<epoll_event, 16> events;
    const auto found = wait_for(epoll, events, milliseconds);
    const auto has = [found](uint64_t number) {
        return std::ranges::any_of(
            found, [number](const epoll_event &event) { return event.data.u64 == number; });
    };
    eventfd_t count = 0;
    if (generator && has(WAKE) && eventfd_read(generator->wake_fd, &count) == 0)
        return Event::worker;
    if (has(CQ))
        control.take_cq_event();
    if (auto bytes = control.take()) {
        in = *std::move(bytes);
        return Event::message;
    }
    if (has(EVENTS) && advance())
        return Event::up;
    for (const epoll_event &event : found)
        if (event.data.u64 >= CONNECTIONS) {
            connection = event.data.u64 - CONNECTIONS;
            return Event::connection;
        }
    return Event::none;
}

Event EventLoop::wait(int milliseconds) {
    const uint64_t until = now_ns() + static_cast<uint64_t>(milliseconds) * 1000000;
    for (bool is_first = true;; is_first = false) {
        if (is_stopping())
            return Event::stop;
        const uint64_t now = now_ns();
        const int left = now < until ? static_cast<int>((until - now + 999999) / 1000000) : 0;
        // Does not wait first: the CQ event of a received message may have been taken earlier.
        if (const Event event = poll(is_first ? 0 : std::min(left, KEEPALIVE_MS));
            event != Event::none)
            return event;
        control.keep_alive();
        if (!is_first && now >= until)
            return Event::none;
    }
}
