// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_rxe.c -- rdma_rxe (linux sw/rxe/rxe_qp.c, rxe_queue.c, rxe_param.h), which keeps all
// requests

#include "stub.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <string.h>

enum { MAX_SGES = 32, MAX_INLINE = 512 };

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->atomic_cap = 1; // IB_ATOMIC_HCA
    device->max_qp_wr = device->max_srq_wr = 1 << 20;
    device->max_sge = device->max_sge_rd = MAX_SGES;
    device->max_srq_sge = 27;
    device->max_cqe = 32767;
}

static struct rxe_queue_buf *cq, *sends, *receives, *shared_receives; // the last ones
static uint32_t qpn;

static void *entry_of(struct rxe_queue_buf *queue, uint32_t index) {
    return queue->data + ((size_t)(index & queue->index_mask) << queue->log2_elem_size);
}

// Linux frees the entries up to that of a completion, whose wr_id this returns: wr_id is the
// first member of struct rxe_send_wqe and rxe_recv_wqe.
static uint64_t take(struct rxe_queue_buf *queue, uint32_t index) {
    uint64_t wr_id;
    memcpy(&wr_id, entry_of(queue, index), sizeof(wr_id));
    queue->consumer_index = (index + 1) & queue->index_mask;
    return wr_id;
}

// The status that Linux reports (../conformance): what the requester cannot read is a flush,
// and what the responder cannot write is an operation error.
static uint32_t status_of(const struct stub_completion *completion) {
    const uint32_t status = completion->status;
    if (completion->queue == STUB_SENDS)
        return status == IBV_WC_LOC_PROT_ERR      ? IBV_WC_WR_FLUSH_ERR
               : status == IBV_WC_REM_INV_REQ_ERR ? IBV_WC_REM_OP_ERR // of a too long message
                                                  : status;
    return status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_LEN_ERR ? IBV_WC_LOC_QP_OP_ERR
                                                                         : status;
}

// sw/rxe/rxe_comp.c, make_send_cqe(), and rxe_resp.c, do_complete()
static void complete_one(const struct stub_completion *completion) {
    struct rxe_queue_buf *const of[] = {sends, receives, shared_receives};
    struct ib_uverbs_wc *const wc = entry_of(cq, cq->producer_index);
    *wc = (struct ib_uverbs_wc){.wr_id = take(of[completion->queue], completion->index),
                                .status = status_of(completion),
                                .qp_num = qpn};
    if (completion->status == IBV_WC_SUCCESS) {
        wc->opcode = completion->opcode;
        wc->byte_len = completion->length;
        wc->wc_flags = (completion->has_imm ? IBV_WC_WITH_IMM : 0) |
                       (completion->queue == STUB_SENDS ? 0 : IBV_WC_GRH);
    }
    cq->producer_index = (cq->producer_index + 1) & cq->index_mask;
}

// rxe_queue.c, rxe_queue_init(). Returns the number of elements that the queue holds.
static uint32_t create_queue(struct rxe_queue_buf **queue, struct mminfo *info,
                             uint32_t elements, size_t element) {
    uint32_t slots = 1, log2_size = 0;
    while (slots < elements + 1)
        slots *= 2;
    while ((1U << log2_size) < element)
        log2_size++;
    uint64_t offset;
    const size_t size = sizeof(struct rxe_queue_buf) + ((size_t)slots << log2_size);
    struct rxe_queue_buf *const made = *queue = stub_new_pages(size, &offset);
    made->log2_elem_size = log2_size;
    made->index_mask = slots - 1;
    info->offset = offset;
    info->size = (uint32_t)size;
    return slots - 1;
}

static bool is_of_srq(const struct stub_call *call) {
    return call->command == STUB_CREATE_QP_EX
               ? ((const struct ib_uverbs_ex_create_qp *)call->request)->is_srq
               : ((const struct ib_uverbs_create_qp *)call->request)->is_srq;
}

// rxe_qp.c, rxe_qp_init_req() and rxe_qp_init_resp()
static int create_qp(struct stub_call *call) {
    struct rxe_create_qp_resp *const made = call->out;
    struct ib_uverbs_create_qp_resp *const qp = call->qp;
    if (stub_check_qp(qp, MAX_INLINE))
        return EINVAL;
    const size_t of_sges = qp->max_send_sge * sizeof(struct rxe_sge);
    const size_t data = of_sges > qp->max_inline_data ? of_sges : qp->max_inline_data;
    qp->max_inline_data = (uint32_t)data;
    qp->max_send_wr =
        create_queue(&sends, &made->sq_mi, qp->max_send_wr, sizeof(struct rxe_send_wqe) + data);
    if (is_of_srq(call)) // which reports the requested sizes
        return 0;
    qp->max_recv_wr =
        create_queue(&receives, &made->rq_mi, qp->max_recv_wr,
                     sizeof(struct rxe_recv_wqe) + qp->max_recv_sge * sizeof(struct rxe_sge));
    return 0;
}

// rxe_verbs.c, rxe_post_send()
static int ring_doorbell(const struct ib_uverbs_post_send *request) {
    return stub_qp_state(request->qp_handle) < IBV_QPS_RTS ? EINVAL : 0;
}

static int complete(struct stub_call *call) {
    switch (call->command) {
    case IB_USER_VERBS_CMD_CREATE_CQ: {
        struct ib_uverbs_create_cq_resp *const made = call->response;
        made->cqe =
            create_queue(&cq, &((struct rxe_create_cq_resp *)call->out)->mi, made->cqe, 64);
        return 0;
    }
    case IB_USER_VERBS_CMD_CREATE_SRQ: {
        struct ib_uverbs_create_srq_resp *const srq = call->response;
        srq->max_wr = create_queue(
            &shared_receives, &((struct rxe_create_srq_resp *)call->out)->mi, srq->max_wr,
            sizeof(struct rxe_recv_wqe) + srq->max_sge * sizeof(struct rxe_sge));
        return 0;
    }
    case IB_USER_VERBS_CMD_CREATE_QP:
    case STUB_CREATE_QP_EX:
        qpn = call->handle;
        return create_qp(call);
    case IB_USER_VERBS_CMD_POST_SEND:
        return ring_doorbell(call->request);
    default:
        return 0;
    }
}

// linux-6.12 sw/rxe/rxe_param.h: IB_DEVICE_FLUSH_GLOBAL, IB_DEVICE_FLUSH_PERSISTENT and
// IB_DEVICE_ATOMIC_WRITE
enum { NATIVE_OPERATIONS = 7 };

const struct stub_driver stub_rxe = {.name = "rxe",
                                     .id = RDMA_DRIVER_RXE,
                                     .abi = 2,
                                     .more_flags = (uint64_t)NATIVE_OPERATIONS << 38,
                                     .describe = describe,
                                     .complete = complete,
                                     .complete_one = complete_one};
