// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// answer.c -- how the server answers each message of the client

#include "failure.h"
#include "serve.h"
#include "server.h"
#include "waiting.h"

#include <sys/random.h>

bool server_refuse(struct server *server) {
    server->is_busy = false;
    message_begin(&server->session.control.out, "refused");
    message_add(&server->session.control.out, "reason", failure() ? failure() : "unknown");
    complain("refused: %s", failure() ? failure() : "unknown");
    failure_forget();
    return control_send(&server->session.control);
}

static bool answer(struct server *server, const char *word) {
    message_begin(&server->session.control.out, word);
    return control_send(&server->session.control);
}

static bool say_hello(struct server *server) {
    struct message *out = &server->session.control.out;
    message_begin(out, "hello");
    message_add(out, "librpma", server->self.librpma);
    message_add(out, "kernel", server->self.kernel);
    message_add(out, "device", server->self.device);
    message_add(out, "memory", server->self.memory);
    message_add_number(out, "direct-write", server->options->direct_write);
    return control_send(&server->session.control);
}

// Adds the descriptor of the load's memory: its place, whether direct write to persistent
// memory is stated, and which operations the device serves natively.
static bool add_target(struct server *server, struct message *out) {
    const struct rpma_mr_local *mr = server->session.crew->mr;
    struct rpma_peer_cfg *cfg = NULL;
    unsigned char bytes[UINT8_MAX];
    struct rpma_conn_private_data packed = {bytes, sizeof(bytes)};
    bool is_packed =
        succeeds(rpma_peer_cfg_new(&cfg), "no configuration") &&
        succeeds(rpma_peer_cfg_set_direct_write_to_pmem(cfg, server->options->direct_write),
                 "no statement") &&
        succeeds(rpma_conn_private_data_pack(&mr, 1, cfg, NULL, 0, &packed), "no descriptor");
    if (is_packed)
        message_add_bytes(out, "target", bytes, packed.len);
    (void)rpma_peer_cfg_delete(&cfg);
    return is_packed;
}

static bool say_ready(struct server *server) {
    struct message *out = &server->session.control.out;
    message_begin(out, "ready");
    // Random, because this number proves that a connection of the load is this client's.
    if (getrandom(&server->session_number, sizeof(server->session_number), 0) !=
        sizeof(server->session_number))
        return fail("no random number");
    message_add_number(out, "session", server->session_number);
    return add_target(server, out) && control_send(&server->session.control);
}

static bool make_crew(struct server *server, const struct plan *plan) {
    bool is_persistent = operations[plan->operation].flush == RPMA_FLUSH_TYPE_PERSISTENT;
    uint64_t size = plan_target_size(plan);
    int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND |
                RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    struct memory memory = server->memory;
    if (is_persistent) // the client has checked that direct write is stated
        usage |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    if (memory.ptr && memory.size < size)
        return fail("%s has %zu bytes, these settings need %lu", server->options->memory,
                    memory.size, size);
    if (!memory.ptr && size > server->options->limit)
        return fail("these settings need %lu bytes of memory, the server's --limit is %lu",
                    size, server->options->limit);
    if (!memory.ptr && !memory_allocate(&memory, size))
        return false;
    memory.size = size;
    server->session.crew = crew_new(plan, server->session.peer, serve_queues(plan), &memory,
                                    !server->memory.ptr, usage);
    if (server->session.crew && plan->verify)
        serve_fill(server->session.crew);
    return server->session.crew != NULL;
}

void server_drop_crew(struct server *server) {
    crew_delete(server->session.crew);
    server->session.crew = NULL;
}

static bool on_plan(struct server *server) {
    struct plan plan;
    server_drop_crew(server);
    server->is_busy = true;
    if (plan_get_from(&plan, &server->session.control.in) && make_crew(server, &plan) &&
        say_ready(server))
        return true;
    server_drop_crew(server);
    return server_refuse(server);
}

static bool on_begin(struct server *server) {
    struct crew *crew = server->session.crew;
    if (!crew || crew->connected < crew->plan.connections || crew->has_begun)
        return fail("there is nothing to begin") || server_refuse(server);
    crew->has_begun = true;
    if (crew->operation->is_message && !crew_start(crew, serve_run))
        return server_refuse(server);
    return answer(server, "ok");
}

// The client sends "alive" during a load, because the server gives up a silent client.
static bool on_alive(struct server *server) {
    return answer(server, "ok");
}

static bool on_measure(struct server *server) {
    server->cpu_before = cpu_ns();
    return answer(server, "ok");
}

static bool take_counts(const struct crew *crew, const struct message *in, uint64_t *counts) {
    for (uint64_t i = 0; i < crew->plan.connections; i++) {
        char key[24];
        snprintf(key, sizeof(key), "c%lu", (unsigned long)i);
        if (!message_get_number(in, key, 0, UINT64_MAX, &counts[i]))
            return fail("the client does not say how much it did");
    }
    return true;
}

static bool on_stop(struct server *server) {
    struct crew *crew = server->session.crew;
    uint64_t cpu = cpu_ns() - server->cpu_before;
    uint64_t counts[CONNECTIONS_MAX];
    if (!crew)
        return fail("there is nothing to stop") || server_refuse(server);
    if (!take_counts(crew, &server->session.control.in, counts) ||
        (crew->plan.verify && !serve_check(crew, counts)))
        return server_refuse(server);
    crew_stop(crew);
    if (failure())
        return server_refuse(server);
    struct message *out = &server->session.control.out;
    message_begin(out, "result");
    message_add_number(out, "cpu_ns", cpu);
    server->is_busy = false;
    return control_send(&server->session.control);
}

bool server_answer(struct server *server) {
    static const struct {
        const char *word;
        bool (*perform)(struct server *server);
    } words[] = {
        {"hello", say_hello},    {"plan", on_plan},   {"begin", on_begin},
        {"measure", on_measure}, {"alive", on_alive}, {"stop", on_stop},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (message_is(&server->session.control.in, words[i].word))
            return words[i].perform(server);
    fail("a word that this server does not know");
    return server_refuse(server);
}
