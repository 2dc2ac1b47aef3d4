// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// shim.hh -- the objects of libibverbs.so.1 over the simulated fabric.

#pragma once

#include "client.hh"

#include <cstdlib>
#include <cstring>
#include <pthread.h>

namespace sim {

// Zeros follow the structure: providers of real devices search there for their functions, find
// none, and do not use the device.
struct ShimDevice {
    ibv_device device;
    void *of_providers[64];
    DeviceInfo::Reply info;
};

struct ShimContext {
    verbs_context verbs; // programs use its `context`
    uint32_t handle, async_channel;
};

struct ShimXrcd {
    ibv_xrcd xrcd;
    uint32_t handle;
};

struct ShimChannel {
    ibv_comp_channel channel;
    uint32_t handle;
};

struct ShimCq {
    ibv_cq_ex ex; // programs without extended CQs use its beginning as ibv_cq
    pthread_mutex_t lock;
    Ring *ring;
    RingPlace place;
    unsigned empty_polls;
    Completion current; // of ibv_start_poll() and ibv_next_poll()
};

// A work request list, encoded for the protocol.
struct Encoder {
    char bytes[MAX_MESSAGE - 64];
    size_t used;
    uint32_t count;
};

// ibv_wr_*() builders between ibv_wr_start() and ibv_wr_complete().
struct Builder {
    Encoder encoder;
    size_t at; // offset of the last request
    int error;
};

// A kind of send request that a queue has accepted: the fabric can refuse another one of the
// kind, with as much data or less, only because the queue is full. A word, because threads
// share it.
struct alignas(8) AcceptedSend {
    uint16_t num_sge, inline_length;
    uint16_t units; // 0: none was accepted
    bool is_inline, is_built;
};

// The layout of rdma-core >= 45. With older headers, ibv_qp_ex ends before wr_flush.
struct ShimQp {
    ibv_qp_ex ex; // programs use its qp_base
#ifndef RDMA_SIM_HEADERS_HAVE_FLUSH
    void (*wr_flush)(ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                     uint8_t type, uint8_t level);
#endif
    bool is_extended;
    uint64_t send_ops;
    ibv_qp_cap cap;
    int sq_sig_all;
    pthread_mutex_t lock;
    Builder *builder;
    AcceptedSend accepted[SIM_WR_ATOMIC_WRITE + 1]; // by opcode
};

inline ShimContext *shim_of(ibv_context *context) {
    return reinterpret_cast<ShimContext *>(reinterpret_cast<char *>(context) -
                                           offsetof(verbs_context, context));
}
inline ShimDevice *shim_of(ibv_device *device) {
    return reinterpret_cast<ShimDevice *>(device);
}
inline ShimChannel *shim_of(ibv_comp_channel *channel) {
    return reinterpret_cast<ShimChannel *>(channel);
}
inline ShimXrcd *shim_of(ibv_xrcd *xrcd) {
    return reinterpret_cast<ShimXrcd *>(xrcd);
}
inline ShimCq *shim_of(ibv_cq *cq) {
    return reinterpret_cast<ShimCq *>(cq);
}
inline ShimQp *shim_of(ibv_qp *qp) {
    return reinterpret_cast<ShimQp *>(qp);
}

template <class T> T *allocate() {
    return static_cast<T *>(calloc(1, sizeof(T)));
}
template <class T> T *fail(int error) {
    errno = error;
    return nullptr;
}
inline uint64_t cookie_of(const void *object) {
    return reinterpret_cast<uint64_t>(object);
}

// Destroys the object in the fabric; returns an error number.
int destroy(uint32_t handle, Destroy::Reply &reply);
// Destroys an object without events, and frees its structure.
int destroy_simple(uint32_t handle, void *memory);
// Returns the structure of the object that the request creates, or NULL with errno: EMFILE if
// the process has no room for the descriptor `fd` of the object.
template <class T, class R>
T *create(const R &request, typename R::Reply &reply, int *fd = nullptr) {
    T *const made = allocate<T>();
    int error = made ? call(request, reply, fd) : ENOMEM;
    if (!error && fd && *fd < 0) {
        uint32_t handle; // the first member of each such reply
        Destroy::Reply destroyed;
        memcpy(&handle, &reply, sizeof(handle));
        (void)destroy(handle, destroyed);
        error = EMFILE;
    }
    if (!error)
        return made;
    free(made);
    return fail<T>(error);
}

// cq_qp.cc
ibv_cq_ex *create_cq_ex(ibv_context *context, ibv_cq_init_attr_ex *attr);
// xrcd and cq: NULL unless the SRQ is of XRC.
ibv_srq *create_srq(ibv_pd *pd, void *context, ibv_srq_attr &attr, ibv_xrcd *xrcd, ibv_cq *cq);
ibv_qp *create_qp_ex(ibv_context *context, ibv_qp_init_attr_ex *attr);
ibv_mw *alloc_mw(ibv_pd *pd, ibv_mw_type type);
int dealloc_mw(ibv_mw *mw);
int bind_mw(ibv_qp *qp, ibv_mw *mw, ibv_mw_bind *bind);
// post_poll.cc
int poll_cq(ibv_cq *cq, int number, ibv_wc *wc);
void set_cq_functions(ibv_cq_ex *cq, uint64_t wc_flags);
int req_notify_cq(ibv_cq *cq, int solicited_only);
int post_send(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad);
int post_recv(ibv_qp *qp, ibv_recv_wr *wr, ibv_recv_wr **bad);
int post_srq_recv(ibv_srq *srq, ibv_recv_wr *wr, ibv_recv_wr **bad);
// unsupported.cc
void set_unsupported(verbs_context &verbs);
ibv_srq *refuse_srq_ex(ibv_context *context, ibv_srq_init_attr_ex *attr);
// xrc.cc
void set_xrc(verbs_context &verbs);
// builders.cc
int set_builders(ShimQp *qp);

} // namespace sim
