// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- serves the plans of one client after the other

#include "server.h"
#include "failure.h"
#include "serve.h"
#include "sides.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define IDLE_MS 60000

static struct rpma_conn_req *next_request(struct server *server,
                                          const struct rpma_conn_cfg *cfg) {
    struct rpma_conn_req *request = NULL;
    int ret = rpma_ep_next_conn_req(server->session.ep, cfg, &request);
    if (ret && ret != RPMA_E_NO_EVENT)
        succeeds(ret, "cannot take a connection");
    return request;
}

static struct greeting greeting_of_request(const struct rpma_conn_req *request) {
    struct rpma_conn_private_data data = {NULL, 0};
    (void)rpma_conn_req_get_private_data(request, &data);
    return greeting_of(&data);
}

// Accepts the next connection of the load and rejects all others.
static bool on_request(struct server *server) {
    struct crew *crew = server->session.crew;
    bool is_expected = crew && crew->connected < crew->plan.connections;
    struct rpma_conn_cfg *cfg =
        is_expected ? crew_next_cfg(crew, serve_queues(&crew->plan)) : link_cfg();
    if (!cfg)
        return server_refuse(server);
    if (is_expected && crew->operation->is_echoed && crew->plan.inline_size > ATOMIC_SIZE)
        (void)rpma_conn_cfg_set_inline_size(cfg, (uint32_t)crew->plan.inline_size);
    struct rpma_conn_req *request = next_request(server, cfg);
    (void)rpma_conn_cfg_delete(&cfg);
    if (!request)
        return failure() ? server_refuse(server) : true;
    struct greeting greeting = greeting_of_request(request);
    if (!is_expected || greeting.protocol != PROTOCOL || strcmp(greeting.kind, "data") ||
        greeting.session != server->session_number || greeting.number != crew->connected) {
        (void)rpma_conn_req_delete(&request);
        return true;
    }
    bool is_open = serve_post_receives(crew, request) &&
                   link_open(&crew->lanes[crew->connected].link, &request, "data", 0, 0);
    if (request)
        (void)rpma_conn_req_delete(&request);
    if (!is_open)
        return server_refuse(server);
    crew->connected++;
    server->heard = now_ns();
    return true;
}

// Serves until the client has gone. Returns false on failure.
static bool serve_client(struct server *server) {
    struct session *session = &server->session;
    server->is_busy = false;
    server->heard = now_ns();
    for (;;) {
        uint64_t silent_ms = (now_ns() - server->heard) / 1000000;
        if (silent_ms >= IDLE_MS)
            return fail("the client has said nothing for %d s", IDLE_MS / 1000);
        switch (session_wait(session, IDLE_MS - (int)silent_ms)) {
        case NEWS_MESSAGE:
            if (!server_answer(server))
                return false;
            server->heard = now_ns();
            break;
        case NEWS_REQUEST:
            if (!on_request(server))
                return false;
            break;
        case NEWS_LOST:
            return !server->is_busy && session->control.link.has_ended;
        case NEWS_STOP:
            return true;
        default:
            break;
        }
    }
}

static bool is_client(const struct greeting *greeting) {
    if (!greeting->is_ours)
        return fail("somebody connected who is no rpma-perf");
    return !strcmp(greeting->kind, "control") || fail("a connection of a client that is gone");
}

// Returns false if serving failed; the caller reports that.
static bool serve_next(struct server *server, bool *is_served) {
    struct rpma_conn_cfg *cfg = link_cfg();
    struct rpma_conn_req *request = cfg ? next_request(server, cfg) : NULL;
    (void)rpma_conn_cfg_delete(&cfg);
    if (!request)
        return !failure();
    struct greeting greeting = greeting_of_request(request);
    if (!is_client(&greeting)) {
        (void)rpma_conn_req_delete(&request);
        return false;
    }
    *is_served = true;
    bool is_fine = control_open(&server->session.control, server->session.peer, &request);
    if (is_fine && greeting.protocol != PROTOCOL) {
        session_wait(&server->session,
                     IDLE_MS); // until the client has read this side's protocol version
        failure_forget();
        is_fine = fail("a client speaks version %u of the protocol, this server version %d",
                       greeting.protocol, PROTOCOL);
    } else if (is_fine) {
        is_fine = serve_client(server);
    }
    server_drop_crew(server);
    control_close(&server->session.control);
    return is_fine;
}

static bool serve(struct server *server) {
    bool is_fine = true;
    while (!is_stopping()) {
        bool is_served = false;
        if (!wait_readable(server->session.ep_fd, IDLE_MS))
            continue;
        is_fine = serve_next(server, &is_served);
        if (!is_fine)
            complain("%s",
                     failure() ? failure() : "the client is gone in the middle of a load");
        failure_forget();
        if (is_served && server->options->once)
            break;
    }
    return is_fine || !server->options->once;
}

static bool map_memory(struct server *server) {
    const struct options *options = server->options;
    return memory_map(&server->memory, options->memory, PROT_READ | PROT_WRITE) &&
           (!options->direct_write || server->memory.is_persistent ||
            fail("--direct-write: %s is neither a file on FS-DAX nor a device DAX",
                 options->memory));
}

static bool start(struct server *server) {
    const struct options *options = server->options;
    struct session *session = &server->session;
    if ((options->memory && !map_memory(server)) ||
        !session_open_peer(session, options->address, RPMA_UTIL_IBV_CONTEXT_LOCAL) ||
        !succeeds(rpma_ep_listen(session->peer, options->address, options->port, &session->ep),
                  "cannot listen on %s port %s", options->address, options->port) ||
        !succeeds(rpma_ep_get_fd(session->ep, &session->ep_fd), "no descriptor") ||
        !make_nonblocking(session->ep_fd))
        return false;
    side_describe(&server->self, session->device,
                  options->memory ? server->memory.kind : "dram");
    printf("listening on %s port %s: device %s, memory %s%s%s\n", options->address,
           options->port, session->device, server->self.memory,
           options->memory ? " that any client may overwrite" : "",
           options->direct_write ? ", direct write stated" : "");
    fflush(stdout);
    return true;
}

int run_server(const struct options *options) {
    struct server *server = calloc(1, sizeof(*server));
    if (!server) {
        complain("out of memory");
        return EXIT_FAILURE;
    }
    server->options = options;
    bool is_fine = start(server);
    if (is_fine)
        is_fine = serve(server);
    else
        complain("%s", failure());
    if (server->session.ep)
        (void)rpma_ep_shutdown(&server->session.ep);
    if (server->session.peer)
        (void)rpma_peer_delete(&server->session.peer);
    memory_free(&server->memory);
    free(server);
    return is_fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
