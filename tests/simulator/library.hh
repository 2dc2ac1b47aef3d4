// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// library.hh -- the objects of the simulated librpma, and helpers of its functions

#ifndef SIMULATOR_LIBRARY_HH
#define SIMULATOR_LIBRARY_HH 1

#include "world.hh"

struct rpma_peer_cfg : Object {
    bool direct_write_to_pmem = false;
};

struct rpma_mr_remote : Object {
    const rpma_mr_local *region;
};

struct rpma_conn_cfg : Object {
    int timeout = RPMA_DEFAULT_TIMEOUT_MS;
    uint32_t cq_size = 20, sq_size = 10, rcq_size = 0, rq_size = 10;
    bool compl_channel = false;
    rpma_srq *srq = nullptr;
    rpma_cq *cq = nullptr;
};

struct rpma_srq_cfg : Object {
    uint32_t rq_size = 100, rcq_size = 100;
};

struct rpma_cq_cfg : Object {
    uint32_t size = 20;
};

struct rpma_conn_req : Object {
    rpma_peer *peer;
    Link *link;
    bool incoming;
    rpma_conn *conn; // what it may become
    rpma_conn_cfg cfg;
};

template <typename T> T &use(T *object, const char *function) {
    if (!object || !object->alive || object->owner != world.current)
        world.found("%s: there is no such object (any more)", function);
    return *object;
}
#define USE(object) use(object, __func__)

template <typename T> int forget(T **object, const char *function) {
    if (*object)
        use(*object, function).alive = false;
    *object = nullptr;
    return 0;
}

#endif
