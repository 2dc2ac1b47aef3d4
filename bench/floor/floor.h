// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// floor.h -- the handles of the library without checks

#ifndef FLOOR_H
#define FLOOR_H 1

#include <librpma.h>

struct rpma_peer {
    struct ibv_pd *pd;
};

struct rpma_mr_local {
    uint64_t addr;
    uint32_t lkey;
};

struct rpma_mr_remote {
    uint64_t addr;
    uint32_t rkey;
};

struct rpma_conn {
    struct ibv_qp *qp;
    struct ibv_sge flush_read;
};

struct rpma_conn_cfg {
    uint32_t cq_size;
};

static inline struct ibv_sge slice(const struct rpma_mr_local *mr, size_t offset, size_t len) {
    return (struct ibv_sge){mr->addr + offset, (uint32_t)len, mr->lkey};
}

static inline unsigned signaled(int flags) {
    return (unsigned)flags & IBV_SEND_SIGNALED;
}

#endif /* FLOOR_H */
