// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_cxgb4.c -- cxgb4, with the limits of a T6 (linux hw/cxgb4/)

#include "stub.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/cxgb4-abi.h>
#include <string.h>

enum { PAGE = 4096, MAX_SENDS = 65518, MAX_RECEIVES = 8190 }; // device.c, c4iw_rdev_open()

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->vendor_part_id = 0x6401; // a T6
    device->max_qp = device->max_cq = 1 << 16;
    device->max_mr = 1 << 16;
    device->max_qp_wr = MAX_RECEIVES;
    device->max_sge = 4;
    device->max_sge_rd = 1;
    device->max_cqe = 65533;
    device->max_srq = device->max_srq_wr = device->max_srq_sge = 0; // without its firmware
}

static size_t rounded(size_t size) {
    return (size + PAGE - 1) / PAGE * PAGE;
}

enum { CQE_SIZE = 64 };
static unsigned char *cqes; // of the last CQ
static size_t produced;     // entries of it
static unsigned char *failed_qp_flag,
    *failed_cq_flag; // of the last ones: struct t4_status_page
static uint32_t qpn;

// rdma-core providers/cxgb4/t4.h, T4_ERR_*. What the other side refuses and lost packets end
// the connection: there is no status of their own.
static uint32_t status_of(uint32_t status) {
    enum { STAG = 1, BOUND = 6 };
    return status == IBV_WC_LOC_PROT_ERR ? STAG : status == IBV_WC_LOC_LEN_ERR ? BOUND : 0;
}

// t4fw_ri_api.h, enum fw_ri_wr_opcode
static uint32_t opcode_of(uint32_t opcode) {
    enum { WRITE = 0, READ_RESPONSE = 2, SEND, WRITE_IMM = 8, UNKNOWN = 13 };
    switch (opcode) {
    case IBV_WC_RDMA_WRITE:
        return WRITE;
    case IBV_WC_RDMA_READ:
        return READ_RESPONSE;
    case IBV_WC_SEND:
    case IBV_WC_RECV:
        return SEND;
    case IBV_WC_RECV_RDMA_WITH_IMM:
        return WRITE_IMM;
    default:
        return UNKNOWN;
    }
}

// struct t4_cqe_b64, with the generation bit of the first lap. After an error the kernel sets
// the flags (linux hw/cxgb4/ev.c, post_qp_event(); t4.h, t4_set_wq_in_error() and
// t4_set_cq_in_error()), and the next poll of the driver flushes both queues.
static void complete_one(const struct stub_completion *completion) {
    enum { LENGTH = 4, SEND_INDEX = 14, RECEIVE_NUMBER = 12, GENERATION = 56 };
    enum { IS_SEND = 1 << 4, STATUS = 5, QPN = 12 };
    const uint32_t status = status_of(completion->status),
                   opcode = opcode_of(completion->opcode);
    const bool is_read = completion->opcode == IBV_WC_RDMA_READ;
    const bool is_send = completion->queue == STUB_SENDS;
    if (completion->status == IBV_WC_SUCCESS || status) {
        unsigned char *const cqe = cqes + produced++ * CQE_SIZE;
        const uint32_t header = htobe32(
            qpn << QPN | status << STATUS | (is_send && (!is_read || status) ? IS_SEND : 0) |
            (is_read && status ? 1 : opcode)); // a failed read is one of sends
        const uint32_t length = htobe32(completion->length),
                       number = htobe32(completion->index + 1);
        const uint16_t index = (uint16_t)completion->index;
        const uint64_t generation = htobe64(1ULL << 63);
        memcpy(cqe, &header, sizeof(header));
        memcpy(cqe + LENGTH, &length, sizeof(length));
        if (is_send)
            memcpy(cqe + SEND_INDEX, &index, sizeof(index));
        else
            memcpy(cqe + RECEIVE_NUMBER, &number, sizeof(number));
        memcpy(cqe + GENERATION, &generation, sizeof(generation));
    }
    if (completion->status != IBV_WC_SUCCESS)
        *failed_qp_flag = *failed_cq_flag = 1;
}

// hw/cxgb4/qp.c, c4iw_create_qp(), and t4.h
static int create_qp(struct stub_call *call) {
    enum { SEND_SLOTS = 5, RECEIVE_SLOTS = 2, SLOT = 64, STATUS = 64, INLINE = 280 };
    enum { FAILED = 12 }; // struct t4_status_page, qp_err
    struct c4iw_create_qp_resp *const made = call->out;
    struct ib_uverbs_create_qp_resp *const qp = call->qp;
    if (qp->max_inline_data > INLINE)
        return EINVAL;
    if (qp->max_send_wr > MAX_SENDS || qp->max_recv_wr > MAX_RECEIVES)
        return E2BIG;
    made->sq_size = qp->max_send_wr + 1 < 8 ? 8 : qp->max_send_wr + 1;
    made->rq_size = qp->max_recv_wr + 1 < 8 ? 8 : qp->max_recv_wr + 1;
    made->sq_memsize = rounded(made->sq_size * SEND_SLOTS * SLOT + STATUS + 128);
    made->rq_memsize = rounded(made->rq_size * RECEIVE_SLOTS * SLOT + STATUS);
    made->sqid = made->rqid = qpn = call->handle;
    made->qid_mask = 1;
    uint64_t offset; // other offsets get memory of any size
    stub_new_pages(made->sq_memsize, &offset);
    made->sq_key = offset;
    failed_qp_flag = stub_new_pages(made->rq_memsize, &offset);
    failed_qp_flag += made->rq_size * RECEIVE_SLOTS * SLOT + FAILED;
    made->rq_key = offset;
    qp->max_send_wr = made->sq_size - 1;
    qp->max_recv_wr = made->rq_size - 1;
    qp->max_inline_data = INLINE;
    return 0;
}

// hw/cxgb4/cq.c, c4iw_create_cq()
static void create_cq(struct stub_call *call) {
    struct ib_uverbs_create_cq_resp *const cq = call->response;
    struct c4iw_create_cq_resp *const made = call->out;
    const uint32_t entries = (cq->cqe + 2 + 15) / 16 * 16;
    made->size = entries * 2 < 64 ? 64 : entries * 2;
    made->memsize = rounded(made->size * CQE_SIZE);
    made->size--;
    made->cqid = call->handle;
    made->qid_mask = 1;
    made->flags = C4IW_64B_CQE;
    enum { FAILED = 12 }; // struct t4_status_page, qp_err
    uint64_t offset;
    cqes = stub_new_pages(made->memsize, &offset);
    failed_cq_flag = cqes + (size_t)made->size * CQE_SIZE + FAILED;
    produced = 0;
    made->key = offset;
    cq->cqe = entries - 2;
}

static int complete(struct stub_call *call) {
    switch (call->command) {
    case IB_USER_VERBS_CMD_GET_CONTEXT: {
        struct c4iw_alloc_ucontext_resp *const made = call->out;
        uint64_t offset, *const status = stub_new_pages(PAGE, &offset);
        // struct t4_dev_status_page: the first QP, their number, and those of the CQs
        status[1] = status[3] = 0;
        status[2] = status[4] = 1 << 16;
        made->status_page_key = offset;
        made->status_page_size = PAGE;
        return 0;
    }
    case IB_USER_VERBS_CMD_ALLOC_PD:
        ((struct c4iw_alloc_pd_resp *)call->out)->pdid = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_CQ:
        create_cq(call);
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
        return create_qp(call);
    default:
        return 0;
    }
}

const struct stub_driver stub_cxgb4 = {.name = "cxgb4",
                                       .id = RDMA_DRIVER_CXGB4,
                                       .abi = 3,
                                       .is_iwarp = true,
                                       .describe = describe,
                                       .complete = complete,
                                       .complete_one = complete_one};
