// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm_handshake.c -- the calls that make a connection or end it.

#include "internal.h"

#include <errno.h>
#include <string.h>

static void note_data(struct fake_call *call, const void *data, uint8_t length) {
    call->connect.param.private_data_len = length;
    if (length)
        memcpy(call->connect.data, data, length);
}

// Whether private data is too long for its message on InfiniBand and RoCE. Linux 7.3,
// drivers/infiniband/core: cm.c, cm_validate_req_param(), where cma.c, cma_user_data_offset()
// adds 36 bytes to a request; ib_send_cm_rep(); cm_send_rej_locked(). iWARP sends whatever
// rdma_conn_param can describe (255 bytes).
static bool too_long(const struct fake_call *call, unsigned most) {
    return fake_device()->transport == IBV_TRANSPORT_IB &&
           call->connect.param.private_data_len > most;
}

static int start_connection(struct fake_call *call, struct fake_id *id,
                            const struct rdma_conn_param *param, unsigned most) {
    call->connect.param = *param;
    fake_touch(param, offsetof(struct rdma_conn_param, srq));
    note_data(call, param->private_data, param->private_data_len);
    if (!id || call->failed || too_long(call, most))
        return fake_answer(call, EINVAL);
    if (!id->channel)
        fake_misuse("blocks on a synchronous CM ID");
    if (!id->id.qp)
        fake_misuse("no QP");
    return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param) {
    FAKE_ID_CALL(id);
    if (found && found->incoming)
        fake_misuse("on an incoming request");
    // Linux 7.3, drivers/infiniband/core/cma.c, rdma_connect_locked(): RDMA_CM_ROUTE_RESOLVED
    // only.
    if (found && !call->failed && (!found->routed || found->asked)) {
        call->connect.param = *conn_param;
        return fake_refused(EINVAL);
    }
    const int ret = start_connection(call, found, conn_param, FAKE_REQUEST_DATA);
    if (ret == 0)
        found->asked = true;
    return ret;
}

// Only an unanswered request is accepted or rejected.
static bool is_asking(const struct fake_id *id) {
    if (id->incoming && !id->answered)
        return true;
    fake_misuse("not an unanswered incoming request");
    return false;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param) {
    FAKE_ID_CALL(id);
    if (found && !is_asking(found) && !call->failed)
        return fake_refused(EINVAL); // Linux 7.3, drivers/infiniband/core/cma.c, rdma_accept()
    const int ret = start_connection(call, found, conn_param, FAKE_ACCEPT_DATA);
    if (ret == 0)
        found->answered = true;
    if (ret == 0 && id->qp) // rdma-core 56, librdmacm/cma.c, rdma_accept(): up to RTS
        fake_qp_of(id->qp)->state = IBV_QPS_RTS;
    return ret;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len) {
    FAKE_ID_CALL(id);
    note_data(call, private_data, private_data_len);
    const bool wrong = found && !is_asking(found);
    // Linux 7.3, drivers/infiniband/core/cm.c, cm_send_rej_locked(): checks the length first,
    // and says EINVAL. After any other failure the library cannot answer again.
    const bool is_refused = too_long(call, FAKE_REJECT_DATA) ||
                            (call->failed && call->error == EINVAL && private_data_len > 0);
    if (found && !wrong && !is_refused)
        found->answered = true;
    return fake_answer(call, wrong || too_long(call, FAKE_REJECT_DATA) ? EINVAL : 0);
}

// rdma-core 56, librdmacm/cma.c, rdma_disconnect(): first the QP goes to the error state.
int rdma_disconnect(struct rdma_cm_id *id) {
    FAKE_ID_CALL(id);
    if (found && !id->qp)
        fake_misuse("no QP");
    if (!found || call->failed)
        return fake_answer(call, EINVAL);
    struct fake_qp *qp = id->qp ? fake_find(FAKE_QP, id->qp) : NULL;
    if (qp)
        qp->state = IBV_QPS_ERR;
    // Linux 7.3, drivers/infiniband/core/cma.c, rdma_disconnect(): not if never connected.
    return found->asked || found->answered ? 0 : fake_refused(EINVAL);
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
