// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// data.c -- commands for operations and receives: single ones, arrays and batches

#include <string.h>

#include "operation.h"

#define MAX_HELD 128
#define MAX_RECEIVES 1024

static const struct {
    const char *verb;
    enum rpma_work_type type;
} kinds[] = {
    {"read", RPMA_WORK_READ},
    {"write", RPMA_WORK_WRITE},
    {"write-imm", RPMA_WORK_WRITE_WITH_IMM},
    {"atomic", RPMA_WORK_ATOMIC_WRITE},
    {"flush", RPMA_WORK_FLUSH},
    {"send", RPMA_WORK_SEND},
    {"send-until-full", RPMA_WORK_SEND},
    {"send-imm", RPMA_WORK_SEND_WITH_IMM},
    {"add", RPMA_WORK_FETCH_ADD},
    {"swap", RPMA_WORK_COMPARE_SWAP},
};

/* Operations that "post" will post, with their pieces. */
static struct rpma_work held[MAX_HELD];
static struct rpma_sge held_pieces[MAX_HELD][MAX_ELEMENTS];
static uint32_t held_from, held_to;

static bool is(const struct args *args, const char *key, const char *value) {
    return strcmp(arg_text_or(args, key, ""), value) == 0;
}

static const void *the_context(const struct args *args) {
    return (const void *)(uintptr_t)arg_number_or(args, "ctx", 0);
}

/* The piece mr=, off=, len=; its region is NULL if the command names none. */
static struct rpma_sge the_piece(const struct args *args) {
    struct rpma_sge piece = {NULL, arg_number_or(args, "off", 0),
                             arg_number_or(args, "len", 0)};
    if (arg_text_or(args, "mr", NULL) != NULL)
        piece.mr = world.mr[arg_slot(args, "mr", MAX_REGIONS)];
    return piece;
}

/* Sets members of other kinds as well: the library must not read them. */
static struct rpma_work read_work(const struct args *args, struct rpma_sge *pieces) {
    struct rpma_work work = {
        .imm = (uint32_t)arg_number_or(args, "imm", 0),
        .remote_offset = arg_number_or(args, "roff", 0),
        .local = the_piece(args),
        .flush_type = RPMA_FLUSH_TYPE_VISIBILITY,
        .flush_len = arg_number_or(args, "len", 0),
        .flags = (int)arg_number_or(args, "flags", RPMA_F_COMPLETION_ALWAYS),
        .op_context = the_context(args),
    };
    work.sgl = read_list(args, pieces, &work.nsge);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(args->verb, kinds[i].verb) == 0)
            work.type = kinds[i].type;
    if (arg_text_or(args, "rmr", NULL) != NULL)
        work.remote = world.remote[arg_slot(args, "rmr", MAX_REGIONS)];
    if (work.type == RPMA_WORK_FLUSH && arg_number(args, "persistent") != 0)
        work.flush_type = RPMA_FLUSH_TYPE_PERSISTENT;
    arg_bytes(args, "bytes", &work.value, sizeof(work.value));
    arg_bytes(args, "compare", &work.compare, sizeof(work.compare));
    return work;
}

/* The operation's own function, which every release has. */
static int call(struct rpma_conn *conn, const struct rpma_work *w) {
    struct rpma_mr_local *local = (struct rpma_mr_local *)w->local.mr;
    struct rpma_mr_remote *remote = (struct rpma_mr_remote *)w->remote;
    size_t offset = w->local.offset, len = w->local.len;
    switch (w->type) {
    case RPMA_WORK_READ:
        return rpma_read(conn, local, offset, remote, w->remote_offset, len, w->flags,
                         w->op_context);
    case RPMA_WORK_WRITE:
        return rpma_write(conn, remote, w->remote_offset, local, offset, len, w->flags,
                          w->op_context);
    case RPMA_WORK_WRITE_WITH_IMM:
        return rpma_write_with_imm(conn, remote, w->remote_offset, local, offset, len, w->flags,
                                   w->imm, w->op_context);
    case RPMA_WORK_ATOMIC_WRITE:
        return rpma_atomic_write(conn, remote, w->remote_offset, (const char *)&w->value,
                                 w->flags, w->op_context);
    case RPMA_WORK_FLUSH:
        return rpma_flush(conn, remote, w->remote_offset, w->flush_len, w->flush_type, w->flags,
                          w->op_context);
    case RPMA_WORK_SEND:
        return rpma_send(conn, local, offset, len, w->flags, w->op_context);
    case RPMA_WORK_SEND_WITH_IMM:
        return rpma_send_with_imm(conn, local, offset, len, w->flags, w->imm, w->op_context);
    case RPMA_WORK_FETCH_ADD: /* these have none */
    case RPMA_WORK_COMPARE_SWAP:
        return rpma_post(conn, w, 1, NULL);
    }
    return RPMA_E_UNKNOWN;
}

static int hold(const struct args *args) {
    if (held_to == MAX_HELD)
        bad_script("%s: more than %d operations", args->verb, MAX_HELD);
    held[held_to] = read_work(args, held_pieces[held_to]);
    held_to++;
    return 0;
}

/* batch=: adds to the batch, or with index= replaces there. way=hold: keeps for "post".
 * way=post, or with pieces: rpma_post(). */
static int do_operation(const struct args *args) {
    static struct rpma_sge pieces[MAX_ELEMENTS];
    if (is(args, "way", "hold"))
        return hold(args);
    struct rpma_work work = read_work(args, pieces);
    if (arg_text_or(args, "index", NULL) != NULL)
        return rpma_batch_set(the_batch(args), (uint32_t)arg_number(args, "index"), &work);
    if (arg_text_or(args, "batch", NULL) != NULL)
        return rpma_batch_add(the_batch(args), &work);
    if (is(args, "way", "post") || work.sgl != NULL || work.nsge != 0)
        return rpma_post(the_conn(args), &work, 1, NULL);
    return call(the_conn(args), &work);
}

/* Posts the held operations and keeps those that the device did not take; forget=1 only drops
 * all held operations. */
static int do_post(const struct args *args) {
    uint32_t posted = UINT32_MAX;
    if (arg_number_or(args, "forget", 0) != 0) {
        held_from = held_to = 0;
        return 0;
    }
    int ret = rpma_post(the_conn(args), held + held_from, held_to - held_from, &posted);
    reply("posted=%u", posted);
    if (posted <= held_to - held_from)
        held_from += posted;
    if (held_from == held_to)
        held_from = held_to = 0;
    return ret;
}

static struct rpma_srq *the_srq(const struct args *args) {
    return world.srq[arg_slot(args, "srq", MAX_OTHERS)];
}

static int receive(const struct args *args, const struct rpma_receive *r) {
    struct rpma_mr_local *mr = (struct rpma_mr_local *)r->local.mr;
    if (strcmp(args->verb, "recv") == 0)
        return rpma_recv(the_conn(args), mr, r->local.offset, r->local.len, r->op_context);
    if (strcmp(args->verb, "req-recv") == 0)
        return rpma_conn_req_recv(the_request(args), mr, r->local.offset, r->local.len,
                                  r->op_context);
    return rpma_srq_recv(the_srq(args), mr, r->local.offset, r->local.len, r->op_context);
}

static int receive_many(const struct args *args, const struct rpma_receive *receives,
                        uint32_t count, uint32_t *posted) {
    if (strcmp(args->verb, "recv") == 0)
        return rpma_recv_many(the_conn(args), receives, count, posted);
    if (strcmp(args->verb, "req-recv") == 0)
        return rpma_conn_req_recv_many(the_request(args), receives, count, posted);
    return rpma_srq_recv_many(the_srq(args), receives, count, posted);
}

/* count=: so many receives, in adjacent memory and with consecutive contexts. way=many, or with
 * pieces: one call for all, and the answer says how many the queue took. */
static int do_receive(const struct args *args) {
    static struct rpma_receive receives[MAX_RECEIVES];
    static struct rpma_sge pieces[MAX_ELEMENTS];
    size_t count = arg_text_or(args, "count", NULL) != NULL
                       ? arg_slot(args, "count", MAX_RECEIVES + 1)
                       : 1;
    struct rpma_receive next = {.local = the_piece(args), .op_context = the_context(args)};
    uint32_t posted = UINT32_MAX;
    int ret = 0;
    next.sgl = read_list(args, pieces, &next.nsge);
    for (size_t i = 0; i < count; i++) {
        receives[i] = next;
        next.local.offset += next.local.len;
        next.op_context = (const char *)next.op_context + 1;
    }
    if (is(args, "way", "many") || next.sgl != NULL || next.nsge != 0) {
        ret = receive_many(args, receives, (uint32_t)count, &posted);
        reply("posted=%u", posted);
        return ret;
    }
    for (size_t i = 0; ret == 0 && i < count; i++)
        ret = receive(args, &receives[i]);
    return ret;
}

/* Posts the same message until the queue refuses it; the answer says how many it took. */
static int do_send_until_full(const struct args *args) {
    static struct rpma_sge pieces[MAX_ELEMENTS];
    struct rpma_work work = read_work(args, pieces);
    uint64_t limit = arg_number(args, "limit");
    uint64_t posted = 0;
    int ret = 0;
    while (ret == 0 && posted < limit) {
        work.op_context = (const void *)(uintptr_t)(posted + 1);
        ret = is(args, "way", "post") ? rpma_post(the_conn(args), &work, 1, NULL)
                                      : call(the_conn(args), &work);
        posted += ret == 0;
    }
    reply("posted=%llu", (unsigned long long)posted);
    return ret;
}

const struct command data_commands[] = {
    {"read", do_operation},
    {"write", do_operation},
    {"write-imm", do_operation},
    {"atomic", do_operation},
    {"flush", do_operation},
    {"send", do_operation},
    {"send-imm", do_operation},
    {"add", do_operation},
    {"swap", do_operation},
    {"post", do_post},
    {"recv", do_receive},
    {"req-recv", do_receive},
    {"srq-recv", do_receive},
    {"send-until-full", do_send_until_full},
    {NULL, NULL},
};
