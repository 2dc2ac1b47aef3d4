// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// post.c -- lists of requests to send and to receive, which the inline functions of verbs.h
// reach through tables; builders.c has the requests of ibv_wr_*() builders.

#include "internal.h"

#include <errno.h>
#include <string.h>

static enum sim_fault fault_of(const struct ibv_sge *sge, const struct ibv_pd *pd,
                               unsigned access) {
    const bool any_range = fake_device()->any_range;
    struct fake_mr *mr = NULL;
    while ((mr = fake_next(FAKE_MR, mr)) && mr->mr.lkey != sge->lkey)
        ;
    if (!mr)
        return SIM_NO_REGION;
    const struct sim_region region = {any_range ? pd : mr->mr.pd, (uintptr_t)mr->mr.addr,
                                      mr->mr.length, mr->access};
    return sge->length == 0 || any_range
               ? sim_check_key(&region, pd, access)
               : sim_check_range(&region, pd, access, sge->addr, sge->length);
}

// A device reports such an error by a completion, not by the result of the post.
static void check_sge(const struct ibv_pd *pd, bool is_written, const struct ibv_sge *sge) {
    static const char *const faults[] = {
        [SIM_NO_REGION] = "no live region has this key",
        [SIM_OTHER_PD] = "the region belongs to another domain",
        [SIM_NO_ACCESS] = "the region has no local write access",
        [SIM_OUT_OF_RANGE] = "the SGE is not within the region",
    };
    const enum sim_fault fault = fault_of(sge, pd, is_written ? IBV_ACCESS_LOCAL_WRITE : 0);
    if (fault)
        fake_misuse("lkey %u: %s", sge->lkey, faults[fault]);
}

void fake_copy_sg_list(struct fake_sg_list *to, const struct ibv_pd *pd, bool is_written,
                       const struct ibv_sge *sges, int num_sge) {
    to->num_sge = num_sge;
    for (int i = 0; i < num_sge && i < FAKE_MAX_SGE; i++) {
        fake_copy(&to->sges[i], &sges[i], sizeof(sges[i]));
        check_sge(pd, is_written, &sges[i]);
    }
}

// ---- receives ------------------------------------------------------------------------------

static void copy_receive(struct fake_receive *to, const struct ibv_pd *pd,
                         const struct ibv_recv_wr *wr) {
    memset(to, 0, sizeof(*to)); // unused SGEs are also compared
    to->wr_id = wr->wr_id;
    fake_copy_sg_list(&to->sg_list, pd, true, wr->sg_list, wr->num_sge);
}

// rdma-core 56, providers/rxe/rxe.c, rxe_post_recv() and rxe_post_srq_recv(): they accept
// requests up to the first rejected one, to which bad points.
static int post_recv(struct fake_call *call, struct fake_receives *queue,
                     const struct ibv_pd *pd, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad) {
    for (bool is_first = true; wr; wr = wr->next, is_first = false) {
        struct fake_receive receive;
        int error = 0;
        copy_receive(&receive, pd, wr);
        if (is_first)
            call->recv = receive;
        if (is_first ? call->failed : fake_fault_due("refuse ibv_post_recv", &error))
            error = is_first ? call->error : error;
        else
            error = sim_check_receive(fake_profile(), queue->max_wr, queue->max_sge,
                                      (unsigned)wr->num_sge, queue->posted);
        if (error) {
            *bad = wr;
            return error;
        }
        queue->posted += !fake_is_quiet(); // without a record, nothing resets the count
        fake_take_receive(&receive);
    }
    return 0;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    FAKE_HIDDEN;
    FAKE_CALL_OF("ibv_post_recv", qp);
    struct fake_qp *found = fake_find(FAKE_QP, qp);
    *bad = NULL;
    if (!found)
        return EINVAL;
    if (qp->srq) {
        *bad = fake_profile()->keeps_bad_recv ? wr : NULL;
        return fake_profile()->srq_recv_error;
    }
    return post_recv(call, &found->receives, qp->pd, wr, bad);
}

int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    FAKE_HIDDEN;
    FAKE_CALL_OF("ibv_post_srq_recv", srq);
    struct fake_srq *found = fake_find(FAKE_SRQ, srq);
    return found ? post_recv(call, &found->receives, srq->pd, wr, bad) : EINVAL;
}

// ---- requests to send ----------------------------------------------------------------------

struct sim_send fake_send_of(const struct fake_post *post) {
    struct sim_send send = {(uint32_t)post->opcode,  post->flags,
                            (uint32_t)post->num_sge, post->inlined_bytes + post->flush_len,
                            post->remote_addr,       post->flush_type,
                            post->flush_level};
    if (!sim_is_inline(send.opcode, send.flags))
        for (int i = 0; i < post->num_sge && i < FAKE_MAX_SGE; i++)
            send.length += post->sg_list.sges[i].length;
    return send;
}

void fake_copy_inline_data(struct fake_post *to, const void *bytes, size_t length) {
    if (to->inlined_bytes + length <= sizeof(to->inlined))
        memcpy(to->inlined + to->inlined_bytes, bytes, length);
    to->inlined_bytes += length;
}

// Data beyond the limit is not read, because rxe checks the length first.
static void copy_inlined(struct fake_post *to, const struct ibv_sge *sges, int num_sge) {
    size_t length = 0;
    to->num_sge = num_sge;
    for (int i = 0; i < num_sge; i++)
        length += sges[i].length;
    for (int i = 0; i < num_sge && length <= FAKE_MAX_INLINE; i++) {
        if (i < FAKE_MAX_SGE)
            to->sg_list.sges[i] = sges[i];
        fake_copy_inline_data(to, (const void *)(uintptr_t)sges[i].addr, sges[i].length);
    }
    to->inlined_bytes = length;
}

// Reads the fields that providers read for every opcode: libibverbs/cmd.c, ibv_cmd_post_send(),
// and providers/rxe/rxe.c, convert_send_wr(), copy imm_data of each request; init_send_wqe()
// copies wr.rdma.remote_addr of all but atomic operations (rdma-core 56).
static void copy_send(struct fake_post *to, const struct ibv_pd *pd,
                      const struct ibv_send_wr *wr) {
    memset(to, 0, sizeof(*to)); // the padding is also compared and touched
    to->wr_id = wr->wr_id;
    to->opcode = (int)wr->opcode;
    to->flags = wr->send_flags;
    to->imm = wr->imm_data;
    if (wr->send_flags & IBV_SEND_INLINE) // the lkey is not read
        copy_inlined(to, wr->sg_list, wr->num_sge);
    else
        fake_copy_sg_list(&to->sg_list, pd, sim_writes_memory(wr->opcode), wr->sg_list,
                          wr->num_sge);
    if (sim_is_atomic(wr->opcode)) {
        to->remote_addr = wr->wr.atomic.remote_addr;
        to->rkey = wr->wr.atomic.rkey;
        to->compare_add = wr->wr.atomic.compare_add;
        to->swap = wr->wr.atomic.swap;
    } else {
        fake_copy(&to->remote_addr, &wr->wr.rdma.remote_addr, sizeof(to->remote_addr));
        if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
            to->rkey = wr->wr.rdma.rkey;
    }
}

static int refusal(const struct fake_call *call, const struct fake_qp *qp,
                   const struct fake_post *post, bool is_first) {
    const struct sim_send send = fake_send_of(post);
    int error;
    if (is_first ? call->failed : fake_fault_due("refuse ibv_post_send", &error))
        return is_first ? call->error : error;
    return sim_check_send(fake_profile(), fake_can_send(qp), &qp->cap, &send, qp->sends);
}

// rdma-core 56, providers/rxe/rxe.c, rxe_post_send(): accepts requests up to the first
// rejected one, to which bad points; bad is NULL if all are accepted.
static int post_list(struct fake_call *call, struct fake_qp *qp, struct ibv_send_wr *wr,
                     struct ibv_send_wr **bad) {
    struct fake_post post;
    int error = 0, doorbell_error;
    for (; wr && !error; wr = error ? wr : wr->next) {
        copy_send(&post, qp->qp.ex.qp_base.pd, wr);
        if (call->requests == 0)
            call->send = post;
        error = refusal(call, qp, &post, call->requests == 0);
        if (!error) {
            fake_take(qp, &post);
            call->requests++;
        }
    }
    if (error || !fake_profile()->keeps_bad_wr)
        *bad = wr;
    const bool can_send = fake_can_send(qp);
    if (can_send && call->requests > 0 && fake_fault_due("doorbell", &doorbell_error))
        return doorbell_error;
    return sim_post_result(fake_profile(), can_send, true, call->requests, error);
}

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    FAKE_HIDDEN;
    FAKE_CALL_OF("ibv_post_send", qp);
    struct fake_qp *found = fake_find(FAKE_QP, qp);
    if (!found)
        return EINVAL;
    // rdma-core 56, providers/mana: mana_post_send() does not set bad if it rejects the whole
    // call.
    if (fake_profile()->keeps_bad_wr && call->failed)
        return call->error;
    return post_list(call, found, wr, bad);
}
