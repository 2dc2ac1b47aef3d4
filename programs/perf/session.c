// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// session.c -- a client and its server: the wait for messages, events and workers

#include "session.h"

#include "failure.h"
#include "waiting.h"

#include <stdlib.h>
#include <unistd.h>

enum { CQ, EVENTS, REQUESTS, WAKE, LANES };

bool session_open_peer(struct session *session, const char *address,
                       enum rpma_util_ibv_context_type type) {
    struct ibv_context *context;
    if (!succeeds(rpma_utils_get_ibv_context(address, type, &context),
                  "no RDMA device for the address %s (rpma-info lists those there are)",
                  address) ||
        !succeeds(rpma_peer_new(context, &session->peer), "cannot use the RDMA device"))
        return false;
    session->device = context->device->name;
    return true;
}

static size_t list(struct session *session, struct pollfd *fds) {
    struct crew *crew = session->crew;
    fds[CQ].fd = session->control.cq_fd;
    fds[EVENTS].fd = session->control.link.fd;
    fds[REQUESTS].fd = session->ep ? session->ep_fd : -1;
    fds[WAKE].fd = crew ? crew->wake_fd : -1;
    size_t count = LANES;
    for (uint64_t i = 0; crew && session->watches_lanes && i < crew->connected; i++)
        fds[count++].fd = crew->lanes[i].link.fd;
    for (size_t i = 0; i < count; i++) {
        fds[i].events = POLLIN;
        fds[i].revents = 0;
    }
    return count;
}

static enum news closed(struct link *link) {
    (void)rpma_conn_disconnect(link->conn); // flushes the outstanding work requests
    fail("the other side closed the connection");
    return NEWS_LOST;
}

// Handles the results of poll(), the most urgent first.
static enum news look(struct session *session, const struct pollfd *fds, size_t count) {
    struct control *control = &session->control;
    if (fds[WAKE].revents) {
        uint64_t number;
        if (read(session->crew->wake_fd, &number, sizeof(number)) > 0)
            return NEWS_WORKER;
    }
    if (fds[CQ].revents) {
        int ret = rpma_cq_wait(control->cq);
        if (ret != RPMA_E_NO_COMPLETION && !succeeds(ret, "cannot wait for messages"))
            return NEWS_LOST;
    }
    switch (control_take(control)) {
    case HEARD_MESSAGE:
        return NEWS_MESSAGE;
    case HEARD_END:
        return NEWS_LOST;
    default:
        break;
    }
    if (fds[EVENTS].revents && !link_is_up(&control->link))
        return closed(&control->link);
    for (size_t i = LANES; i < count; i++)
        if (fds[i].revents && !link_is_up(&session->crew->lanes[i - LANES].link))
            return closed(&session->crew->lanes[i - LANES].link);
    return fds[REQUESTS].revents ? NEWS_REQUEST : NEWS_NONE;
}

enum news session_wait(struct session *session, int milliseconds) {
    struct pollfd fds[LANES + CONNECTIONS_MAX] = {0};
    uint64_t until = now_ns() + (uint64_t)milliseconds * 1000000;
    for (bool is_first = true;; is_first = false) {
        if (is_stopping())
            return NEWS_STOP;
        size_t count = list(session, fds);
        uint64_t now = now_ns();
        int left = now < until ? (int)((until - now + 999999) / 1000000) : 0;
        if (!is_first) // a message may have arrived whose CQ event was taken already
            wait_for(fds, count, left < BEAT_MS ? left : BEAT_MS);
        enum news news = look(session, fds, count);
        if (news != NEWS_NONE)
            return news;
        if (!control_beat(&session->control))
            return NEWS_LOST;
        if (!is_first && now >= until)
            return NEWS_NONE;
    }
}
