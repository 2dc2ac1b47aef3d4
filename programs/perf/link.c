// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// link.c -- a connection: how it is established, and how its end is noticed

#include "link.h"

#include "failure.h"
#include "waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME "rpma-perf"
#define ADDRESS_TIMEOUT_MS 5000
// The retries take 4 s on soft-RoCE, at most 28 s elsewhere: rpma_conn_cfg_set_ack_timeout(3).
#define ACK_TIMEOUT_MS 500
#define RETRY_COUNT 6
#define GREETING_SIZE 56 // the most private data of a request on rdma_rxe and others

struct rpma_conn_cfg *link_cfg(void) {
    struct rpma_conn_cfg *cfg = NULL;
    if (!succeeds(rpma_conn_cfg_new(&cfg), "cannot configure a connection"))
        return NULL;
    (void)rpma_conn_cfg_set_timeout(cfg, ADDRESS_TIMEOUT_MS);
    (void)rpma_conn_cfg_set_ack_timeout(cfg, ACK_TIMEOUT_MS);
    (void)rpma_conn_cfg_set_retry_count(cfg, RETRY_COUNT);
    return cfg;
}

// The next event within the time, or RPMA_CONN_UNDEFINED without one.
static enum rpma_conn_event next_event(struct link *link, int milliseconds) {
    enum rpma_conn_event event;
    uint64_t until = now_ns() + (uint64_t)milliseconds * 1000000;
    while (!is_stopping()) {
        int ret = rpma_conn_next_event(link->conn, &event);
        if (ret == 0)
            return event;
        if (ret != RPMA_E_NO_EVENT && ret != RPMA_E_UNKNOWN)
            return RPMA_CONN_LOST;
        uint64_t now = now_ns();
        if (now >= until)
            break;
        wait_readable(link->fd, (int)((until - now) / 1000000) + 1);
    }
    return RPMA_CONN_UNDEFINED;
}

static bool await_established(struct link *link) {
    switch (next_event(link, PATIENCE_MS)) {
    case RPMA_CONN_ESTABLISHED:
        return true;
    case RPMA_CONN_REJECTED:
        return fail("the connection is refused: nobody listens there, or a server "
                    "that is busy "
                    "with another client");
    case RPMA_CONN_UNREACHABLE:
        return fail("the other side does not answer");
    case RPMA_CONN_UNDEFINED:
        return fail(is_stopping() ? "interrupted while connecting"
                                  : "the other side does not answer");
    default:
        return fail("the other side closed the connection while it came up");
    }
}

bool link_open(struct link *link, struct rpma_conn_req **request, const char *kind,
               uint64_t session, uint64_t number) {
    char text[GREETING_SIZE];
    int length = snprintf(text, sizeof(text), NAME " %d %s %" PRIu64 " %" PRIu64, PROTOCOL,
                          kind, session, number);
    struct rpma_conn_private_data data = {.ptr = text, .len = (uint8_t)(length + 1)};
    link->conn = NULL;
    link->has_ended = false;
    if (!succeeds(rpma_conn_req_connect(request, &data, &link->conn), "cannot connect"))
        return false;
    if (succeeds(rpma_conn_get_event_fd(link->conn, &link->fd), "no events") &&
        make_nonblocking(link->fd) && await_established(link))
        return true;
    link_close(link);
    return false;
}

void link_close(struct link *link) {
    if (link->conn)
        (void)rpma_conn_delete(&link->conn);
}

bool link_is_up(struct link *link) {
    enum rpma_conn_event event;
    int ret;
    while (!link->has_ended &&
           (ret = rpma_conn_next_event(link->conn, &event)) != RPMA_E_NO_EVENT)
        link->has_ended = ret != RPMA_E_UNKNOWN && (ret || event != RPMA_CONN_ESTABLISHED);
    return !link->has_ended;
}

struct greeting greeting_of(const struct rpma_conn_private_data *data) {
    struct greeting greeting = {0};
    char text[256] = "";
    if (data->ptr)
        memcpy(text, data->ptr, data->len);
    text[sizeof(text) - 1] = '\0';
    greeting.is_ours = sscanf(text, NAME " %u %15s %lu %lu", &greeting.protocol, greeting.kind,
                              &greeting.session, &greeting.number) >= 1;
    return greeting;
}
