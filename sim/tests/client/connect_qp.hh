// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// connect_qp.hh -- connects a queue pair without the connection manager.

#pragma once

#include <infiniband/verbs.h>

// To the queue pair of that number, on the device with that GID. `attr` has the access, the
// time limits, the numbers of repetitions and of reads of RC and XRC, and the MTU, if it is not
// 1024. Returns an error number.
inline int connect_qp(ibv_qp *qp, ibv_qp_attr attr, const ibv_gid &gid, uint32_t number,
                      uint32_t psn = 7) {
    attr.port_num = attr.ah_attr.port_num = 1;
    if (attr.path_mtu == 0)
        attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = number;
    attr.rq_psn = attr.sq_psn = psn;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = gid;
    attr.ah_attr.grh.sgid_index = gid.raw[10] == 0xff; // of the same family
    const bool is_reliable = qp->qp_type != IBV_QPT_UC;
    attr.qp_state = IBV_QPS_INIT;
    int error = ibv_modify_qp(
        qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr.qp_state = IBV_QPS_RTR;
    if (!error)
        error = ibv_modify_qp(
            qp, &attr,
            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                (is_reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
    attr.qp_state = IBV_QPS_RTS;
    if (!error)
        error = ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_SQ_PSN |
                                  (is_reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                                               : 0));
    return error;
}
