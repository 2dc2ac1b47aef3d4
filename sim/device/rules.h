// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// rules.h -- checks of devices and of the connection manager, and the sizes that they choose.
//
// The fabric and the fakes of the unit tests share these functions. A check returns an error
// number or 0.

#ifndef SIM_RULES_H
#define SIM_RULES_H 1

#include "profile.h"

#include <rdma/rdma_cma.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Names and values of rdma-core >= 45, for older headers.
enum { SIM_WR_FLUSH = 14, SIM_WR_ATOMIC_WRITE = 15 };
enum { SIM_ACCESS_FLUSH_GLOBAL = 1 << 8, SIM_ACCESS_FLUSH_PERSISTENT = 1 << 9 };
enum { SIM_FLUSH_GLOBAL = 1, SIM_FLUSH_PERSISTENT = 2 }; // types of a flush
enum { SIM_FLUSH_RANGE = 0, SIM_FLUSH_REGION = 1 };      // levels of a flush
#define SIM_QP_EX_WITH_FLUSH (1ULL << 11)
#define SIM_QP_EX_WITH_ATOMIC_WRITE (1ULL << 12)
#define SIM_CAP_FLUSH_GLOBAL (1ULL << 38)
#define SIM_CAP_FLUSH_PERSISTENT (1ULL << 39)
#define SIM_CAP_ATOMIC_WRITE (1ULL << 40)

// ---- devices -------------------------------------------------------------------------------

// The result of ibv_query_device_ex(), without GUIDs.
bool sim_has_xrc(const struct sim_profile *device);
// The type of the QP to which one of this type is connected.
enum ibv_qp_type sim_peer_type(enum ibv_qp_type type);
void sim_describe_device(const struct sim_profile *device, struct ibv_device_attr_ex *attr);
// The builders of an extended QP (enum ibv_qp_create_send_ops_flags); 0: it has no extended
// QPs.
uint64_t sim_send_ops(const struct sim_profile *device, enum ibv_qp_type type);
// The memory of a region: FS-DAX is a file on a file system with DAX.
enum sim_memory { SIM_VOLATILE, SIM_DEVICE_DAX, SIM_FS_DAX };
int sim_check_region(const struct sim_profile *device, unsigned access, uint64_t length,
                     enum sim_memory memory);
// The actual size of a CQ, and of other queues unless the device has a sizing.
uint32_t sim_queue_size(const struct sim_profile *device, uint32_t wanted);
int sim_check_cq(const struct sim_profile *device, int64_t entries, int64_t vector);
// The attributes of ibv_create_cq_ex() that ibv_create_cq() does not have. `comp_mask`: enum
// ibv_cq_init_attr_mask.
int sim_check_cq_ex(const struct sim_profile *device, unsigned comp_mask, unsigned flags,
                    uint64_t wc_flags);
// These set the actual sizes and the sizes that the device reports.
int sim_check_srq(const struct sim_profile *device, struct ibv_srq_attr *attr,
                  struct ibv_srq_attr *reported);
// Sets max_wr to the actual size if the mask changes it. `receives`: how many the queue holds.
int sim_check_srq_change(const struct sim_profile *device, const struct ibv_srq_attr *attr,
                         unsigned mask, uint32_t *max_wr, size_t receives);
int sim_check_qp(const struct sim_profile *device, struct ibv_qp_cap *cap, bool has_srq,
                 struct ibv_qp_cap *reported);

int sim_check_qp_change(const struct sim_profile *device, enum ibv_qp_type type,
                        enum ibv_qp_state from, const struct ibv_qp_attr *attr, int mask);

// The kind of the objects that asynchronous events of a type are about.
enum sim_about { SIM_ABOUT_CQ, SIM_ABOUT_SRQ, SIM_ABOUT_QP, SIM_ABOUT_DEVICE };
enum sim_about sim_about_of(enum ibv_event_type type);

bool sim_is_ip4_gid(const union ibv_gid *gid);
// Of an address handle, or of the path of a QP, from a device with `count` GIDs. Linux 7.3,
// drivers/infiniband/core: verbs.c, rdma_fill_sgid_attr(); addr.c, rdma_resolve_ip(): the
// families of the source and of the destination are the same.
int sim_check_path(const struct sim_profile *device, const union ibv_gid *gids, size_t count,
                   const struct ibv_ah_attr *path);

enum { SIM_MULTICAST_LID = 0xc000, SIM_MULTICAST_QP = 0xffffff };
bool sim_is_multicast_gid(const union ibv_gid *gid);
// Of ibv_attach_mcast() and ibv_detach_mcast().
int sim_check_multicast(const struct sim_profile *device, enum ibv_qp_type type,
                        const union ibv_gid *gid, uint16_t lid);

// ---- requests ------------------------------------------------------------------------------

// The members of a send request that are checked at the post and at the target.
struct sim_send {
    uint32_t opcode, flags, num_sge;
    uint64_t length; // of all SGEs or inline data, or of the range of a flush
    uint64_t remote_addr;
    unsigned flush_type, flush_level;
};

bool sim_has_atomics(const struct sim_profile *device);
bool sim_is_atomic(uint32_t opcode);
// Returns true if the device writes to the memory of the request.
bool sim_writes_memory(uint32_t opcode);
bool sim_is_inline(uint32_t opcode, uint32_t flags);
// How much of the send queue the request uses; its size, cap->max_send_wr, has the same unit.
uint32_t sim_send_units(const struct sim_profile *device, const struct sim_send *send);
// `queued`: how many units the queue holds.
int sim_check_send(const struct sim_profile *device, bool is_connected,
                   const struct ibv_qp_cap *cap, const struct sim_send *send, size_t queued);
// The same check for a request that ibv_wr_*() built.
int sim_check_built(const struct sim_profile *device, bool is_connected,
                    const struct ibv_qp_cap *cap, const struct sim_send *send, size_t queued);
// The result of ibv_post_send(), which accepted `accepted` requests and refused the next one
// with `error`, or none (0).
// `is_idle`: the queue was empty.
int sim_post_result(const struct sim_profile *device, bool is_connected, bool is_idle,
                    size_t accepted, int error);
int sim_check_receive(const struct sim_profile *device, uint32_t size, uint32_t max_sge,
                      uint32_t num_sge, size_t queued);

// ---- execution -----------------------------------------------------------------------------

// The region of a key, and its protection domain.
struct sim_region {
    const void *pd;
    uint64_t start, length;
    unsigned access;
};
enum sim_fault { SIM_NO_FAULT, SIM_NO_REGION, SIM_OTHER_PD, SIM_NO_ACCESS, SIM_OUT_OF_RANGE };
// Return the reason why requests of a domain must not access the region, or a range of it, or
// SIM_NO_FAULT. `region` is NULL if no region has the key.
enum sim_fault sim_check_key(const struct sim_region *region, const void *pd, unsigned access);
enum sim_fault sim_check_range(const struct sim_region *region, const void *pd, unsigned access,
                               uint64_t address, uint64_t length);
// The same check at the target of a request, whose QP has this access and domain.
enum ibv_wc_status sim_check_target(const struct sim_profile *device,
                                    const struct sim_send *send, unsigned qp_access,
                                    const struct sim_region *region, const void *pd);
// The word after a remote atomic operation.
uint64_t sim_atomic_result(uint32_t opcode, uint64_t before, uint64_t compare_add,
                           uint64_t swap);

// The completions for which a CQ creates an event.
enum sim_armed { SIM_NOT_ARMED, SIM_ARMED_FOR_SOLICITED, SIM_ARMED };
void sim_arm(enum sim_armed *armed, bool solicited_only);
// Returns true if a completion has an event, which disarms the CQ.
bool sim_notifies(const struct sim_profile *device, enum sim_armed *armed,
                  enum ibv_wc_status status, bool is_solicited);

// ---- connections ---------------------------------------------------------------------------

enum sim_message { SIM_REQUEST, SIM_REPLY, SIM_REJECTION, SIM_UD_REQUEST, SIM_UD_REPLY };
int sim_check_private_data(const struct sim_profile *device, enum sim_message message,
                           size_t length);
// The number of bytes of private data that the receiver of a message gets.
uint8_t sim_received_data(const struct sim_profile *device, enum sim_message message,
                          uint8_t sent);
// Addresses of IPv4 and IPv6, whose ports have the same place. Ports are in network byte order.
size_t sim_address_length(const struct sockaddr *address); // 0: NULL, or another family
in_port_t sim_port(const struct sockaddr *address);
void sim_set_port(struct sockaddr *address, in_port_t port);
bool sim_is_wildcard(const struct sockaddr *address);
bool sim_is_multicast(const struct sockaddr *address);
bool sim_is_same_host(const struct sockaddr *one, const struct sockaddr *other);
// The states of a CM ID.
enum sim_cm_state {
    SIM_CM_IDLE,
    SIM_CM_BOUND,
    SIM_CM_RESOLVING,
    SIM_CM_RESOLVED,
    SIM_CM_ROUTING,
    SIM_CM_ROUTED,
    SIM_CM_LISTENING,
    SIM_CM_REQ_SENT, // from this state on, a connection was requested
    SIM_CM_REQ_RECEIVED,
    SIM_CM_REP_SENT,
    SIM_CM_REP_RECEIVED,
    SIM_CM_ESTABLISHED,
    SIM_CM_DREQ_SENT,
    SIM_CM_DREQ_RECEIVED,
    SIM_CM_TIMEWAIT,
    SIM_CM_CLOSED // rejected or unreachable
};
enum sim_cm_call {
    SIM_CM_BIND,
    SIM_CM_RESOLVE_ADDR,
    SIM_CM_RESOLVE_ROUTE,
    SIM_CM_LISTEN,
    SIM_CM_CONNECT,
    SIM_CM_ACCEPT,  // rdma_accept() of the passive side
    SIM_CM_CONFIRM, // rdma_accept() of the active side, which librdmacm calls
    SIM_CM_REJECT,
    SIM_CM_DISCONNECT,
    SIM_CM_SET_AFONLY,
};
int sim_check_cm_call(enum sim_cm_state state, enum sim_cm_call call);
// The state after an event was reported.
enum sim_cm_state sim_cm_state_after(enum sim_cm_state state, enum rdma_cm_event_type event);
int sim_check_option(int level, int name, size_t length);
const char *sim_cm_event_name(int event);

#ifdef __cplusplus
}
#endif

#endif // SIM_RULES_H
