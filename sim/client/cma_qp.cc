// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cma_qp.cc -- the QP, SRQ and CQs of a CM ID.

#include "cma.hh"

#include <cstring>

namespace sim {

// `change` can replace an attribute.
template <class Change>
static int modify(ShimId *id, ibv_qp *qp, ibv_qp_state to, Change change) {
    ibv_qp_attr attr = {};
    int mask;
    attr.qp_state = to;
    if (rdma_init_qp_attr(&id->id, &attr, &mask))
        return -1;
    change(attr);
    return result(ibv_modify_qp(qp, &attr, mask));
}

// cma.c, ucma_modify_qp_rtr(). iWARP devices move their QPs themselves.
int modify_to_rtr(ShimId *id, uint8_t responder_resources) {
    if (!id->id.qp)
        return 0;
    if (modify(id, id->id.qp, IBV_QPS_INIT, [](ibv_qp_attr &) {}))
        return -1;
    if (id->device->is_iwarp)
        return 0;
    return modify(id, id->id.qp, IBV_QPS_RTR, [responder_resources](ibv_qp_attr &attr) {
        if (responder_resources != RDMA_MAX_RESP_RES)
            attr.max_dest_rd_atomic = responder_resources;
    });
}

int modify_to_rts(ShimId *id, uint8_t initiator_depth) {
    if (!id->id.qp || id->device->is_iwarp)
        return 0;
    return modify(id, id->id.qp, IBV_QPS_RTS, [initiator_depth](ibv_qp_attr &attr) {
        if (initiator_depth != RDMA_MAX_INIT_DEPTH)
            attr.max_rd_atomic = initiator_depth;
    });
}

int modify_to_error(ShimId *id) {
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_ERR;
    return id->id.qp ? result(ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE)) : 0;
}

// cma.c, ucma_init_conn_qp() and ucma_init_ud_qp()
static int init_qp(ShimId *id, ibv_qp *qp) {
    ibv_qp_attr attr = {};
    if (modify(id, qp, IBV_QPS_INIT, [](ibv_qp_attr &) {}))
        return -1;
    if (id->id.qp_type != IBV_QPT_UD)
        return 0;
    attr.qp_state = IBV_QPS_RTR;
    const int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    if (error)
        return fail(error);
    attr.qp_state = IBV_QPS_RTS;
    return result(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void destroy_cq(ibv_cq **cq, ibv_comp_channel **channel) {
    if (*cq)
        ibv_destroy_cq(*cq);
    if (*channel)
        ibv_destroy_comp_channel(*channel);
    *cq = nullptr;
    *channel = nullptr;
}

static void destroy_cqs(rdma_cm_id *id) {
    destroy_cq(&id->recv_cq, &id->recv_cq_channel);
    destroy_cq(&id->send_cq, &id->send_cq_channel);
}

static int create_cq(rdma_cm_id *id, uint32_t size, ibv_cq **cq, ibv_comp_channel **channel) {
    if (size == 0)
        return 0;
    *channel = ibv_create_comp_channel(id->verbs);
    if (*channel)
        *cq = ibv_create_cq(id->verbs, static_cast<int>(size), id, *channel, 0);
    return *cq ? 0 : -1;
}

} // namespace sim

using namespace sim;

extern "C" {

int rdma_init_qp_attr(rdma_cm_id *id, ibv_qp_attr *qp_attr, int *qp_attr_mask) {
    CmInitQpAttr request = {};
    CmInitQpAttr::Reply reply;
    request.id = shim(id)->handle;
    request.state = qp_attr->qp_state;
    const int error = call_on(id->channel, request, reply);
    if (error)
        return fail(error);
    *qp_attr = reply.attr;
    *qp_attr_mask = static_cast<int>(reply.mask);
    return 0;
}

int rdma_create_srq_ex(rdma_cm_id *id, ibv_srq_init_attr_ex *attr) {
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
        return fail(EINVAL);
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
        attr->pd = id->pd;
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    }
    if (attr->srq_type == IBV_SRQT_XRC) {
        if ((!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) &&
            !(attr->xrcd = xrcd_of(shim(id))))
            return -1;
        if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
            if (create_cq(id, attr->attr.max_wr, &id->recv_cq, &id->recv_cq_channel))
                return -1;
            attr->cq = id->recv_cq;
        }
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    }
    ibv_srq *const srq = ibv_create_srq_ex(id->verbs, attr);
    if (!srq) {
        const int error = errno;
        destroy_cqs(id);
        return fail(error);
    }
    if (!id->pd)
        id->pd = attr->pd;
    id->srq = srq;
    return 0;
}

int rdma_create_srq(rdma_cm_id *id, ibv_pd *pd, ibv_srq_init_attr *attr) {
    ibv_srq_init_attr_ex extended = {};
    extended.srq_context = attr->srq_context;
    extended.attr = attr->attr;
    extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    extended.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
    extended.pd = pd;
    const int ret = rdma_create_srq_ex(id, &extended);
    attr->attr = extended.attr;
    return ret;
}

void rdma_destroy_srq(rdma_cm_id *id) {
    ibv_destroy_srq(id->srq);
    id->srq = nullptr;
    destroy_cqs(id);
}

int rdma_create_qp_ex(rdma_cm_id *id, ibv_qp_init_attr_ex *attr) {
    if (id->qp || !shim(id)->device)
        return fail(EINVAL);
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
        attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
        attr->pd = id->pd;
    } else if (id->verbs != attr->pd->context) {
        return fail(EINVAL);
    }
    if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
        (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
        return fail(EINVAL);
    if (id->qp_type == IBV_QPT_XRC_RECV) {
        if ((!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd) &&
            !(attr->xrcd = xrcd_of(shim(id))))
            return -1;
        attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
    }
    const uint32_t sends = attr->send_cq || id->send_cq ? 0 : attr->cap.max_send_wr;
    const uint32_t receives = attr->recv_cq || id->recv_cq ? 0 : attr->cap.max_recv_wr;
    ibv_qp *qp = nullptr;
    if (!create_cq(id, receives, &id->recv_cq, &id->recv_cq_channel) &&
        !create_cq(id, sends, &id->send_cq, &id->send_cq_channel)) {
        if (!attr->send_cq)
            attr->send_cq = id->send_cq;
        if (!attr->recv_cq)
            attr->recv_cq = id->recv_cq;
        if (id->srq && !attr->srq)
            attr->srq = id->srq;
        qp = ibv_create_qp_ex(id->verbs, attr);
    }
    if (!qp || init_qp(shim(id), qp)) {
        const int error = errno;
        if (qp)
            ibv_destroy_qp(qp);
        destroy_cqs(id);
        return fail(error);
    }
    id->pd = qp->pd;
    id->qp = qp;
    return 0;
}

int rdma_create_qp(rdma_cm_id *id, ibv_pd *pd, ibv_qp_init_attr *attr) {
    ibv_qp_init_attr_ex extended = {};
    memcpy(&extended, attr, sizeof(*attr)); // attr is its beginning
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    extended.pd = pd ? pd : id->pd;
    const int ret = rdma_create_qp_ex(id, &extended);
    memcpy(attr, &extended, sizeof(*attr));
    return ret;
}

void rdma_destroy_qp(rdma_cm_id *id) {
    ibv_destroy_qp(id->qp);
    id->qp = nullptr;
    destroy_cqs(id);
}

} // extern "C"
