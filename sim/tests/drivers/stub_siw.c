// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_siw.c -- siw, whose queues the kernel allocates (linux sw/siw/siw_verbs.c and siw.h)

#include "stub.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/siw-abi.h>

enum { MAX_WR = 1024 * 32 };

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->max_qp_wr = MAX_WR;
    device->max_sge = device->max_srq_sge = SIW_MAX_SGE;
    device->max_sge_rd = 1;
    device->max_cqe = MAX_WR * 100;
    device->max_srq_wr = MAX_WR * 10;
    device->max_qp_rd_atom = device->max_qp_init_rd_atom = 128;
}

static uint64_t new_queue(size_t size) {
    uint64_t offset;
    stub_new_pages(size, &offset);
    return offset;
}

// siw_create_qp()
static int create_qp(struct stub_call *call) {
    struct siw_uresp_create_qp *const made = call->out;
    if (stub_check_qp(call->qp, SIW_MAX_INLINE) || call->qp->max_send_wr == 0)
        return EINVAL;
    made->qp_id = call->handle;
    made->num_sqe = stub_power_of_two(call->qp->max_send_wr);
    made->num_rqe = stub_power_of_two(call->qp->max_recv_wr);
    made->sq_key = new_queue(made->num_sqe * sizeof(struct siw_sqe));
    made->rq_key = new_queue(made->num_rqe * sizeof(struct siw_rqe));
    return 0;
}

// siw_create_cq()
static void create_cq(struct stub_call *call) {
    struct ib_uverbs_create_cq_resp *const cq = call->response;
    struct siw_uresp_create_cq *const made = call->out;
    made->cq_id = call->handle;
    made->num_cqe = cq->cqe = stub_power_of_two(cq->cqe);
    made->cq_key =
        new_queue(made->num_cqe * sizeof(struct siw_cqe) + sizeof(struct siw_cq_ctrl));
}

// siw_create_srq()
static void create_srq(struct stub_call *call) {
    struct siw_uresp_create_srq *const made = call->out;
    made->num_rqe =
        stub_power_of_two(((struct ib_uverbs_create_srq_resp *)call->response)->max_wr);
    made->srq_key = new_queue(made->num_rqe * sizeof(struct siw_rqe));
}

// siw_post_send()
static int ring_doorbell(const struct ib_uverbs_post_send *request) {
    const uint32_t state = stub_qp_state(request->qp_handle);
    return state == IBV_QPS_RTS || state == IBV_QPS_ERR ? 0 : ENOTCONN;
}

static int complete(struct stub_call *call) {
    switch (call->command) {
    case IB_USER_VERBS_CMD_CREATE_CQ:
        create_cq(call);
        return 0;
    case IB_USER_VERBS_CMD_CREATE_SRQ:
        create_srq(call);
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
        return create_qp(call);
    case IB_USER_VERBS_CMD_POST_SEND:
        return ring_doorbell(call->request);
    default:
        return 0;
    }
}

const struct stub_driver stub_siw = {.name = "siw",
                                     .id = RDMA_DRIVER_SIW,
                                     .abi = SIW_ABI_VERSION,
                                     .is_iwarp = true,
                                     .describe = describe,
                                     .complete = complete};
