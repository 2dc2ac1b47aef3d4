// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// data.c -- commands for remote memory access and messages, posted or added to a batch

#include "operation.h"

struct operation read_operation(const struct args *args) {
    struct operation operation = {
        .offset = arg_number_or(args, "off", 0),
        .remote_offset = arg_number_or(args, "roff", 0),
        .len = arg_number_or(args, "len", 0),
        .flags = (int)arg_number_or(args, "flags", RPMA_F_COMPLETION_ALWAYS),
        .imm = (uint32_t)arg_number_or(args, "imm", 0),
        .context = (const void *)(uintptr_t)arg_number_or(args, "ctx", 0),
    };
    if (arg_text_or(args, "batch", NULL) != NULL)
        operation.batch = the_batch(args);
    else
        operation.conn = the_conn(args);
    if (arg_text_or(args, "mr", NULL) != NULL)
        operation.local = world.mr[arg_slot(args, "mr", MAX_REGIONS)];
    if (arg_text_or(args, "rmr", NULL) != NULL)
        operation.remote = world.remote[arg_slot(args, "rmr", MAX_REGIONS)];
    return operation;
}

static int do_read(const struct args *args) {
    struct operation o = read_operation(args);
    if (o.batch != NULL)
        return rpma_batch_read(o.batch, o.local, o.offset, o.remote, o.remote_offset, o.len,
                               o.flags, o.context);
    return rpma_read(o.conn, o.local, o.offset, o.remote, o.remote_offset, o.len, o.flags,
                     o.context);
}

static int do_write(const struct args *args) {
    struct operation o = read_operation(args);
    if (o.batch != NULL)
        return rpma_batch_write(o.batch, o.remote, o.remote_offset, o.local, o.offset, o.len,
                                o.flags, o.context);
    return rpma_write(o.conn, o.remote, o.remote_offset, o.local, o.offset, o.len, o.flags,
                      o.context);
}

static int do_write_imm(const struct args *args) {
    struct operation o = read_operation(args);
    if (o.batch != NULL)
        return rpma_batch_write_with_imm(o.batch, o.remote, o.remote_offset, o.local, o.offset,
                                         o.len, o.flags, o.imm, o.context);
    return rpma_write_with_imm(o.conn, o.remote, o.remote_offset, o.local, o.offset, o.len,
                               o.flags, o.imm, o.context);
}

static int do_atomic(const struct args *args) {
    struct operation o = read_operation(args);
    char bytes[RPMA_ATOMIC_WRITE_ALIGNMENT] = {0};
    arg_bytes(args, "bytes", bytes, sizeof(bytes));
    if (o.batch != NULL)
        return rpma_batch_atomic_write(o.batch, o.remote, o.remote_offset, bytes, o.flags,
                                       o.context);
    return rpma_atomic_write(o.conn, o.remote, o.remote_offset, bytes, o.flags, o.context);
}

static int do_flush(const struct args *args) {
    struct operation o = read_operation(args);
    enum rpma_flush_type type = arg_number(args, "persistent") != 0
                                    ? RPMA_FLUSH_TYPE_PERSISTENT
                                    : RPMA_FLUSH_TYPE_VISIBILITY;
    if (o.batch != NULL)
        return rpma_batch_flush(o.batch, o.remote, o.remote_offset, o.len, type, o.flags,
                                o.context);
    return rpma_flush(o.conn, o.remote, o.remote_offset, o.len, type, o.flags, o.context);
}

static int do_send(const struct args *args) {
    struct operation o = read_operation(args);
    if (o.batch != NULL)
        return rpma_batch_send(o.batch, o.local, o.offset, o.len, o.flags, o.context);
    return rpma_send(o.conn, o.local, o.offset, o.len, o.flags, o.context);
}

static int do_send_imm(const struct args *args) {
    struct operation o = read_operation(args);
    if (o.batch != NULL)
        return rpma_batch_send_with_imm(o.batch, o.local, o.offset, o.len, o.flags, o.imm,
                                        o.context);
    return rpma_send_with_imm(o.conn, o.local, o.offset, o.len, o.flags, o.imm, o.context);
}

/* With count=: so many, each behind the one before, with contexts that follow each other. */
static int do_recv(const struct args *args) {
    struct operation o = read_operation(args);
    uint64_t count = arg_number_or(args, "count", 1);
    int ret = 0;
    for (uint64_t i = 0; ret == 0 && i < count; i++)
        ret = rpma_recv(o.conn, o.local, o.offset + i * o.len, o.len,
                        (const char *)o.context + i);
    return ret;
}

static int do_srq_recv(const struct args *args) {
    struct rpma_mr_local *mr = NULL;
    if (arg_text_or(args, "mr", NULL) != NULL)
        mr = world.mr[arg_slot(args, "mr", MAX_REGIONS)];
    return rpma_srq_recv(world.srq[arg_slot(args, "srq", MAX_OTHERS)], mr,
                         arg_number_or(args, "off", 0), arg_number_or(args, "len", 0),
                         (const void *)(uintptr_t)arg_number_or(args, "ctx", 0));
}

/* Posts the same message until the queue refuses it; the answer says how many went in. */
static int do_send_until_full(const struct args *args) {
    struct operation o = read_operation(args);
    uint64_t limit = arg_number(args, "limit");
    uint64_t posted = 0;
    int ret = 0;
    while (ret == 0 && posted < limit) {
        ret = rpma_send(o.conn, o.local, o.offset, o.len, o.flags,
                        (const void *)(uintptr_t)(posted + 1));
        if (ret == 0)
            posted++;
    }
    reply("posted=%llu", (unsigned long long)posted);
    return ret;
}

const struct command data_commands[] = {
    {"read", do_read},
    {"write", do_write},
    {"write-imm", do_write_imm},
    {"atomic", do_atomic},
    {"flush", do_flush},
    {"send", do_send},
    {"send-imm", do_send_imm},
    {"recv", do_recv},
    {"srq-recv", do_srq_recv},
    {"send-until-full", do_send_until_full},
    {NULL, NULL},
};
