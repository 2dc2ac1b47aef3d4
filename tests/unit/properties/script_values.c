// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// script_values.c -- values, members of the device and operations by their names

#include "script.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#define NAMED(value) \
    { #value, value }
static const struct {
    const char *name;
    uint64_t value;
} named[] = {
    NAMED(RPMA_CONN_LOST),
    NAMED(RPMA_F_COMPLETION_ALWAYS),
    NAMED(RPMA_F_COMPLETION_ON_ERROR),
    NAMED(RPMA_F_INLINE),
    NAMED(RPMA_FLUSH_MODE_NATIVE),
    NAMED(RPMA_FLUSH_TYPE_PERSISTENT),
    NAMED(RPMA_FLUSH_TYPE_VISIBILITY),
    NAMED(RPMA_MR_USAGE_ATOMIC),
    NAMED(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT),
    NAMED(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY),
    NAMED(RPMA_MR_USAGE_READ_SRC),
    NAMED(RPMA_MR_USAGE_WRITE_DST),
    NAMED(RPMA_UTIL_IBV_CONTEXT_REMOTE),
    NAMED(RPMA_WORK_FETCH_ADD),
    NAMED(RPMA_WORK_SEND),
    NAMED(RPMA_WORK_WRITE),
    NAMED(RDMA_CM_EVENT_ADDR_CHANGE),
    NAMED(RDMA_CM_EVENT_CONNECT_ERROR),
    NAMED(RDMA_CM_EVENT_CONNECT_REQUEST),
    NAMED(RDMA_CM_EVENT_DEVICE_REMOVAL),
    NAMED(RDMA_CM_EVENT_DISCONNECTED),
    NAMED(RDMA_CM_EVENT_ESTABLISHED),
    NAMED(RDMA_CM_EVENT_MULTICAST_JOIN),
    NAMED(RDMA_CM_EVENT_REJECTED),
    NAMED(RDMA_CM_EVENT_UNREACHABLE),
    NAMED(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE),
    {"EAI_NONAME", (uint64_t)EAI_NONAME},
    {"EAI_SERVICE", (uint64_t)EAI_SERVICE},
    {"EAI_ADDRFAMILY", (uint64_t)EAI_ADDRFAMILY},
    NAMED(SIM_IWARP),
};

uint64_t value_of(const char *text) {
    uint64_t value = 0;
    char words[256], *rest = words, *end;
    snprintf(words, sizeof(words), "%s", text);
    for (char *word; (word = strsep(&rest, "|"));) {
        size_t i = 0;
        while (i < LENGTH(named) && strcmp(named[i].name, word) != 0)
            i++;
        value |= i < LENGTH(named) ? named[i].value : strtoull(word, &end, 0);
        if (i == LENGTH(named) && (*end || end == word))
            fail_msg("no value is called %s", word);
    }
    return value;
}

// ---- the device, and operations ------------------------------------------------------------

#define MEMBER(of, member)                                \
    {                                                     \
#member, offsetof(struct fake_device, of member), \
            sizeof(((struct fake_device *)0)->of member)  \
    }
#define FIELD(member) MEMBER(, member)
#define PROFILE(member) MEMBER(profile., member)
#define LIMIT(member) MEMBER(profile.attr., member)
static const struct {
    const char *name;
    size_t offset, size;
} fields[] = {FIELD(addresses),
              FIELD(dax),
              FIELD(gai_error),
              FIELD(infiniband),
              FIELD(ipc_lock),
              FIELD(more_devices),
              FIELD(no_device),
              FIELD(other_device),
              FIELD(pmem),
              FIELD(silent),
              FIELD(unlisted),
              FIELD(user_namespace),
              PROFILE(early_error),
              PROFILE(has_native_atomic_write),
              PROFILE(has_native_flush),
              PROFILE(has_odp),
              PROFILE(has_qp_ex),
              PROFILE(transport),
              PROFILE(vectors),
              LIMIT(atomic_cap),
              LIMIT(max_cqe),
              LIMIT(max_mr_size),
              LIMIT(max_sge),
              LIMIT(max_srq_sge)};

void script_set_device(const char *text) {
    char words[256], *rest = words;
    snprintf(words, sizeof(words), "%s", text);
    for (char *word; (word = strsep(&rest, " "));) {
        const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
        const char *name = strsep(&word, "=");
        size_t i = 0;
        while (i < LENGTH(fields) && strcmp(fields[i].name, name) != 0)
            i++;
        if (i == LENGTH(fields) || !word)
            fail_msg("no member is called %s", name);
        const uint64_t value = value_of(word);
        memcpy((char *)fake_device() + fields[i].offset,
               (const char *)&value + (is_big_endian ? sizeof(value) - fields[i].size : 0),
               fields[i].size);
    }
}

struct rpma_work script_work[4];
unsigned script_work_count;

void script_add_work(const char *text) {
    const unsigned number = script_work_count++;
    const char *const len = strchr(text, ' ');
    char kind[64];
    snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(text, " "), text);
    struct rpma_work *work = &script_work[number];
    *work = (struct rpma_work){.type = (enum rpma_work_type)value_of(kind),
                               .remote = w.h.remote,
                               .remote_offset = 8,
                               .local = {w.h.mr, 16 + number, len ? value_of(len + 1) : 24},
                               .flags = RPMA_F_COMPLETION_ALWAYS,
                               .op_context = (void *)(uintptr_t)(0x1122 + number)};
    if (work->type == RPMA_WORK_SEND)
        work->remote = NULL;
}
