// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// request_rules.c -- requests, their execution, and connections

#include "sizes.h"

#include <errno.h>
#include <string.h>

// ---- requests ------------------------------------------------------------------------------

bool sim_has_atomics(const struct sim_profile *device) {
    return device->attr.atomic_cap != IBV_ATOMIC_NONE;
}

bool sim_is_atomic(uint32_t opcode) {
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool sim_writes_memory(uint32_t opcode) {
    return opcode == IBV_WR_RDMA_READ || sim_is_atomic(opcode);
}

bool sim_is_inline(uint32_t opcode, uint32_t flags) {
    return (flags & IBV_SEND_INLINE) && !sim_writes_memory(opcode) && opcode != SIM_WR_FLUSH;
}

static bool has_opcode(const struct sim_profile *device, uint32_t opcode) {
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_SEND:
    case IBV_WR_RDMA_READ:
        return true;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return device->has_write_imm;
    case IBV_WR_SEND_WITH_IMM:
        return device->has_send_imm;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return sim_has_atomics(device);
    case IBV_WR_BIND_MW:
    case IBV_WR_LOCAL_INV:
    case IBV_WR_SEND_WITH_INV:
        return device->has_windows;
    case SIM_WR_FLUSH:
        return device->has_native_flush;
    case SIM_WR_ATOMIC_WRITE:
        return device->has_native_atomic_write;
    default:
        return false;
    }
}

static bool is_opcode(uint32_t opcode) {
    return opcode <= IBV_WR_DRIVER1 || opcode == SIM_WR_FLUSH || opcode == SIM_WR_ATOMIC_WRITE;
}

uint32_t sim_send_units(const struct sim_profile *device, const struct sim_send *send) {
    return device->sizing && device->sizing->units ? device->sizing->units(send) : 1;
}

static bool is_full(const struct sim_profile *device, const struct ibv_qp_cap *cap,
                    const struct sim_send *send, size_t queued) {
    const bool checks_one = device->sizing && device->sizing->checks_one_unit;
    return queued + (checks_one ? 1 : sim_send_units(device, send)) > cap->max_send_wr;
}

// rdma-core 56, providers/rxe/rxe.c, validate_send_wr() and post_one_send();
// providers/mlx5/qp.c, _mlx5_post_send() and set_data_inl_seg(); providers/mlx4/qp.c,
// mlx4_post_send(): the errors that differ are in the profile.
int sim_check_send(const struct sim_profile *device, bool is_connected,
                   const struct ibv_qp_cap *cap, const struct sim_send *send, size_t queued) {
    const bool is_atomic = sim_is_atomic(send->opcode);
    if (!is_connected && device->early_error)
        return device->early_error;
    if (!is_opcode(send->opcode) && device->opcode_error)
        return device->opcode_error;
    if (is_opcode(send->opcode) && !has_opcode(device, send->opcode))
        return device->invalid_error;
    if (device->checks_inline_reads && send->opcode == IBV_WR_RDMA_READ &&
        (send->flags & IBV_SEND_INLINE))
        return device->invalid_error;
    if (sim_is_inline(send->opcode, send->flags) && send->opcode != SIM_WR_ATOMIC_WRITE &&
        send->length > cap->max_inline_data)
        return device->inline_error;
    if (send->num_sge > cap->max_send_sge)
        return device->sge_error;
    if ((send->opcode == IBV_WR_RDMA_READ && !device->reads_first_sge &&
         send->num_sge > (uint32_t)device->attr.max_sge_rd) ||
        (is_atomic && device->atomics_need_one_sge && send->num_sge != 1) ||
        (is_atomic && (device->checks_atomics || device->checks_atomic_length) &&
         send->length < 8) ||
        (is_atomic && device->checks_atomics && send->remote_addr % 8 != 0) ||
        (send->opcode == IBV_WR_BIND_MW && send->num_sge > 0))
        return device->invalid_error;
    return is_full(device, cap, send, queued) ? device->full_queue_error : 0;
}

// rdma-core 56, providers/rxe/rxe.c: check_qp_queue_full(), wr_set_sge_list() and
// wr_set_inline_data(); providers/mlx5/qp.c: mlx5_send_wr_start() and the builders.
int sim_check_built(const struct sim_profile *device, bool is_connected,
                    const struct ibv_qp_cap *cap, const struct sim_send *send, size_t queued) {
    const bool is_inline = sim_is_inline(send->opcode, send->flags);
    const bool is_small = send->num_sge <= cap->max_send_sge &&
                          (!is_inline || send->opcode == SIM_WR_ATOMIC_WRITE ||
                           send->length <= cap->max_inline_data);
    if (!is_connected && device->builder_early_error)
        return device->builder_early_error;
    if (!is_small)
        return device->builder_size_error ? device->builder_size_error : device->builder_error;
    return is_full(device, cap, send, queued) ? device->builder_error : 0;
}

// rdma-core 56, providers/rxe/rxe.c, rxe_post_send(), rings the doorbell even after a refusal;
// for an unconnected QP the doorbell's error replaces that of the refusal: Linux 7.3,
// drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_post_send(). In providers/siw/siw.c,
// siw_post_send(), even a successful doorbell replaces the error, and an empty queue has one.
int sim_post_result(const struct sim_profile *device, bool is_connected, bool is_idle,
                    size_t accepted, int error) {
    if (!is_connected && !device->early_error && !device->accepts_early)
        return device->doorbell_error;
    return accepted > 0 && is_idle && device->hides_refusals ? 0 : error;
}

// rdma-core 56, providers/rxe/rxe.c, rxe_post_one_recv(); providers/siw/siw.c,
// push_recv_wqe().
int sim_check_receive(const struct sim_profile *device, uint32_t size, uint32_t max_sge,
                      uint32_t num_sge, size_t queued) {
    if (queued >= size)
        return device->full_queue_error;
    if (num_sge > max_sge && device->receive_sge_error)
        return device->receive_sge_error;
    return num_sge > max_sge || (num_sge == 0 && device->receives_need_sge)
               ? device->invalid_error
               : 0;
}

// ---- execution -----------------------------------------------------------------------------

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_mr.c, lookup_mr()
enum sim_fault sim_check_key(const struct sim_region *region, const void *pd, unsigned access) {
    return !region                               ? SIM_NO_REGION
           : region->pd != pd                    ? SIM_OTHER_PD
           : (region->access & access) != access ? SIM_NO_ACCESS
                                                 : SIM_NO_FAULT;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_mr.c, mr_check_range()
enum sim_fault sim_check_range(const struct sim_region *region, const void *pd, unsigned access,
                               uint64_t address, uint64_t length) {
    const enum sim_fault fault = sim_check_key(region, pd, access);
    if (fault)
        return fault;
    const bool is_within = address >= region->start && length <= region->length &&
                           address - region->start <= region->length - length;
    return is_within ? SIM_NO_FAULT : SIM_OUT_OF_RANGE;
}

static unsigned remote_access(const struct sim_profile *device, const struct sim_send *send) {
    if (send->opcode == SIM_WR_FLUSH)
        return (send->flush_type & SIM_FLUSH_GLOBAL ? SIM_ACCESS_FLUSH_GLOBAL : 0) |
               (send->flush_type & SIM_FLUSH_PERSISTENT ? SIM_ACCESS_FLUSH_PERSISTENT : 0);
    if (send->opcode == IBV_WR_RDMA_READ)
        return device->checks_read_access ? IBV_ACCESS_REMOTE_READ : 0;
    return sim_is_atomic(send->opcode) ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_WRITE;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c: check_op_valid() and check_rkey(), where
// a read or write of no bytes needs no key, and a flush of the region needs no range;
// rxe_mr.c: rxe_mr_do_atomic_op() and rxe_mr_do_atomic_write(). iWARP does not check the access
// of QPs.
enum ibv_wc_status sim_check_target(const struct sim_profile *device,
                                    const struct sim_send *send, unsigned qp_access,
                                    const struct sim_region *region, const void *pd) {
    const unsigned access = remote_access(device, send);
    const unsigned of_qp =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    const bool is_flush = send->opcode == SIM_WR_FLUSH;
    if (device->transport != SIM_IWARP && (access & of_qp & ~qp_access))
        return IBV_WC_REM_INV_REQ_ERR;
    if (send->length == 0 && !is_flush)
        return IBV_WC_SUCCESS;
    const enum sim_fault fault =
        is_flush && send->flush_level == SIM_FLUSH_REGION
            ? sim_check_key(region, pd, access)
            : sim_check_range(region, pd, access, send->remote_addr, send->length);
    if (fault)
        return IBV_WC_REM_ACCESS_ERR;
    const bool is_of_word = sim_is_atomic(send->opcode) || send->opcode == SIM_WR_ATOMIC_WRITE;
    return is_of_word && send->remote_addr % 8 != 0 ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_mr.c, rxe_mr_do_atomic_op(): in the byte order of
// the processor.
uint64_t sim_atomic_result(uint32_t opcode, uint64_t before, uint64_t compare_add,
                           uint64_t swap) {
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        return before + compare_add;
    return before == compare_add ? swap : before;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_req_notify_cq(): a queue that is armed
// for any completion stays armed for any.
void sim_arm(enum sim_armed *armed, bool solicited_only) {
    if (*armed != SIM_ARMED)
        *armed = solicited_only ? SIM_ARMED_FOR_SOLICITED : SIM_ARMED;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_cq.c, rxe_cq_post()
bool sim_notifies(const struct sim_profile *device, enum sim_armed *armed,
                  enum ibv_wc_status status, bool is_solicited) {
    is_solicited |= status != IBV_WC_SUCCESS && device->errors_are_solicited;
    if (*armed == SIM_NOT_ARMED || (*armed == SIM_ARMED_FOR_SOLICITED && !is_solicited))
        return false;
    *armed = SIM_NOT_ARMED;
    return true;
}

// ---- connections ---------------------------------------------------------------------------

// Linux 7.3, include/rdma/ib_cm.h, enum ib_cm_data_size; drivers/infiniband/core/cma.c,
// cma_user_data_offset(): the addresses occupy 36 bytes of a request. iWARP sends any
// length that struct rdma_conn_param can describe.
static const uint8_t most_data[] = {[SIM_REQUEST] = 92 - 36,
                                    [SIM_REPLY] = 196,
                                    [SIM_REJECTION] = 148,
                                    [SIM_UD_REQUEST] = 216 - 36,
                                    [SIM_UD_REPLY] = 136};

// Linux 7.3, drivers/infiniband/core/cm.c: cm_validate_req_param(), ib_send_cm_rep() and
// cm_send_rej_locked().
int sim_check_private_data(const struct sim_profile *device, enum sim_message message,
                           size_t length) {
    return device->transport != SIM_IWARP && length > most_data[message] ? EINVAL : 0;
}

// Linux 7.3, drivers/infiniband/core/cma.c: cma_set_req_event_data(), cma_set_rep_event_data()
// and cma_ib_handler() pass on the whole field; cma_iw_handler() passes on only the bytes that
// were sent.
uint8_t sim_received_data(const struct sim_profile *device, enum sim_message message,
                          uint8_t sent) {
    return device->transport == SIM_IWARP ? sent : most_data[message];
}

// rdma-core 56, librdmacm/cma.c, ucma_addrlen()
size_t sim_address_length(const struct sockaddr *address) {
    if (!address)
        return 0;
    return address->sa_family == AF_INET    ? sizeof(struct sockaddr_in)
           : address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                            : 0;
}

static const void *host_of(const struct sockaddr *address, size_t *length) {
    const struct sockaddr_in *const v4 = (const void *)address;
    const struct sockaddr_in6 *const v6 = (const void *)address;
    const bool is_v6 = address->sa_family == AF_INET6;
    *length = is_v6 ? sizeof(v6->sin6_addr) : sizeof(v4->sin_addr);
    return is_v6 ? (const void *)&v6->sin6_addr : &v4->sin_addr;
}

in_port_t sim_port(const struct sockaddr *address) {
    return ((const struct sockaddr_in *)(const void *)address)->sin_port;
}

void sim_set_port(struct sockaddr *address, in_port_t port) {
    ((struct sockaddr_in *)(void *)address)->sin_port = port;
}

// Linux 7.3, drivers/infiniband/core/cma.c, cma_zero_addr()
bool sim_is_wildcard(const struct sockaddr *address) {
    size_t length;
    const void *const host = host_of(address, &length);
    return memcmp(host, &in6addr_any, length) == 0;
}

bool sim_is_multicast(const struct sockaddr *address) {
    size_t length;
    const uint8_t *const bytes = host_of(address, &length);
    return length == sizeof(struct in6_addr) ? bytes[0] == 0xff : bytes[0] >> 4 == 0xe;
}

// Linux 7.3, drivers/infiniband/core/cma.c, cma_addr_cmp()
bool sim_is_same_host(const struct sockaddr *one, const struct sockaddr *other) {
    size_t length;
    const void *const host = host_of(one, &length);
    return one->sa_family == other->sa_family &&
           memcmp(host, host_of(other, &length), length) == 0;
}

// Linux 7.3, drivers/infiniband/core/cma.c: rdma_bind_addr_dst(), rdma_resolve_addr(),
// rdma_resolve_route(), rdma_listen(), rdma_connect_locked(), rdma_accept(), rdma_disconnect()
// and rdma_set_afonly(); core/cm.c, cm_send_rej_locked().
int sim_check_cm_call(enum sim_cm_state state, enum sim_cm_call call) {
    static const struct {
        enum sim_cm_state first, last;
    } allowed[] = {
        [SIM_CM_BIND] = {SIM_CM_IDLE, SIM_CM_IDLE},
        [SIM_CM_RESOLVE_ADDR] = {SIM_CM_IDLE, SIM_CM_BOUND},
        [SIM_CM_RESOLVE_ROUTE] = {SIM_CM_RESOLVED, SIM_CM_RESOLVED},
        [SIM_CM_LISTEN] = {SIM_CM_IDLE, SIM_CM_BOUND},
        [SIM_CM_CONNECT] = {SIM_CM_ROUTED, SIM_CM_ROUTED},
        [SIM_CM_ACCEPT] = {SIM_CM_REQ_RECEIVED, SIM_CM_REQ_RECEIVED},
        [SIM_CM_CONFIRM] = {SIM_CM_REP_RECEIVED, SIM_CM_REP_RECEIVED},
        [SIM_CM_REJECT] = {SIM_CM_REQ_SENT, SIM_CM_REP_RECEIVED},
        [SIM_CM_DISCONNECT] = {SIM_CM_REQ_SENT, SIM_CM_CLOSED},
        [SIM_CM_SET_AFONLY] = {SIM_CM_IDLE, SIM_CM_BOUND},
    };
    return state < allowed[call].first || state > allowed[call].last ? EINVAL : 0;
}

// Linux 7.3, drivers/infiniband/core/cma.c: addr_handler(), cma_work_handler() and
// cma_ib_handler().
enum sim_cm_state sim_cm_state_after(enum sim_cm_state state, enum rdma_cm_event_type event) {
    switch (event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        return SIM_CM_RESOLVED;
    case RDMA_CM_EVENT_ADDR_ERROR:
        return SIM_CM_BOUND;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        return SIM_CM_ROUTED;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        return SIM_CM_REP_RECEIVED;
    case RDMA_CM_EVENT_ESTABLISHED:
        return SIM_CM_ESTABLISHED;
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        return SIM_CM_CLOSED;
    default:
        return state;
    }
}

// Linux 7.3, drivers/infiniband/core/ucma.c, ucma_set_option_level() and ucma_set_option_id().
int sim_check_option(int level, int name, size_t length) {
    if (level != RDMA_OPTION_ID || name < 0 || name > RDMA_OPTION_ID_ACK_TIMEOUT)
        return ENOSYS;
    const bool is_byte = name == RDMA_OPTION_ID_TOS || name == RDMA_OPTION_ID_ACK_TIMEOUT;
    return length == (is_byte ? 1 : sizeof(int)) ? 0 : EINVAL;
}

const char *sim_cm_event_name(int event) {
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
    return event >= 0 && event < (int)(sizeof(names) / sizeof(names[0])) ? names[event]
                                                                         : "UNKNOWN EVENT";
}
