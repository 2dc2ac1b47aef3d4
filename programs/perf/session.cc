// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// session.cc -- a client and its server: the wait for messages, events and workers

#include "session.hh"

#include <algorithm>
#include <sys/eventfd.h>

enum { CQ, EVENTS, REQUESTS, WAKE, LANES };

static ibv_context *open_device(const std::string &address, rpma_util_ibv_context_type type) {
    return attempt(
        fmt::format("no RDMA device for the address {} (rpma-info lists those there are)",
                    address),
        [&] { return rpma::get_ibv_context(address.c_str(), type); });
}

Session::Session(const std::string &address, rpma_util_ibv_context_type type)
    : context(open_device(address, type)),
      peer(attempt("cannot use the RDMA device", [this] { return rpma::peer(context); })),
      device(context->device->name) {}

std::vector<pollfd> Session::list() const {
    std::vector<pollfd> fds(LANES);
    fds[CQ].fd = control->cq_fd();
    fds[EVENTS].fd = control->link.fd;
    fds[REQUESTS].fd = ep ? ep->get_fd() : -1;
    fds[WAKE].fd = crew ? crew->wake_fd : -1;
    for (uint64_t i = 0; crew && watches_lanes && i < crew->connected; i++)
        fds.push_back({crew->lanes[i].link.fd, 0, 0});
    for (pollfd &fd : fds)
        fd.events = POLLIN;
    return fds;
}

static void check_link(Link &link) {
    if (link.is_up())
        return;
    (void)rpma_conn_disconnect(link.conn); // flushes the outstanding work requests
    fail("the other side closed the connection");
}

// Handles the results of poll(), the most urgent first.
News Session::look(const std::vector<pollfd> &fds) {
    eventfd_t number = 0;
    if (fds[WAKE].revents && eventfd_read(fds[WAKE].fd, &number) == 0)
        return News::worker;
    if (fds[CQ].revents)
        control->take_cq_event();
    if (auto bytes = control->take()) {
        in = *std::move(bytes);
        return News::message;
    }
    if (fds[EVENTS].revents)
        check_link(control->link);
    for (size_t i = LANES; i < fds.size(); i++)
        if (fds[i].revents)
            check_link(crew->lanes[i - LANES].link);
    return fds[REQUESTS].revents ? News::request : News::none;
}

News Session::wait(int milliseconds) {
    const uint64_t until = now_ns() + static_cast<uint64_t>(milliseconds) * 1000000;
    for (bool is_first = true;; is_first = false) {
        if (is_stopping())
            return News::stop;
        std::vector<pollfd> fds = list();
        const uint64_t now = now_ns();
        const int left = now < until ? static_cast<int>((until - now + 999999) / 1000000) : 0;
        if (!is_first) // a message may have arrived whose CQ event was taken already
            wait_for(fds, std::min(left, BEAT_MS));
        if (const News news = look(fds); news != News::none)
            return news;
        control->beat();
        if (!is_first && now >= until)
            return News::none;
    }
}
