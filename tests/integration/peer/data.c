// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// data.c -- commands for remote memory access and messages

#include "peer.h"

/* What most operations take; a region that is not named is NULL. */
struct operation {
    struct rpma_conn *conn;
    struct rpma_mr_local *local;
    struct rpma_mr_remote *remote;
    size_t offset;
    size_t remote_offset;
    size_t len;
    int flags;
    uint32_t imm;
    const void *context;
};

static struct operation read_operation(const struct args *args) {
    struct operation operation = {
        .conn = the_conn(args),
        .offset = arg_number_or(args, "off", 0),
        .remote_offset = arg_number_or(args, "roff", 0),
        .len = arg_number_or(args, "len", 0),
        .flags = (int)arg_number_or(args, "flags", RPMA_F_COMPLETION_ALWAYS),
        .imm = (uint32_t)arg_number_or(args, "imm", 0),
        .context = (const void *)(uintptr_t)arg_number_or(args, "ctx", 0),
    };
    if (arg_text_or(args, "mr", NULL) != NULL)
        operation.local = world.mr[arg_slot(args, "mr", MAX_REGIONS)];
    if (arg_text_or(args, "rmr", NULL) != NULL)
        operation.remote = world.remote[arg_slot(args, "rmr", MAX_REGIONS)];
    return operation;
}

static int do_read(const struct args *args) {
    struct operation o = read_operation(args);
    return rpma_read(o.conn, o.local, o.offset, o.remote, o.remote_offset, o.len, o.flags,
                     o.context);
}

static int do_write(const struct args *args) {
    struct operation o = read_operation(args);
    return rpma_write(o.conn, o.remote, o.remote_offset, o.local, o.offset, o.len, o.flags,
                      o.context);
}

static int do_write_imm(const struct args *args) {
    struct operation o = read_operation(args);
    return rpma_write_with_imm(o.conn, o.remote, o.remote_offset, o.local, o.offset, o.len,
                               o.flags, o.imm, o.context);
}

static int do_atomic(const struct args *args) {
    struct operation o = read_operation(args);
    char bytes[RPMA_ATOMIC_WRITE_ALIGNMENT] = {0};
    arg_bytes(args, "bytes", bytes, sizeof(bytes));
    return rpma_atomic_write(o.conn, o.remote, o.remote_offset, bytes, o.flags, o.context);
}

static int do_flush(const struct args *args) {
    struct operation o = read_operation(args);
    enum rpma_flush_type type = arg_number(args, "persistent") != 0
                                    ? RPMA_FLUSH_TYPE_PERSISTENT
                                    : RPMA_FLUSH_TYPE_VISIBILITY;
    return rpma_flush(o.conn, o.remote, o.remote_offset, o.len, type, o.flags, o.context);
}

static int do_send(const struct args *args) {
    struct operation o = read_operation(args);
    return rpma_send(o.conn, o.local, o.offset, o.len, o.flags, o.context);
}

static int do_send_imm(const struct args *args) {
    struct operation o = read_operation(args);
    return rpma_send_with_imm(o.conn, o.local, o.offset, o.len, o.flags, o.imm, o.context);
}

static int do_recv(const struct args *args) {
    struct operation o = read_operation(args);
    return rpma_recv(o.conn, o.local, o.offset, o.len, o.context);
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
