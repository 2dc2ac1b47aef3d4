// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// script_values.c -- values, members, operations and receives by their names

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
    NAMED(RPMA_F_SOLICITED),
    NAMED(RPMA_FLUSH_MODE_NATIVE),
    NAMED(RPMA_FLUSH_TYPE_PERSISTENT),
    NAMED(RPMA_FLUSH_TYPE_VISIBILITY),
    NAMED(RPMA_MR_USAGE_ATOMIC),
    NAMED(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT),
    NAMED(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY),
    NAMED(RPMA_MR_USAGE_READ_SRC),
    NAMED(RPMA_MR_USAGE_WRITE_DST),
    NAMED(RPMA_UTIL_IBV_CONTEXT_REMOTE),
    NAMED(RPMA_WORK_ATOMIC_WRITE),
    NAMED(RPMA_WORK_COMPARE_SWAP),
    NAMED(RPMA_WORK_FETCH_ADD),
    NAMED(RPMA_WORK_FLUSH),
    NAMED(RPMA_WORK_SEND),
    NAMED(RPMA_WORK_WRITE),
    NAMED(RDMA_CM_EVENT_ADDR_CHANGE),
    NAMED(RDMA_CM_EVENT_CONNECT_ERROR),
    NAMED(RDMA_CM_EVENT_CONNECT_REQUEST),
    NAMED(RDMA_CM_EVENT_DEVICE_REMOVAL),
    NAMED(RDMA_CM_EVENT_DISCONNECTED),
    NAMED(RDMA_CM_EVENT_ESTABLISHED),
    NAMED(RDMA_CM_EVENT_REJECTED),
    NAMED(RDMA_CM_EVENT_UNREACHABLE),
    NAMED(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE),
    {"EAI_NONAME", (uint64_t)EAI_NONAME},
    NAMED(UINT32_MAX),
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

// ---- members -------------------------------------------------------------------------------

#define FIELD(structure, member) \
    { #member, offsetof(struct structure, member), sizeof(((struct structure *)0)->member) }

const struct script_field script_device_fields[] = {FIELD(fake_device, addresses),
                                                    FIELD(fake_device, atomic_cap),
                                                    FIELD(fake_device, gai_error),
                                                    FIELD(fake_device, max_sge),
                                                    FIELD(fake_device, native_flush),
                                                    FIELD(fake_device, native_atomic_write),
                                                    FIELD(fake_device, no_device),
                                                    FIELD(fake_device, other_device),
                                                    FIELD(fake_device, plain_qp),
                                                    FIELD(fake_device, pmem),
                                                    FIELD(fake_device, silent),
                                                    FIELD(fake_device, unlisted),
                                                    {NULL, 0, 0}};

static const struct script_field work_fields[] = {
    FIELD(rpma_work, type),       FIELD(rpma_work, remote),    FIELD(rpma_work, remote_offset),
    FIELD(rpma_work, local),      FIELD(rpma_work, sgl),       FIELD(rpma_work, nsge),
    FIELD(rpma_work, flush_type), FIELD(rpma_work, flags),     FIELD(rpma_work, flush_len),
    FIELD(rpma_work, op_context), FIELD(rpma_work, reserved1), {NULL, 0, 0}};

static const struct script_field receive_fields[] = {FIELD(rpma_receive, local),
                                                     FIELD(rpma_receive, op_context),
                                                     FIELD(rpma_receive, reserved),
                                                     {NULL, 0, 0}};

// "OFFSET+LEN" in the region of the world, or "NULL+OFFSET+LEN".
static struct rpma_sge piece_of(const char *text) {
    const bool none = strncmp(text, "NULL+", 5) == 0;
    char *len;
    const size_t offset = strtoull(text + (none ? 5 : 0), &len, 0);
    return (struct rpma_sge){none ? NULL : w.h.mr, offset, strtoull(len + 1, NULL, 0)};
}

// Pieces with commas between them.
static const struct rpma_sge *list_of(const char *text) {
    static struct rpma_sge list[4];
    for (size_t i = 0; i < LENGTH(list) && text; i++) {
        list[i] = piece_of(text);
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
    }
    return list;
}

static void set(void *base, const struct script_field *field, const char *text) {
    char *const member = (char *)base + field->offset;
    if (strcmp(field->name, "local") == 0) {
        *(struct rpma_sge *)(void *)member = piece_of(text);
    } else if (strcmp(field->name, "sgl") == 0) {
        *(const struct rpma_sge **)(void *)member = list_of(text);
    } else {
        const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
        const uint64_t value = strcmp(text, "NULL") == 0 ? 0 : value_of(text);
        const char *const bytes = (const char *)&value;
        memcpy(member, bytes + (is_big_endian ? sizeof(value) - field->size : 0), field->size);
    }
}

void script_set_fields(void *base, const struct script_field *fields, const char *text) {
    char words[256], *rest = words;
    snprintf(words, sizeof(words), "%s", text);
    for (char *word; (word = strsep(&rest, " "));) {
        char *value = word;
        const char *name = strsep(&value, "=");
        const struct script_field *field = fields;
        while (field->name && strcmp(field->name, name) != 0)
            field++;
        if (!field->name || !value)
            fail_msg("no member is called %s", name);
        set(base, field, value);
    }
}

// ---- operations and receives ---------------------------------------------------------------

struct rpma_work script_work[4];
struct rpma_receive script_receives[4];
unsigned script_work_count, script_receive_count;

void script_add_work(const char *text) {
    struct rpma_work *work = &script_work[script_work_count++];
    char typed[256];
    *work = (struct rpma_work){.remote = w.h.remote, .flags = RPMA_F_COMPLETION_ALWAYS};
    snprintf(typed, sizeof(typed), "type=%s", text);
    script_set_fields(work, work_fields, typed);
    if (work->type == RPMA_WORK_SEND)
        work->remote = NULL;
}

void script_add_writes(const char *text) {
    const unsigned count = (unsigned)atoi(text);
    for (unsigned i = 0; i < count; i++) {
        char write[128];
        snprintf(write, sizeof(write),
                 "RPMA_WORK_WRITE remote_offset=8 local=%u+24 op_context=%#x", 16 + i,
                 0x1122 + i);
        script_add_work(write);
    }
}

void script_add_receive(const char *text) {
    struct rpma_receive *receive = &script_receives[script_receive_count++];
    *receive = (struct rpma_receive){0};
    script_set_fields(receive, receive_fields, text);
}
