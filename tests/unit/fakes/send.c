// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// send.c -- lists of send requests; send_builders.c has the requests of ibv_wr_*() builders.

#include "internal.h"

#include <errno.h>
#include <string.h>

struct fake_qp *fake_qp_of(struct ibv_qp *qp) {
    return (struct fake_qp *)((char *)qp - offsetof(struct fake_qp, qp));
}

void fake_copy_inline_data(struct fake_post *to, const void *bytes, size_t length) {
    const size_t room =
        to->inlined_bytes < sizeof(to->inlined) ? sizeof(to->inlined) - to->inlined_bytes : 0;
    memcpy(to->inlined + (sizeof(to->inlined) - room), bytes, length < room ? length : room);
    to->inlined_bytes += length;
}

// Reads no data that is too long: rxe checks the lengths first.
static void copy_inlined(struct fake_post *to, const struct ibv_sge *sges, int num_sge) {
    size_t length = 0;
    to->num_sge = num_sge;
    for (int i = 0; i < num_sge; i++)
        length += sges[i].length;
    for (int i = 0; i < num_sge && length <= FAKE_MAX_INLINE; i++) {
        if (i < FAKE_MAX_SGE)
            to->elements.sges[i] = sges[i];
        fake_copy_inline_data(to, (const void *)(uintptr_t)sges[i].addr, sges[i].length);
    }
    to->inlined_bytes = length;
}

// Reads the fields that providers read for every opcode: libibverbs/cmd.c, ibv_cmd_post_send(),
// and providers/rxe/rxe.c, convert_send_wr(), copy imm_data of each request; init_send_wqe()
// copies wr.rdma.remote_addr of all but atomic operations (rdma-core 56).
static void copy_send(struct fake_post *to, const struct fake_qp *qp,
                      const struct ibv_send_wr *wr) {
    memset(to, 0, sizeof(*to));
    fake_touch(&wr->wr_id, sizeof(wr->wr_id));
    fake_touch(&wr->next, sizeof(wr->next));
    to->wr_id = wr->wr_id;
    to->opcode = (int)wr->opcode;
    to->flags = wr->send_flags;
    if (wr->send_flags & IBV_SEND_INLINE) { // the lkey is not read
        copy_inlined(to, wr->sg_list, wr->num_sge);
    } else {
        fake_copy_elements(&to->elements, "ibv_post_send", qp->qp.ex.qp_base.pd,
                           fake_writes_elements((int)wr->opcode), wr->sg_list, wr->num_sge);
    }
    fake_touch(&wr->imm_data, sizeof(wr->imm_data));
    fake_touch(&wr->wr.rdma.remote_addr, sizeof(wr->wr.rdma.remote_addr));
    to->imm = wr->imm_data;
    if (fake_is_atomic(to->opcode)) {
        to->remote_addr = wr->wr.atomic.remote_addr;
        to->rkey = wr->wr.atomic.rkey;
        to->compare_add = wr->wr.atomic.compare_add;
        to->swap = wr->wr.atomic.swap;
    } else if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) {
        to->remote_addr = wr->wr.rdma.remote_addr;
        to->rkey = wr->wr.rdma.rkey;
    }
    fake_touch(to, sizeof(*to));
}

bool fake_is_atomic(int opcode) {
    return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

bool fake_writes_elements(int opcode) {
    return opcode == IBV_WR_RDMA_READ || fake_is_atomic(opcode);
}

// rdma-core 56, providers/rxe/rxe.c, validate_send_wr(): EINVAL for more elements, or more
// inline data, than the queue was made for, and for a remote atomic of less than 8 bytes or of
// an unaligned address. For too much data mlx5 returns ENOMEM, as for a
// full queue (set_data_inl_seg() of providers/mlx5/qp.c). post_one_send(): ENOMEM when it is.
static int refusal(const struct fake_call *call, const struct fake_qp *qp,
                   const struct fake_post *post, bool is_first) {
    int error = 0;
    if (is_first ? call->failed : fake_fault_asked("send request", &error))
        return is_first ? call->error : error;
    if (post->inlined_bytes > qp->cap.max_inline_data)
        return fake_device()->inline_error ? fake_device()->inline_error : EINVAL;
    if ((uint32_t)post->num_sge > qp->cap.max_send_sge)
        return EINVAL;
    if (fake_is_atomic(post->opcode) &&
        (post->remote_addr % 8 != 0 || post->num_sge != 1 || post->sge.length < 8))
        return EINVAL;
    return qp->sends == qp->cap.max_send_wr ? ENOMEM : 0;
}

// rdma-core 56, providers/rxe/rxe.c, rxe_post_send(): takes requests up to the first that it
// refuses, which becomes bad, or NULL. It rings the doorbell in any case, whose error replaces
// that of the refusal. siw_post_send() of providers/siw/siw.c does the same, but the 0 of a
// doorbell that works replaces the error of the refusal, too. The doorbell of a queue pair that
// is not connected fails: Linux 7.3, drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_post_send().
static int post_list(struct fake_call *call, struct fake_qp *qp, struct ibv_send_wr *wr,
                     struct ibv_send_wr **bad) {
    const struct ibv_send_wr *first = wr;
    struct fake_post post;
    int error = 0, doorbell_error = 0;
    for (; wr; wr = wr->next, call->requests++) {
        copy_send(&post, qp, wr);
        if (wr == first)
            call->send = post;
        error = refusal(call, qp, &post, wr == first);
        if (error)
            break;
        fake_take(qp, &post);
    }
    if (error || !fake_device()->keeps_bad_wr)
        *bad = wr;
    if (qp->state < IBV_QPS_RTS && !fake_device()->takes_early)
        return EINVAL;
    if (call->requests == 0)
        return error;
    if (fake_fault_asked("doorbell", &doorbell_error))
        return doorbell_error;
    return fake_device()->hides_refusals ? 0 : error;
}

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    FAKE_DATA_LOCKED;
    struct fake_call *call = fake_enter("ibv_post_send", qp);
    if (!fake_find(FAKE_QP, qp, "ibv_post_send"))
        return EINVAL;
    // rdma-core 56, providers/mana: mana_post_send() names no request when it can take none.
    if (fake_device()->keeps_bad_wr && call->failed)
        return call->error;
    return post_list(call, fake_qp_of(qp), wr, bad);
}
