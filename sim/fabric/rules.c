// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

#include "rules.h"

#include <errno.h>

// ---- devices -------------------------------------------------------------------------------

void sim_describe_device(const struct sim_profile *device, struct ibv_device_attr_ex *attr) {
    *attr = (struct ibv_device_attr_ex){
        .orig_attr = device->attr,
        .phys_port_cnt_ex = 1,
        .device_cap_flags_ex =
            device->attr.device_cap_flags |
            (device->has_native_flush ? SIM_CAP_FLUSH_GLOBAL | SIM_CAP_FLUSH_PERSISTENT : 0) |
            (device->has_native_atomic_write ? SIM_CAP_ATOMIC_WRITE : 0)};
    if (device->has_odp) {
        attr->odp_caps.general_caps = IBV_ODP_SUPPORT;
        attr->odp_caps.per_transport_caps.rc_odp_caps =
            IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
            IBV_ODP_SUPPORT_READ | (sim_has_atomics(device) ? IBV_ODP_SUPPORT_ATOMIC : 0);
    }
}

// Linux 7.3, include/rdma/ib_verbs.h, ib_check_mr_access(); drivers/infiniband/core/umem.c,
// ib_umem_get(): no region is empty; drivers/infiniband/sw/rxe/rxe_mr.c,
// rxe_mr_fill_pages_from_sgt(): persistent memory for persistent flushes, which on-demand
// paging does not check.
int sim_check_region(const struct sim_profile *device, unsigned access, uint64_t length,
                     bool is_persistent) {
    const bool is_on_demand = access & IBV_ACCESS_ON_DEMAND;
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
        !(access & IBV_ACCESS_LOCAL_WRITE))
        return EINVAL;
    if ((is_on_demand && !device->has_odp) ||
        ((access & (SIM_ACCESS_FLUSH_GLOBAL | SIM_ACCESS_FLUSH_PERSISTENT)) &&
         !device->has_native_flush) ||
        ((access & IBV_ACCESS_MW_BIND) && device->attr.max_mw == 0))
        return EOPNOTSUPP;
    if (is_on_demand)
        return 0;
    return length == 0 || ((access & SIM_ACCESS_FLUSH_PERSISTENT) && !is_persistent) ? EINVAL
                                                                                     : 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_queue.c, rxe_queue_init(): the next power of two,
// less the slot that distinguishes full from empty.
uint32_t sim_queue_size(const struct sim_profile *device, uint32_t wanted) {
    const bool is_less = device->rounding == SIM_POWER_OF_TWO_LESS_ONE;
    uint64_t size = 1;
    if (device->rounding == SIM_NOT_ROUNDED)
        return wanted;
    while (size < (uint64_t)wanted + is_less)
        size *= 2;
    return (uint32_t)(size - is_less);
}

// Linux 7.3, drivers/infiniband/core/uverbs_std_types_cq.c, UVERBS_METHOD_CQ_CREATE;
// drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_create_cq().
int sim_check_cq(const struct sim_profile *device, int64_t entries, int64_t vector) {
    const bool is_valid = entries > 0 && entries <= device->attr.max_cqe && vector >= 0 &&
                          vector < device->vectors;
    return is_valid ? 0 : EINVAL;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_srq.c, rxe_srq_chk_init() and rxe_srq_from_init().
int sim_check_srq(const struct sim_profile *device, struct ibv_srq_attr *attr,
                  struct ibv_srq_attr *reported) {
    if (!device->has_srq)
        return EOPNOTSUPP;
    if (attr->max_wr == 0 || attr->max_wr > (uint32_t)device->attr.max_srq_wr ||
        attr->max_sge > (uint32_t)device->attr.max_srq_sge)
        return EINVAL;
    *reported = *attr;
    attr->max_wr = sim_queue_size(device, attr->max_wr);
    if (!device->reports_asked_sizes)
        *reported = *attr;
    return 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_qp.c: rxe_qp_chk_cap(), and the sizes of
// rxe_qp_init_req() and rxe_qp_init_resp(), where inline data takes the place of SGEs.
int sim_check_qp(const struct sim_profile *device, struct ibv_qp_cap *cap, bool has_srq,
                 struct ibv_qp_cap *reported) {
    const uint32_t max_wr = (uint32_t)device->attr.max_qp_wr;
    if (cap->max_send_wr > max_wr || cap->max_send_sge > (uint32_t)device->attr.max_sge ||
        cap->max_inline_data > device->max_inline ||
        (!has_srq && (cap->max_recv_wr > max_wr || cap->max_recv_sge > device->max_recv_sge)))
        return EINVAL;
    const uint32_t of_sges = cap->max_send_sge * device->inline_per_sge;
    const uint32_t least = of_sges > device->least_inline ? of_sges : device->least_inline;
    const struct ibv_qp_cap asked = *cap;
    cap->max_send_wr = sim_queue_size(device, cap->max_send_wr);
    cap->max_recv_wr = has_srq ? 0 : sim_queue_size(device, cap->max_recv_wr);
    cap->max_recv_sge = has_srq ? 0 : cap->max_recv_sge;
    if (cap->max_inline_data < least)
        cap->max_inline_data = least;
    *reported = *cap;
    if (device->reports_asked_sizes) {
        reported->max_send_wr = asked.max_send_wr;
        reported->max_recv_wr = asked.max_recv_wr;
    }
    return 0;
}

// rdma-core 56, libibverbs/device.c, ibv_get_async_event()
enum sim_about sim_about_of(enum ibv_event_type type) {
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return SIM_ABOUT_CQ;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return SIM_ABOUT_SRQ;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return SIM_ABOUT_QP;
    default:
        return SIM_ABOUT_DEVICE;
    }
}

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
    case SIM_WR_FLUSH:
        return device->has_native_flush;
    case SIM_WR_ATOMIC_WRITE:
        return device->has_native_atomic_write;
    default:
        return false;
    }
}

// rdma-core 56, providers/rxe/rxe.c, validate_send_wr() and post_one_send();
// providers/mlx5/qp.c, _mlx5_post_send() and set_data_inl_seg(): the errors that differ are in
// the profile.
int sim_check_send(const struct sim_profile *device, const struct ibv_qp_cap *cap,
                   const struct sim_send *send, size_t queued) {
    const bool is_atomic = sim_is_atomic(send->opcode);
    if (!has_opcode(device, send->opcode))
        return device->invalid_error;
    if (sim_is_inline(send->opcode, send->flags) && send->opcode != SIM_WR_ATOMIC_WRITE &&
        send->length > cap->max_inline_data)
        return device->inline_error;
    if (send->num_sge > cap->max_send_sge ||
        (send->opcode == IBV_WR_RDMA_READ && send->num_sge > device->max_read_sge) ||
        (is_atomic && send->num_sge != 1) ||
        (is_atomic && device->checks_atomics &&
         (send->remote_addr % 8 != 0 || send->length < 8)))
        return device->invalid_error;
    return queued >= cap->max_send_wr ? device->full_queue_error : 0;
}

// rdma-core 56, providers/rxe/rxe.c: check_qp_queue_full(), wr_set_sge_list() and
// wr_set_inline_data(); providers/mlx5/qp.c: mlx5_send_wr_start() and the builders.
int sim_check_built(const struct sim_profile *device, const struct ibv_qp_cap *cap,
                    const struct sim_send *send, size_t queued) {
    const bool is_inline = sim_is_inline(send->opcode, send->flags);
    const bool fits = queued < cap->max_send_wr && send->num_sge <= cap->max_send_sge &&
                      (!is_inline || send->opcode == SIM_WR_ATOMIC_WRITE ||
                       send->length <= cap->max_inline_data);
    return fits ? 0 : device->builder_error;
}

// rdma-core 56, providers/rxe/rxe.c, rxe_post_one_recv(); providers/siw/siw.c,
// push_recv_wqe().
int sim_check_receive(const struct sim_profile *device, uint32_t size, uint32_t max_sge,
                      uint32_t num_sge, size_t queued) {
    if (queued >= size)
        return device->full_queue_error;
    return num_sge > max_sge || (num_sge == 0 && device->receives_need_sge)
               ? device->invalid_error
               : 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_mr.c, mr_check_range()
bool sim_contains(uint64_t start, uint64_t size, uint64_t address, uint64_t length) {
    return address >= start && length <= size && address - start <= size - length;
}

// ---- connections ---------------------------------------------------------------------------

// Linux 7.3, include/rdma/ib_cm.h, enum ib_cm_data_size; drivers/infiniband/core/cma.c,
// cma_user_data_offset(): the addresses take 36 bytes of a request. iWARP sends all that
// struct rdma_conn_param can describe.
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
// and cma_ib_handler() pass on the whole field; cma_iw_handler() the bytes that were sent.
uint8_t sim_received_data(const struct sim_profile *device, enum sim_message message,
                          uint8_t sent) {
    return device->transport == SIM_IWARP ? sent : most_data[message];
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
