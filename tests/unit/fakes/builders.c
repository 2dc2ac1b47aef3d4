// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// builders.c -- requests to send that ibv_wr_*() builders make.

#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The requests since ibv_wr_start(). It takes the lock, and ibv_wr_complete() releases it.
static struct fake_qp *building;  // NULL: between ibv_wr_complete() and ibv_wr_start()
static int build_error;           // of the rejected request
static struct fake_post *pending; // the accepted requests
static unsigned built;

// Records the call of a builder, which must follow ibv_wr_start().
static void enter(struct ibv_qp_ex *ex, const char *call) {
    fake_note(call, &ex->qp_base);
    if (building != fake_qp_of(&ex->qp_base))
        fake_misuse("outside of ibv_wr_start()");
}

static void wr_start(struct ibv_qp_ex *ex) {
    FAKE_HIDDEN;
    struct fake_qp *qp = fake_qp_of(&ex->qp_base);
    fake_lock("ibv_wr_start"); // held until ibv_wr_complete(), as in a provider
    fake_note("ibv_wr_start", &ex->qp_base);
    building = qp;
    build_error = 0;
    built = 0;
}

// The newest request, which gets the memory of a setter; NULL after a rejected one.
static struct fake_post *newest(void) {
    if (build_error)
        return NULL;
    if (built > 0)
        return &pending[built - 1];
    fake_misuse("before any request");
    return NULL;
}

// rdma-core 56, providers/rxe/rxe.c, wr_rdma_write() and the other builders: after a rejected
// request, they ignore later ones.
static struct fake_post *build(struct ibv_qp_ex *ex, const char *call, int opcode) {
    static struct fake_post refused;
    enter(ex, call);
    int error;
    if (!build_error && built > 0 && fake_fault_due("refuse ibv_post_send", &error))
        build_error = error;
    if (build_error)
        return &refused;
    pending = realloc(pending, ++built * sizeof(*pending));
    struct fake_post *post = newest();
    memset(post, 0, sizeof(*post)); // the padding is also compared
    post->opcode = opcode;
    post->wr_id = ex->wr_id;
    post->flags = ex->wr_flags;
    return post;
}

// Defines a builder: its parameters follow the queue pair, and fill sets the fields of the
// request that depend on them.
#define BUILDER(name, opcode, fill, ...)                             \
    static void wr_##name(struct ibv_qp_ex *ex, ##__VA_ARGS__) {     \
        FAKE_HIDDEN;                                                 \
        struct fake_post *post = build(ex, "ibv_wr_" #name, opcode); \
        fill;                                                        \
    }
#define REMOTE post->rkey = rkey, post->remote_addr = remote_addr
#define REMOTE_PARAMETERS uint32_t rkey, uint64_t remote_addr

BUILDER(rdma_read, IBV_WR_RDMA_READ, REMOTE, REMOTE_PARAMETERS)
BUILDER(rdma_write, IBV_WR_RDMA_WRITE, REMOTE, REMOTE_PARAMETERS)
BUILDER(rdma_write_imm, IBV_WR_RDMA_WRITE_WITH_IMM, (REMOTE, post->imm = imm),
        REMOTE_PARAMETERS, __be32 imm)
BUILDER(send, IBV_WR_SEND, (void)post)
BUILDER(send_imm, IBV_WR_SEND_WITH_IMM, post->imm = imm, __be32 imm)
BUILDER(atomic_fetch_add, IBV_WR_ATOMIC_FETCH_AND_ADD,
        (REMOTE, post->compare_add = post->swap = add), REMOTE_PARAMETERS, uint64_t add)
BUILDER(atomic_cmp_swp, IBV_WR_ATOMIC_CMP_AND_SWP,
        (REMOTE, post->compare_add = compare, post->swap = swap), REMOTE_PARAMETERS,
        uint64_t compare, uint64_t swap)
BUILDER(atomic_write, SIM_WR_ATOMIC_WRITE, (REMOTE, fake_copy_inline_data(post, bytes, 8)),
        REMOTE_PARAMETERS, const void *bytes)
BUILDER(flush, SIM_WR_FLUSH,
        (REMOTE, post->flush_len = len, post->flush_type = type, post->flush_level = level),
        REMOTE_PARAMETERS, size_t len, uint8_t type, uint8_t level)

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sges) {
    FAKE_HIDDEN;
    enter(ex, "ibv_wr_set_sge_list");
    struct fake_post *post = newest();
    if (post)
        fake_copy_sg_list(&post->sg_list, ex->qp_base.pd,
                          sim_writes_memory((uint32_t)post->opcode), sges, (int)num_sge);
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_req.c, finish_packet(), detects inline data by the
// send flags, which wr_set_inline_data() of rxe (rdma-core 56) does not change.
static void wr_set_inline_data(struct ibv_qp_ex *ex, void *bytes, size_t length) {
    FAKE_HIDDEN;
    enter(ex, "ibv_wr_set_inline_data");
    struct fake_post *post = newest();
    if (!post)
        return;
    if (!(post->flags & IBV_SEND_INLINE))
        fake_misuse("without IBV_SEND_INLINE rxe reads the data as SGEs");
    fake_copy_inline_data(post, bytes, length);
}

// rdma-core 56, providers/rxe/rxe.c, wr_complete(): after a rejected request it posts nothing.
// Otherwise store_producer_index() publishes all requests before post_send_db() rings the
// doorbell. If the doorbell fails, its error is returned although the requests are queued.
static int wr_complete(struct ibv_qp_ex *ex) {
    FAKE_HIDDEN;
    FAKE_RELEASED = NULL;
    struct fake_qp *qp = fake_qp_of(&ex->qp_base);
    struct fake_call *call = fake_enter("ibv_wr_complete", &ex->qp_base);
    if (built > 0)
        call->send = pending[0];
    call->requests = built;
    building = NULL;
    int error = fake_error(call, build_error);
    for (unsigned i = 0; i < built && !error; i++) {
        const struct sim_send send = fake_send_of(&pending[i]);
        error = sim_check_built(fake_profile(), true, &qp->cap, &send, qp->sends + i);
    }
    for (unsigned i = 0; i < built && !error; i++)
        fake_take(qp, &pending[i]);
    if (!error)
        (void)fake_fault_due("doorbell", &error);
    if (!error && !fake_can_send(qp))
        error = EINVAL;
    return error;
}

// rdma-core 56, providers/rxe/rxe.c, set_qp_send_ops(): a builder that was not requested is
// NULL.
void fake_qp_set_builders(struct fake_qp *qp, uint64_t send_ops_flags) {
#define IF_REQUESTED(flag, builder) (send_ops_flags & (flag) ? builder : NULL)
    qp->qp.ex = (struct ibv_qp_ex){
        .qp_base = qp->qp.ex.qp_base,
        .wr_start = wr_start,
        .wr_complete = wr_complete,
        .wr_set_sge_list = wr_set_sge_list,
        .wr_set_inline_data = wr_set_inline_data,
        .wr_rdma_read = IF_REQUESTED(IBV_QP_EX_WITH_RDMA_READ, wr_rdma_read),
        .wr_rdma_write = IF_REQUESTED(IBV_QP_EX_WITH_RDMA_WRITE, wr_rdma_write),
        .wr_rdma_write_imm =
            IF_REQUESTED(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, wr_rdma_write_imm),
        .wr_send = IF_REQUESTED(IBV_QP_EX_WITH_SEND, wr_send),
        .wr_send_imm = IF_REQUESTED(IBV_QP_EX_WITH_SEND_WITH_IMM, wr_send_imm),
        .wr_atomic_fetch_add =
            IF_REQUESTED(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add),
        .wr_atomic_cmp_swp = IF_REQUESTED(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp),
        .wr_atomic_write = IF_REQUESTED(SIM_QP_EX_WITH_ATOMIC_WRITE, wr_atomic_write),
#ifdef FAKE_HEADERS_KNOW_FLUSH
        .wr_flush = IF_REQUESTED(SIM_QP_EX_WITH_FLUSH, wr_flush),
#endif
    };
#ifndef FAKE_HEADERS_KNOW_FLUSH
    qp->qp.wr_flush = IF_REQUESTED(SIM_QP_EX_WITH_FLUSH, wr_flush);
#endif
}
