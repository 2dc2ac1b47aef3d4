// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// attach.c -- how a client and its server prepare a load

#include "client.h"
#include "failure.h"
#include "lane.h"
#include "waiting.h"

bool client_await(struct client *client, const char *word) {
    struct session *session = &client->session;
    const struct message *in = &session->control.in;
    uint64_t until = now_ns() + (uint64_t)PATIENCE_MS * 1000000;
    enum news news;
    do
        news = session_wait(session, PATIENCE_MS);
    while (news == NEWS_WORKER && now_ns() < until);
    if (news == NEWS_STOP)
        return fail("interrupted");
    if (news != NEWS_MESSAGE)
        return fail("the server does not answer");
    if (message_is(in, word))
        return true;
    char reason[256] = "no reason given";
    (void)message_get(in, "reason", reason, sizeof(reason));
    return fail("the server refuses: %s", reason);
}

bool client_ask(struct client *client, const char *word, const char *answer) {
    message_begin(&client->session.control.out, word);
    return control_send(&client->session.control) && client_await(client, answer);
}

static bool take_target(struct client *client, struct rpma_peer_cfg **peer_cfg) {
    const struct message *ready = &client->session.control.in;
    unsigned char bytes[UINT8_MAX];
    size_t size = sizeof(bytes);
    uint32_t regions = 1;
    if (!message_get_number(ready, "session", 0, UINT64_MAX, &client->session_number) ||
        !message_get_bytes(ready, "target", bytes, &size))
        return fail("the server does not say where its memory is");
    const struct rpma_conn_private_data packed = {bytes, (uint8_t)size};
    return succeeds(rpma_conn_private_data_unpack(&packed, &client->session.crew->remote,
                                                  &regions, peer_cfg, NULL, NULL),
                    "cannot use the server's memory") &&
           (client->session.crew->remote && *peer_cfg ? true
                                                      : fail("the server states too little"));
}

// The server may have sent the reason of a failure over the control connection.
static bool explain(struct client *client) {
    if (session_wait(&client->session, TICK_MS) == NEWS_MESSAGE) {
        char reason[256];
        if (message_get(&client->session.control.in, "reason", reason, sizeof(reason))) {
            failure_forget();
            return fail("the server refuses: %s", reason);
        }
    }
    return false;
}

static bool connect_lane(struct client *client, const struct rpma_peer_cfg *peer_cfg) {
    struct session *session = &client->session;
    struct crew *crew = session->crew;
    struct lane *lane = &crew->lanes[crew->connected];
    struct rpma_conn_req *request = NULL;
    struct rpma_conn_cfg *cfg = crew_next_cfg(crew, lane_queues(&crew->plan));
    if (!cfg)
        return false;
    (void)rpma_conn_cfg_set_max_sge(cfg, (uint32_t)crew->plan.elements);
    if (crew->plan.inline_size > ATOMIC_SIZE) // every connection has room for ATOMIC_SIZE
        (void)rpma_conn_cfg_set_inline_size(cfg, (uint32_t)crew->plan.inline_size);
    bool is_made = succeeds(rpma_conn_req_new(session->peer, client->options->address,
                                              client->options->port, cfg, &request),
                            "cannot make a connection with these settings");
    (void)rpma_conn_cfg_delete(&cfg);
    if (!is_made)
        return false;
    if (!link_open(&lane->link, &request, "data", client->session_number, crew->connected))
        return explain(client);
    crew->connected++;
    return succeeds(rpma_conn_apply_remote_peer_cfg(lane->link.conn, peer_cfg),
                    "cannot apply the server's configuration") &&
           lane_prepare(lane);
}

static bool connect_lanes(struct client *client) {
    struct rpma_peer_cfg *peer_cfg = NULL;
    bool is_connected = take_target(client, &peer_cfg);
    while (is_connected && client->session.crew->connected < client->options->plan.connections)
        is_connected = connect_lane(client, peer_cfg) && !is_stopping();
    if (peer_cfg)
        (void)rpma_peer_cfg_delete(&peer_cfg);
    return is_connected;
}

static bool make_crew(struct client *client) {
    const struct plan *plan = &client->options->plan;
    const int usage = RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND |
                      RPMA_MR_USAGE_RECV;
    struct memory memory;
    if (!memory_allocate(&memory, plan->connections * lane_memory_size(plan)))
        return false;
    client->session.crew =
        crew_new(plan, client->session.peer, lane_queues(plan), &memory, true, usage);
    if (!client->session.crew)
        return false;
    client->session.crew->limits = &client->options->limits;
    return true;
}

bool client_prepare(struct client *client) {
    struct control *control = &client->session.control;
    message_begin(&control->out, "plan");
    plan_add_to(&client->options->plan, &control->out);
    return make_crew(client) && control_send(control) && client_await(client, "ready") &&
           connect_lanes(client) && client_ask(client, "begin", "ok");
}
