// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// library.hh -- the objects of the simulated librpma that no other file knows, and helpers of
// its functions. A call that a manual page forbids is a finding. So is a function that is
// missing, because the module cannot be loaded.

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

// Functions of one shape, named after the object and its member.
#define NEW(object)                          \
    int object##_new(object **made) {        \
        *made = world.make_object<object>(); \
        return 0;                            \
    }
#define DELETE(object)                   \
    int object##_delete(object **made) { \
        return forget(made, __func__);   \
    }
#define SET(object, member, type)                         \
    int object##_set_##member(object *made, type value) { \
        USE(made).member = value;                         \
        return 0;                                         \
    }
// The value is one of "made".
#define GET(object, name, type, value)                          \
    int object##_get_##name(const object *used, type *output) { \
        auto &made = const_cast<object &>(USE(used));           \
        *output = value;                                        \
        return 0;                                               \
    }

// Returns false where a read of the descriptor would return EAGAIN.
bool wait_for(int fd);
// Makes a queue, with a channel of its own unless it shares one.
rpma_cq *make_cq(size_t size, const rpma_conn *of = nullptr, Channel *shared = nullptr);
Channel *make_channel();
// Adds receives to a queue.
int receive(std::deque<Receive> &queue, size_t size, const rpma_receive *receives,
            uint32_t count, uint32_t *posted);
int receive_one(std::deque<Receive> &queue, size_t size, rpma_mr_local *dst, size_t offset,
                size_t len, const void *op_context);

#endif
