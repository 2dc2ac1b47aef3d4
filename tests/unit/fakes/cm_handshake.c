// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm_handshake.c -- the calls that make a connection or end it.

#include "cm.h"

#include <errno.h>
#include <string.h>

static int refuse(int error) {
    errno = error;
    return -1;
}

// Whether private data is too long for its message on InfiniBand and RoCE. Linux 7.3,
// drivers/infiniband/core: cm.c, cm_validate_req_param(), where cma.c, cma_user_data_offset()
// adds 36 bytes to a request; ib_send_cm_rep(); cm_send_rej_locked(). iWARP sends whatever
// rdma_conn_param can describe (255 bytes).
static bool too_long(unsigned len, unsigned max) {
    return fake_device()->transport == IBV_TRANSPORT_IB && len > max;
}

static int start_connection(struct fake_call *call, struct fake_id *id,
                            const struct rdma_conn_param *param, unsigned max) {
    call->connect.param = *param;
    fake_touch(param, offsetof(struct rdma_conn_param, srq));
    if (param->private_data_len)
        memcpy(call->connect.data, param->private_data, param->private_data_len);
    if (!id || call->failed)
        return fake_answer(call);
    if (too_long(param->private_data_len, max))
        return refuse(EINVAL);
    if (!id->channel)
        fake_misuse("%s: blocks on a synchronous CM ID", call->name);
    if (!id->id.qp)
        fake_misuse("%s: no QP", call->name);
    return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_connect", id);
    struct fake_id *found = fake_find_id(id, "rdma_connect");
    if (found && found->incoming)
        fake_misuse("rdma_connect: on an incoming request");
    // Linux 7.3, drivers/infiniband/core/cma.c, rdma_connect_locked(): RDMA_CM_ROUTE_RESOLVED
    // only.
    if (found && !call->failed && (!found->routed || found->asked)) {
        call->connect.param = *conn_param;
        return refuse(EINVAL);
    }
    const int ret = start_connection(call, found, conn_param, FAKE_REQUEST_DATA);
    if (ret == 0)
        found->asked = true;
    return ret;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_accept", id);
    struct fake_id *found = fake_find_id(id, "rdma_accept");
    if (found && (!found->incoming || found->answered))
        fake_misuse("rdma_accept: not an unanswered incoming request");
    // Linux 7.3, drivers/infiniband/core/cma.c, rdma_accept(): only an unanswered request.
    if (found && !call->failed && (!found->incoming || found->answered))
        return refuse(EINVAL);
    if (found && !call->failed && !too_long(conn_param->private_data_len, FAKE_ACCEPT_DATA))
        found->answered = true;
    const int ret = start_connection(call, found, conn_param, FAKE_ACCEPT_DATA);
    if (ret == 0 && id->qp) // rdma-core 56, librdmacm/cma.c, rdma_accept(): up to RTS
        fake_qp_of(id->qp)->state = IBV_QPS_RTS;
    return ret;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_reject", id);
    call->connect.param.private_data_len = private_data_len;
    if (private_data_len)
        memcpy(call->connect.data, private_data, private_data_len);
    struct fake_id *found = fake_find_id(id, "rdma_reject");
    const bool wrong = found && (!found->incoming || found->answered);
    if (wrong)
        fake_misuse("rdma_reject: not an unanswered incoming request");
    // Linux 7.3, drivers/infiniband/core/cm.c, cm_send_rej_locked(): checks the length first,
    // and says EINVAL. After any other failure the library cannot answer again.
    const bool is_refused = too_long(private_data_len, FAKE_REJECT_DATA) ||
                            (call->failed && call->error == EINVAL && private_data_len > 0);
    if (found && !wrong && !is_refused)
        found->answered = true;
    if (!call->failed && (wrong || too_long(private_data_len, FAKE_REJECT_DATA)))
        return refuse(EINVAL);
    return fake_answer(call);
}

// rdma-core 56, librdmacm/cma.c, rdma_disconnect(): first the QP goes to the error state.
int rdma_disconnect(struct rdma_cm_id *id) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_disconnect", id);
    struct fake_id *found = fake_find_id(id, "rdma_disconnect");
    if (found && !id->qp)
        fake_misuse("rdma_disconnect: no QP");
    if (!found || call->failed)
        return fake_answer(call);
    struct fake_qp *qp = id->qp ? fake_find(FAKE_QP, id->qp, "rdma_disconnect") : NULL;
    if (qp)
        qp->state = IBV_QPS_ERR;
    // Linux 7.3, drivers/infiniband/core/cma.c, rdma_disconnect(): not if never connected.
    return found->asked || found->answered ? 0 : refuse(EINVAL);
}

const char *rdma_event_str(enum rdma_cm_event_type event) {
    static const char *const names[] = {
        "RDMA_CM_EVENT_ADDR_RESOLVED",   "RDMA_CM_EVENT_ADDR_ERROR",
        "RDMA_CM_EVENT_ROUTE_RESOLVED",  "RDMA_CM_EVENT_ROUTE_ERROR",
        "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
        "RDMA_CM_EVENT_CONNECT_ERROR",   "RDMA_CM_EVENT_UNREACHABLE",
        "RDMA_CM_EVENT_REJECTED",        "RDMA_CM_EVENT_ESTABLISHED",
        "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
        "RDMA_CM_EVENT_MULTICAST_JOIN",  "RDMA_CM_EVENT_MULTICAST_ERROR",
        "RDMA_CM_EVENT_ADDR_CHANGE",     "RDMA_CM_EVENT_TIMEWAIT_EXIT",
    };
    return event < sizeof(names) / sizeof(names[0]) ? names[event] : "UNKNOWN EVENT";
}
