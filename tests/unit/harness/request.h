// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// request.h -- the request that the device must get according to the manual pages, and SGEs of
// every kind

#ifndef REQUEST_H
#define REQUEST_H 1

#include "lists.h"
#include "operation.h"
#include "packed.h"

#include <arpa/inet.h>

#define KIND(name) (1U << RPMA_WORK_##name)
enum {
    SOLICITED_KINDS = KIND(SEND) | KIND(SEND_WITH_IMM) | KIND(WRITE_WITH_IMM),
    INLINE_KINDS = SOLICITED_KINDS | KIND(WRITE), // that accept RPMA_F_INLINE
    LOCAL_KINDS = INLINE_KINDS | KIND(READ),
    ATOMIC_KINDS = KIND(FETCH_ADD) | KIND(COMPARE_SWAP),
    INLINE_ROOM = 16 * LIST_MAX, // rxe has room for this many bytes instead of LIST_MAX SGEs
};

static inline bool is(const struct rpma_work *o, unsigned kinds) {
    return kinds >> o->type & 1;
}

static bool flushes, writes_atomically;   // this fixture uses native operations
static struct ibv_sge target;             // the memory that emulated flushes read into
static struct rpma_mr_remote *misaligned; // advertises remote atomics

static inline void append_sge(struct fake_sg_list *to, const struct rpma_sge *sge) {
    void *memory = NULL;
    if (sge->len == 0)
        return;
    assert_int_equal(rpma_mr_get_ptr(sge->mr, &memory), 0);
    to->sges[to->num_sge++] = (struct ibv_sge){(uintptr_t)memory + sge->offset,
                                               (uint32_t)sge->len, fake_lkey(memory)};
}

// Replaces the SGEs by their bytes.
static inline void take_inline(struct fake_post *post) {
    const struct fake_sg_list list = post->sg_list;
    memset(&post->sg_list, 0, sizeof(post->sg_list));
    post->flags |= IBV_SEND_INLINE;
    for (int i = 0; i < list.num_sge; i++) {
        const struct ibv_sge *sge = &list.sges[i];
        memcpy(post->inlined + post->inlined_bytes, (const void *)(uintptr_t)sge->addr,
               sge->length);
        post->inlined_bytes += sge->length;
    }
}

static inline void write_atomically(struct fake_post *post, const struct rpma_work *o) {
    const bool is_native = writes_atomically && post->remote_addr % 8 == 0;
    post->opcode = is_native ? SIM_WR_ATOMIC_WRITE : (int)IBV_WR_RDMA_WRITE;
    post->flags |= IBV_SEND_FENCE | (is_native ? 0 : IBV_SEND_INLINE);
    memcpy(post->inlined, &o->value, sizeof(o->value));
    post->inlined_bytes = sizeof(o->value);
}

static inline void flush(struct fake_post *post, const struct rpma_work *o) {
    size_t size;
    MUST(rpma_mr_remote_get_size(o->remote, &size));
    if (flushes) {
        post->opcode = SIM_WR_FLUSH;
        post->flush_len = o->flush_len;
        post->flush_type = o->flush_type == RPMA_FLUSH_TYPE_PERSISTENT ? 2 : 1;
        return; // the level stays 0, which is a range
    }
    const size_t left = size - o->remote_offset;
    post->opcode = IBV_WR_RDMA_READ;
    post->num_sge = 1;
    post->sge = target;
    post->sge.length = left < 8 ? (uint32_t)left : 8;
}

static inline struct fake_post request(const struct rpma_work *o) {
    struct fake_post post = {.wr_id = (uintptr_t)o->op_context};
    if (o->remote && !is(o, KIND(SEND) | KIND(SEND_WITH_IMM))) {
        MUST(rpma_mr_remote_get_key(o->remote, &post.remote_addr, &post.rkey));
        post.remote_addr += o->remote_offset;
    }
    if (o->flags & RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR)
        post.flags |= IBV_SEND_SIGNALED;
    if (o->flags & RPMA_F_SOLICITED && is(o, SOLICITED_KINDS))
        post.flags |= IBV_SEND_SOLICITED;
    if (is(o, KIND(SEND_WITH_IMM) | KIND(WRITE_WITH_IMM)))
        post.imm = htonl(o->imm);
    if (is(o, ATOMIC_KINDS)) {
        const bool swaps = o->type == RPMA_WORK_COMPARE_SWAP;
        post.flags |= IBV_SEND_FENCE;
        post.compare_add = swaps ? o->compare : o->value;
        post.swap = o->value;
    }
    if (is(o, LOCAL_KINDS | ATOMIC_KINDS)) {
        const bool is_list = o->nsge > 0 && is(o, LOCAL_KINDS);
        post.opcode = (int)operation_opcodes[o->type];
        for (uint32_t i = 0; i < (is_list ? o->nsge : 1); i++)
            append_sge(&post.sg_list, is_list ? &o->sgl[i] : &o->local);
        if (o->flags & RPMA_F_INLINE && is(o, INLINE_KINDS))
            take_inline(&post);
    } else if (o->type == RPMA_WORK_FLUSH) {
        flush(&post, o);
    } else {
        write_atomically(&post, o);
    }
    return post;
}

// Makes SGEs that have bytes if their bit of pattern is set. The others are empty, with or
// without a region. Returns the number of SGEs.
enum { PATTERNS = 1 << LIST_MAX };
static inline uint32_t make_sges(struct rpma_sge sgl[LIST_MAX], unsigned pattern) {
    for (int i = 0; i < LIST_MAX; i++)
        sgl[i] = pattern >> i & 1 ? list_sge(i)
                 : i % 2          ? (struct rpma_sge){NULL, 0, 0}
                                  : (struct rpma_sge){list_regions[0], SIZE_MAX, 0};
    return 1 + pattern % LIST_MAX;
}

// A fixture with a batch and three regions without zero bytes, on a device with or without
// native operations.
static inline void request_begin(bool flush, bool atomic_write, uint32_t max_ops) {
    flushes = flush && BUILD_FLUSHES;
    writes_atomically = atomic_write && BUILD_WRITES_ATOMICALLY;
    fake_reset();
    fake_profile()->has_native_flush = flush;
    fake_profile()->has_native_atomic_write = atomic_write;
    list_fixture_new(false, LIST_MAX);
    for (size_t i = 0; i < LENGTH(list_regions); i++) {
        void *memory = NULL;
        MUST(rpma_mr_get_ptr(list_regions[i], &memory));
        for (int k = 0; k < 256; k++)
            ((unsigned char *)memory)[k] = (unsigned char)(k + 100 * (int)i) | 1;
    }
    MUST(rpma_batch_new(w.h.conn, max_ops, &w.h.batch));
    misaligned = packed_remote(FIXTURE_REMOTE_ADDR + 4, FIXTURE_REMOTE_SIZE, 78,
                               FIXTURE_EVERY_USAGE, 0x31);
    const struct rpma_work work = operation_of(&w, RPMA_WORK_FLUSH);
    MUST(operation_plain(&work, w.h.conn));
    target = operation_posted(0).sge;
    if (!flushes)
        assert_true(target.lkey != 0 && target.lkey != fake_lkey(w.memory));
}

static inline void request_end(void) {
    MUST(rpma_mr_remote_delete(&misaligned));
    list_fixture_delete();
}

#endif // REQUEST_H
