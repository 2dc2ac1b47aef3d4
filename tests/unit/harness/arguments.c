// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// arguments.c -- chooses arguments by type and name.

#include "arguments.h"

#include <stdio.h>

const struct call_by_name *call_named(const char *name) {
    for (const struct call_by_name *call = calls_by_name; call->name; call++)
        if (strcmp(call->name, name) == 0)
            return call;
    return NULL;
}

static const struct {
    uintptr_t value;
    const char *names; // names of parameters, between blanks
} good_numbers[] = {
    {0, " type threshold level advice offset dst_offset src_offset index nmrs solicited_only "},
    {0, " port "}, // source port
    {1, " num_entries supported shared comp_vector ipv6_only count "},
    {2, " max_ops "},
    {5, " timeout_ms period_us limit "},
    {7, " imm "},
    {8, " len "},
    {16, " inline_size "},
    {21, " desc_size "},
    {64, " size "},
    {RPMA_MR_USAGE_READ_SRC, " usage "},
    {RPMA_F_COMPLETION_ALWAYS, " flags "},
    {RPMA_FLUSH_MODE_NATIVE, " mode "},
};

static bool names(const char *list, const char *name) {
    char word[64];
    snprintf(word, sizeof(word), " %s ", name);
    return strstr(list, word);
}

static const char *without_const(const char *type) {
    return strncmp(type, "const ", 6) == 0 ? type + 6 : type;
}

static bool ends_with(const char *name, const char *end) {
    const size_t length = strlen(name);
    const size_t of_end = strlen(end);
    return length >= of_end && strcmp(name + length - of_end, end) == 0;
}

// The handle in the fixture that has this type, or for "**" its address in the fixture;
// otherwise 0.
static uintptr_t handle(const char *type, const struct fixture *w) {
    const struct {
        const char *type;
        const void *place;
    } handles[] = {
        {"struct ibv_context *", &w->h.context},
        {"struct rpma_peer_cfg *", &w->h.pcfg},
        {"struct rpma_peer *", &w->h.peer},
        {"struct rpma_mr_local *", &w->h.mr},
        {"struct rpma_mr_remote *", &w->h.remote},
        {"struct rpma_srq_cfg *", &w->h.srq_cfg},
        {"struct rpma_srq *", &w->h.srq},
        {"struct rpma_conn_cfg *", &w->h.cfg},
        {"struct rpma_ep *", &w->h.ep},
        {"struct rpma_conn_req *", &w->h.req},
        {"struct rpma_conn *", &w->h.conn},
        {"struct rpma_batch *", &w->h.batch},
        {"struct rpma_cq_cfg *", &w->h.cq_cfg},
        {"struct rpma_ep_cfg *", &w->h.ep_cfg},
        {"struct rpma_cq *", &w->h.shared_cq},
    };
    const char *wanted = without_const(type);
    for (size_t i = 0; i < LENGTH(handles); i++) {
        const size_t length = strlen(handles[i].type);
        if (strncmp(handles[i].type, wanted, length) != 0)
            continue;
        if (strcmp(wanted + length, "*") == 0)
            return (uintptr_t)handles[i].place;
        if (wanted[length] == '\0')
            return *(const uintptr_t *)handles[i].place;
    }
    return 0;
}

static uintptr_t good(struct arguments *a, unsigned i, const struct fixture *w) {
    static _Thread_local unsigned char desc[21];
    const char *type = a->call->param[i].type, *name = a->call->param[i].name;
    for (size_t n = 0; n < LENGTH(good_numbers); n++)
        if (names(good_numbers[n].names, name) && type[strlen(type) - 1] != '*')
            return good_numbers[n].value;
    if (strcmp(name, "op_context") == 0)
        return 0x55;
    if (strcmp(name, "work") == 0) {
        static _Thread_local struct rpma_work work;
        work = (struct rpma_work){.type = RPMA_WORK_SEND, .flags = RPMA_F_COMPLETION_ALWAYS};
        return (uintptr_t)&work;
    }
    if (strcmp(name, "receives") == 0) {
        static _Thread_local struct rpma_receive receive;
        return (uintptr_t)&receive;
    }
    if (strcmp(type, "const char *") == 0)
        return (uintptr_t)(strcmp(name, "port") == 0 ? FIXTURE_PORT : FIXTURE_ADDRESS);
    if (strcmp(type, "const void *") == 0) { // a descriptor
        fixture_descriptor(desc, 0x1000, 64, 1, FIXTURE_EVERY_USAGE);
        return (uintptr_t)desc;
    }
    if (strcmp(type, "struct ibv_context *") == 0)
        return (uintptr_t)fake_context(0);
    if (strcmp(type, "struct rpma_cq *") == 0 && w->h.conn)
        return (uintptr_t)fixture_cq(w);
    // Arrays of handles and outputs of getters and waits are not handles of the fixture.
    const bool is_place = strstr(type, "**") && ends_with(name, "_ptr");
    const uintptr_t object = strstr(type, "**") && !is_place ? 0 : handle(type, w);
    if (object == 0 && strcmp(name, "cfg") == 0) // NULL: the defaults
        return 0;
    // Every setting that is a number may be 5, unless good_numbers has another value.
    if (object == 0 && type[strlen(type) - 1] != '*' && strstr(a->call->name, "_cfg_set_"))
        return 5;
    if (object == 0 && type[strlen(type) - 1] != '*')
        fail_msg("%s: no good value for %s %s: add one", a->call->name, type, name);
    return object ? object : (uintptr_t)a->scratch[i];
}

void arguments_good(struct arguments *a, const char *function, const struct fixture *w) {
    a->call = call_named(function);
    if (!a->call)
        fail_msg("librpma.h declares no %s", function);
    memset(a->scratch, 0x5a, sizeof(a->scratch));
    for (unsigned i = 0; i < a->call->params; i++)
        a->word[i] = good(a, i, w);
}

int arguments_trigger(const char *function, const struct fixture *w, bool nothing) {
    const bool waits = strstr(function, "_wait") || strstr(function, "_take_event");
    if (strncmp(function, "rpma_ep_next_", 13) == 0) {
        if (!nothing)
            fake_cm_event(fixture_ep_fd(w), RDMA_CM_EVENT_CONNECT_REQUEST, "hello", 5);
        return fixture_ep_fd(w);
    }
    if (strcmp(function, "rpma_conn_next_event") == 0) {
        if (!nothing)
            fake_cm_event(fixture_event_fd(w), RDMA_CM_EVENT_ESTABLISHED, "hello", 5);
        return fixture_event_fd(w);
    }
    if (strcmp(function, "rpma_peer_next_event") == 0) {
        if (!nothing)
            fake_async_event(fake_context(0), IBV_EVENT_PORT_ACTIVE, NULL, 1);
        return fake_context(0)->async_fd;
    }
    if (!w->h.conn || !waits)
        return -1;
    if (!nothing)
        fake_notify(fixture_qp(w)->send_cq);
    return fixture_cq_fd(fixture_cq(w));
}

bool arguments_set(struct arguments *a, const char *name, uintptr_t value) {
    for (unsigned i = 0; i < a->call->params; i++)
        if (strcmp(a->call->param[i].name, name) == 0) {
            a->word[i] = value;
            return true;
        }
    return false;
}

void arguments_watch(struct arguments *a) {
    for (unsigned i = 0; i < a->call->params; i++)
        if (a->word[i] == (uintptr_t)a->scratch[i])
            unit_watch(a->scratch[i], ARGUMENTS_SCRATCH, a->call->param[i].name);
}

void **arguments_handle(const struct arguments *a) {
    for (unsigned i = 0; i < a->call->params; i++)
        if (a->word[i] >= (uintptr_t)&w.h && a->word[i] < (uintptr_t)(&w.h + 1))
            return (void **)a->word[i]; // NOLINT(performance-no-int-to-ptr)
    return NULL;
}

int arguments_call(const struct arguments *a) {
    return a->call->call(a->word);
}
