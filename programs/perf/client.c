// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- runs one load after the other and reports the results

#include "client.h"
#include "failure.h"
#include "recording.h"
#include "sides.h"
#include "waiting.h"

#include <stdlib.h>

// The private data of the connection shows whether the server is an rpma-perf of this protocol.
static bool check_greeting(const struct control *control, const struct options *options) {
    struct rpma_conn_private_data data;
    if (!succeeds(rpma_conn_get_private_data(control->link.conn, &data), "no private data"))
        return false;
    struct greeting greeting = greeting_of(&data);
    if (!greeting.is_ours)
        return fail("%s port %s is no rpma-perf", options->address, options->port);
    if (greeting.protocol != PROTOCOL)
        return fail("the server speaks version %u of the protocol, this client "
                    "version %d: use "
                    "the same rpma-perf on both sides",
                    greeting.protocol, PROTOCOL);
    return true;
}

static bool connect_control(struct client *client) {
    const struct options *options = client->options;
    struct session *session = &client->session;
    struct rpma_conn_req *request = NULL;
    if (!session_open_peer(session, options->address, RPMA_UTIL_IBV_CONTEXT_REMOTE))
        return false;
    struct rpma_conn_cfg *cfg = link_cfg();
    bool is_made =
        cfg && succeeds(rpma_conn_req_new(session->peer, options->address, options->port, cfg,
                                          &request),
                        "cannot connect to %s port %s", options->address, options->port);
    (void)rpma_conn_cfg_delete(&cfg);
    // The client sends first, because on iWARP the server must not.
    if (!is_made || !control_open(&session->control, session->peer, &request) ||
        !check_greeting(&session->control, options) || !client_ask(client, "hello", "hello"))
        return false;
    const struct message *hello = &session->control.in;
    uint64_t direct_write;
    side_describe(&client->self, session->device, "dram");
    bool is_told = message_get(hello, "librpma", client->server.librpma, SIDE_TEXT) &&
                   message_get(hello, "kernel", client->server.kernel, SIDE_TEXT) &&
                   message_get(hello, "device", client->server.device, SIDE_TEXT) &&
                   message_get(hello, "memory", client->server.memory, SIDE_TEXT) &&
                   message_get_number(hello, "direct-write", 0, 1, &direct_write);
    client->server.direct_write = is_told && direct_write;
    return is_told || fail("the server does not say what it runs on");
}

// A persistent flush is measured only if the server's operator states direct write to PMem.
static bool check_operations(const struct client *client) {
    static const char why[] =
        "the server states no direct write to persistent memory: start it with --memory and "
        "--direct-write where that is true (rpma-perf(1) says where)";
    struct options *options = client->options;
    size_t kept = 0;
    for (size_t i = 0; i < options->operation_count; i++) {
        const struct operation *operation = &operations[options->operations[i]];
        if (client->server.direct_write || operation->flush != RPMA_FLUSH_TYPE_PERSISTENT)
            options->operations[kept++] = options->operations[i];
        else if (options->takes_all)
            complain("%s is left out: %s", operation->name, why);
        else
            return fail("%s: %s", operation->name, why);
    }
    options->operation_count = kept;
    return true;
}

static uint64_t progress_of(const struct crew *crew) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < crew->plan.threads; i++)
        sum += atomic_load_explicit(&crew->workers[i].progress, memory_order_relaxed);
    return sum;
}

static bool all_wait(const struct crew *crew) {
    return atomic_load(&crew->waiting) == crew->plan.threads;
}

static bool one_has_ended(const struct crew *crew) {
    for (uint64_t i = 0; i < crew->plan.threads; i++)
        if (atomic_load(&crew->workers[i].has_ended))
            return true;
    return false;
}

// Waits until the workers have reached the given state. Returns false on failure.
static bool watch(struct client *client, bool (*is_reached)(const struct crew *crew),
                  bool ends_early) {
    struct session *session = &client->session;
    struct crew *crew = session->crew;
    uint64_t began = now_ns(), moved = began, spoke = began, last = 0;
    while (!is_reached(crew)) {
        enum news news = session_wait(session, TICK_MS);
        if (!recording_write(crew))
            return false;
        uint64_t now = now_ns(), progress = progress_of(crew);
        if (news == NEWS_STOP)
            return fail("interrupted");
        if (news == NEWS_LOST || failure())
            return false;
        if (news == NEWS_MESSAGE)
            return fail("the server speaks without being asked");
        if (ends_early && !is_reached(crew) && one_has_ended(crew))
            return fail("a thread ended early");
        if (progress != last)
            moved = now;
        last = progress;
        if (now - spoke > (uint64_t)BEAT_MS * 1000000) {
            if (!client_ask(client, "alive", "ok"))
                return false;
            spoke = now;
        }
        if (now - moved > (uint64_t)PATIENCE_MS * 1000000)
            return fail("no operation completed for %d s", PATIENCE_MS / 1000);
        progress_show(crew->operation->name, crew->plan.size, progress,
                      (double)(now - began) / 1e9);
    }
    return !failure();
}

static bool finish(struct client *client, struct result *result) {
    const struct crew *crew = client->session.crew;
    struct message *out = &client->session.control.out;
    message_begin(out, "stop");
    for (uint64_t i = 0; i < crew->plan.connections; i++) {
        char key[24];
        snprintf(key, sizeof(key), "c%lu", (unsigned long)i);
        message_add_number(out, key, crew->lanes[i].done);
    }
    if (!control_send(&client->session.control) || !client_await(client, "result"))
        return false;
    result->is_verified = crew->plan.verify;
    return message_get_number(&client->session.control.in, "cpu_ns", 0, UINT64_MAX,
                              &result->server_cpu_ns) ||
           fail("the server does not say how long its processors worked");
}

static void collect(const struct crew *crew, struct result *result) {
    uint64_t first = UINT64_MAX, last = 0;
    histogram_reset(&result->latency);
    for (uint64_t i = 0; i < crew->plan.threads; i++) {
        const struct worker *worker = &crew->workers[i];
        histogram_merge(&result->latency, &worker->histogram);
        first = worker->began_at < first ? worker->began_at : first;
        last = worker->ended_at > last ? worker->ended_at : last;
    }
    result->operation = crew->plan.operation;
    result->size = crew->plan.size;
    result->operations = result->latency.count;
    result->seconds = (double)(last - first) / 1e9;
}

static bool run_load(struct client *client, struct result *result) {
    struct crew *crew = client->session.crew;
    client->session.watches_lanes = true;
    if (!crew_start(crew, load_run) || !watch(client, all_wait, true) ||
        !client_ask(client, "measure", "ok"))
        return false;
    uint64_t cpu_before = cpu_ns();
    crew_open_gate(crew);
    if (!watch(client, crew_has_ended, false))
        return false;
    result->client_cpu_ns = cpu_ns() - cpu_before;
    crew_stop(crew);
    collect(crew, result);
    return finish(client, result);
}

// Completes the ledger, if there is one. Its load is meant to end with the loss of the server.
static bool end_ledger(struct client *client, bool is_done) {
    struct crew *crew = client->session.crew;
    char why[256] = "no reason";
    uint64_t records;
    if (!crew || !crew->recording)
        return is_done;
    crew_stop(crew);
    bool is_lost = !is_done && !is_stopping() && !crew->recording->has_failed;
    if (is_lost) {
        snprintf(why, sizeof(why), "%s", failure() ? failure() : why);
        failure_forget();
    }
    if (!recording_end(crew, &records))
        return false;
    if (is_lost && !records)
        return fail("%s", why);
    progress_clear();
    printf("%lu records recorded in %s%s%s\n", records, client->options->ledger,
           is_lost ? " until the server was lost: " : "", is_lost ? why : "");
    fflush(stdout);
    return is_done || is_lost;
}

static bool run_one(struct client *client) {
    struct result *result = calloc(1, sizeof(*result));
    if (!result)
        return fail("out of memory");
    const char *ledger = client->options->ledger;
    bool is_done = client_prepare(client) &&
                   (!ledger || recording_begin(client->session.crew, ledger)) &&
                   run_load(client, result);
    bool has_figures = is_done;
    is_done = end_ledger(client, is_done);
    client->session.watches_lanes = false;
    crew_delete(client->session.crew);
    client->session.crew = NULL;
    if (has_figures && client->json)
        json_add(client->json, result);
    else if (has_figures)
        table_add(result);
    free(result);
    return is_done;
}

static bool run_all(struct client *client) {
    struct options *options = client->options;
    for (size_t i = 0; i < options->operation_count; i++)
        for (size_t j = 0; j < options_size_count(options, i); j++) {
            options_choose(options, i, j);
            if (!run_one(client))
                return false;
        }
    return true;
}

static bool begin_report(struct client *client) {
    if (!client->options->json) {
        table_begin(client->options, &client->self, &client->server);
        return true;
    }
    client->json = json_begin(client->options, &client->self, &client->server);
    return client->json != NULL;
}

int run_client(struct options *options) {
    struct client *client = calloc(1, sizeof(*client));
    bool is_done = false;
    if (client) {
        client->options = options;
        is_done = connect_control(client) && check_operations(client) && begin_report(client) &&
                  run_all(client);
        control_close(&client->session.control);
        if (client->session.peer)
            (void)rpma_peer_delete(&client->session.peer);
        if (is_done)
            is_done = json_end(client->json);
        else
            json_drop(client->json);
        free(client);
    }
    progress_clear();
    if (!is_done)
        complain("%s", failure() ? failure() : "out of memory");
    return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}
