// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// list.c -- commands for operations on memory lists, posted or added to a batch

#include <stdlib.h>

#include "operation.h"

static size_t next_number(const struct args *args, char **text, char end) {
    char *start = *text;
    size_t number = strtoull(start, text, 0);
    if (*text == start || (**text != end && **text != '\0'))
        bad_script("%s: sgl= is no list of memory:offset:length", args->verb);
    if (**text == end)
        ++*text;
    return number;
}

int read_pieces(const struct args *args, struct piece *pieces) {
    char *text = (char *)arg_text_or(args, "sgl", "");
    int count = 0;
    while (*text != '\0') {
        if (count == MAX_ELEMENTS)
            bad_script("%s: more than %d elements", args->verb, MAX_ELEMENTS);
        struct piece *piece = &pieces[count++];
        if (text[0] == '-' && text[1] == ':') {
            piece->memory = MAX_REGIONS;
            text += 2;
        } else {
            piece->memory = next_number(args, &text, ':');
        }
        piece->offset = next_number(args, &text, ':');
        piece->len = next_number(args, &text, ',');
        if (piece->memory > MAX_REGIONS)
            bad_script("%s: no such memory in sgl=", args->verb);
    }
    return count;
}

struct list read_list(const struct args *args) {
    static struct piece pieces[MAX_ELEMENTS];
    static struct rpma_sge elements[MAX_ELEMENTS];
    int count = read_pieces(args, pieces);
    for (int i = 0; i < count; i++) {
        struct rpma_mr_local *mr =
            pieces[i].memory < MAX_REGIONS ? world.mr[pieces[i].memory] : NULL;
        elements[i] = (struct rpma_sge){mr, pieces[i].offset, pieces[i].len};
    }
    return (struct list){count > 0 ? elements : NULL,
                         (int)arg_number_or(args, "nsge", (uint64_t)count)};
}

static int do_readv(const struct args *args) {
    struct operation o = read_operation(args);
    struct list l = read_list(args);
    if (o.batch != NULL)
        return rpma_batch_readv(o.batch, l.sgl, l.nsge, o.remote, o.remote_offset, o.flags,
                                o.context);
    return rpma_readv(o.conn, l.sgl, l.nsge, o.remote, o.remote_offset, o.flags, o.context);
}

static int do_writev(const struct args *args) {
    struct operation o = read_operation(args);
    struct list l = read_list(args);
    if (o.batch != NULL)
        return rpma_batch_writev(o.batch, o.remote, o.remote_offset, l.sgl, l.nsge, o.flags,
                                 o.context);
    return rpma_writev(o.conn, o.remote, o.remote_offset, l.sgl, l.nsge, o.flags, o.context);
}

static int do_writev_imm(const struct args *args) {
    struct operation o = read_operation(args);
    struct list l = read_list(args);
    if (o.batch != NULL)
        return rpma_batch_writev_with_imm(o.batch, o.remote, o.remote_offset, l.sgl, l.nsge,
                                          o.flags, o.imm, o.context);
    return rpma_writev_with_imm(o.conn, o.remote, o.remote_offset, l.sgl, l.nsge, o.flags,
                                o.imm, o.context);
}

static int do_sendv(const struct args *args) {
    struct operation o = read_operation(args);
    struct list l = read_list(args);
    if (o.batch != NULL)
        return rpma_batch_sendv(o.batch, l.sgl, l.nsge, o.flags, o.context);
    return rpma_sendv(o.conn, l.sgl, l.nsge, o.flags, o.context);
}

static int do_sendv_imm(const struct args *args) {
    struct operation o = read_operation(args);
    struct list l = read_list(args);
    if (o.batch != NULL)
        return rpma_batch_sendv_with_imm(o.batch, l.sgl, l.nsge, o.flags, o.imm, o.context);
    return rpma_sendv_with_imm(o.conn, l.sgl, l.nsge, o.flags, o.imm, o.context);
}

static const void *the_context(const struct args *args) {
    return (const void *)(uintptr_t)arg_number_or(args, "ctx", 0);
}

static int do_recvv(const struct args *args) {
    struct list l = read_list(args);
    return rpma_recvv(the_conn(args), l.sgl, l.nsge, the_context(args));
}

static int do_req_recvv(const struct args *args) {
    struct list l = read_list(args);
    return rpma_conn_req_recvv(the_request(args), l.sgl, l.nsge, the_context(args));
}

static int do_srq_recvv(const struct args *args) {
    struct list l = read_list(args);
    return rpma_srq_recvv(world.srq[arg_slot(args, "srq", MAX_OTHERS)], l.sgl, l.nsge,
                          the_context(args));
}

const struct command list_commands[] = {
    {"readv", do_readv},         {"writev", do_writev},       {"writev-imm", do_writev_imm},
    {"sendv", do_sendv},         {"sendv-imm", do_sendv_imm}, {"recvv", do_recvv},
    {"req-recvv", do_req_recvv}, {"srq-recvv", do_srq_recvv}, {NULL, NULL},
};
