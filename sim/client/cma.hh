// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cma.hh -- shared by the files of librdmacm.so.1. The logic of each function is that of
// rdma-core, librdmacm/cma.c; the fabric replaces the kernel.

#pragma once

#include "../protocol/protocol_cm.hh"
#include "client.hh"
#include "unsupported.hh"

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <unistd.h>

// A linker that runs on the fabric finds this library by LD_LIBRARY_PATH, and may link it with
// another libibverbs.so.1. It does not report undefined weak symbols.
#pragma weak rdma_sim_call
#pragma weak rdma_sim_place
#pragma weak rdma_sim_take_event
#pragma weak rdma_sim_hold
#pragma weak rdma_sim_unsupported
#pragma weak rdma_sim_wait_for_ack

namespace sim {

struct CmDevice {
    ibv_device *device;
    uint64_t place;
    ibv_context *verbs;  // NULL until it is opened
    const void *context; // the memory of verbs: its beginning, so that valgrind finds no leak
    ibv_pd *pd;          // for IDs whose program passes no PD
    ibv_xrcd *xrcd;      // for IDs of XRC; NULL until one needs it
    unsigned ids;
    uint8_t max_responder_resources, max_initiator_depth;
    bool is_iwarp;
};

struct ShimEventChannel {
    rdma_event_channel channel;
    uint32_t handle;
    pid_t process; // its creator
};

// A multicast group that the ID has joined.
struct ShimMulticast {
    ShimMulticast *next;
    struct ShimId *id;
    uint32_t handle, flags;
    void *context;
    CmAddress address;
    ibv_gid gid; // with lid: known after the event of the group
    uint16_t lid;
    uint32_t events_acked;
};

struct ShimId {
    // As struct cma_id_private of rdma-core 17 to 56, because the machine's rsocket.c reads
    // cma_dev and sync: librdmacm/cma.c, ucma_max_qpsize() and ucma_complete().
    rdma_cm_id id;
    void *cma_dev;      // NULL: the limits of queues are the smallest of all devices
    void *connect_data; // from the address list; precedes the private data
    size_t connect_length;
    uint32_t events_acked;
    int connect_error;
    int is_synchronous;

    uint32_t handle;
    CmDevice *device;
    uint8_t responder_resources, initiator_depth;
    ibv_qp_init_attr *qp_attr; // set by rdma_create_ep() for the requests of a listener
    ibv_ece local_ece, remote_ece;
    ShimMulticast *multicasts;
    pthread_mutex_t mutex;
    pthread_cond_t acked;
};

// Waits until so many events of the ID, or of one of its groups, are acknowledged: rdma-core
// 56, librdmacm/cma.c, ucma_destroy_kern_id() and rdma_leave_multicast().
inline void wait_for_acks(ShimId *id, const uint32_t &acked, uint32_t events,
                          const char *function) {
    pthread_mutex_lock(&id->mutex);
    while (acked < events)
        rdma_sim_wait_for_ack(&id->acked, &id->mutex, function);
    pthread_mutex_unlock(&id->mutex);
}

inline ShimId *shim(rdma_cm_id *id) {
    return reinterpret_cast<ShimId *>(id);
}
inline ShimEventChannel *shim(rdma_event_channel *channel) {
    return reinterpret_cast<ShimEventChannel *>(channel);
}

// ucma.c, ucma_write(): the kernel refuses requests of a child, whose credentials differ from
// those of the process that opened the file.
inline bool is_inherited(rdma_event_channel *channel) {
    return shim(channel)->process != getpid();
}
template <class T>
int call_on(rdma_event_channel *channel, const T &request, typename T::Reply &reply) {
    return is_inherited(channel) ? EACCES : call(request, reply);
}

// Sets errno and returns -1.
int fail(int error);
inline int result(int error) {
    return error ? fail(error) : 0;
}

// The thread is in rsocket(), which tries whether GIDs can be addresses.
extern thread_local bool creates_rsocket;

bool has_devices(); // sets errno if it returns false
// Assigns the ID to the device with this GUID.
int use_device(ShimId *id, uint64_t guid);
void release_device(ShimId *id);
ibv_xrcd *xrcd_of(ShimId *id); // NULL with errno
// Waits for the event that completes an operation of a synchronous ID.
int complete(ShimId *id);
int show_route(ShimId *id, const CmRoute &route);
ShimId *new_id(rdma_event_channel *channel, void *context, rdma_port_space port_space,
               ibv_qp_type qp_type);
void free_id(ShimId *id);
int create_id(rdma_event_channel *channel, rdma_cm_id **id, void *context,
              rdma_port_space port_space, ibv_qp_type qp_type);
void free_multicasts(ShimId *id);
// Attaches the QP of the ID to the group; returns -1 with errno.
int on_joined(ShimMulticast *multicast, const ibv_ah_attr &group);
CmAddress pack(const sockaddr *address);
// Called by rdma_accept(), and for the response of the passive side.
int modify_to_rtr(ShimId *id, uint8_t responder_resources);
int modify_to_rts(ShimId *id, uint8_t initiator_depth);
int modify_to_error(ShimId *id);

} // namespace sim
