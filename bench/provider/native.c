// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// native.c -- a second device, which has native flush and atomic write

#include "provider.h"

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

enum { EXTENDED = 1 };

static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attributes, size_t size) {
    provider_count("ibv_query_device");
    *attributes = (struct ibv_device_attr_ex){.orig_attr.max_qp_wr = 1 << 20,
                                              .orig_attr.max_cqe = 1 << 20,
                                              .orig_attr.max_sge = 16,
                                              .orig_attr.atomic_cap = IBV_ATOMIC_HCA,
                                              .device_cap_flags_ex =
                                                  (uint64_t)IB_UVERBS_DEVICE_FLUSH_GLOBAL |
                                                  (uint64_t)IB_UVERBS_DEVICE_FLUSH_PERSISTENT |
                                                  (uint64_t)IB_UVERBS_DEVICE_ATOMIC_WRITE};
    return 0;
}

struct ibv_context *provider_native_device(void) {
    static struct verbs_context extended = {.query_device_ex = query_device_ex,
                                            .sz = sizeof(extended)};
    extended.context = *provider_device();
    extended.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    return &extended.context;
}

static void wr_start(struct ibv_qp_ex *qp) {}

static int wr_complete(struct ibv_qp_ex *qp) {
    return 0;
}

static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len,
                     uint8_t type, uint8_t level) {}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
                            const void *bytes) {}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr) {}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t num_sge, const struct ibv_sge *sges) {}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length) {}

struct ibv_qp *provider_native_qp(uint64_t operations) {
    struct ibv_qp_ex *qp = provider_object(sizeof(*qp));
    qp->wr_start = wr_start;
    qp->wr_complete = wr_complete;
    qp->wr_rdma_write = operations & IBV_QP_EX_WITH_RDMA_WRITE ? wr_rdma_write : NULL;
    qp->wr_set_sge = wr_set_sge;
    qp->wr_set_sge_list = wr_set_sge_list;
    qp->wr_flush = operations & IBV_QP_EX_WITH_FLUSH ? wr_flush : NULL;
    qp->wr_atomic_write = operations & IBV_QP_EX_WITH_ATOMIC_WRITE ? wr_atomic_write : NULL;
    qp->qp_base.handle = EXTENDED;
    return &qp->qp_base;
}

// As cheap as the real function: a library may call it for each operation.
struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) {
    return qp->handle == EXTENDED ? (struct ibv_qp_ex *)qp : NULL;
}
