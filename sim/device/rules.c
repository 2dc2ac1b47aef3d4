// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "sizes.h"

#include <errno.h>
#include <string.h>

// ---- devices -------------------------------------------------------------------------------

bool sim_has_xrc(const struct sim_profile *device) {
    return device->attr.device_cap_flags & IBV_DEVICE_XRC;
}

void sim_describe_device(const struct sim_profile *device, struct ibv_device_attr_ex *attr) {
    *attr = (struct ibv_device_attr_ex){
        .orig_attr = device->attr,
        .phys_port_cnt_ex = 1,
        .device_cap_flags_ex =
            device->attr.device_cap_flags |
            (device->has_native_flush ? SIM_CAP_FLUSH_GLOBAL | SIM_CAP_FLUSH_PERSISTENT : 0) |
            (device->has_native_atomic_write ? SIM_CAP_ATOMIC_WRITE : 0)};
    if (device->has_odp) {
        attr->odp_caps.general_caps =
            IBV_ODP_SUPPORT | (device->has_implicit_odp ? IBV_ODP_SUPPORT_IMPLICIT : 0);
        attr->odp_caps.per_transport_caps.rc_odp_caps =
            IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
            IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV |
            (sim_has_atomics(device) ? IBV_ODP_SUPPORT_ATOMIC : 0);
        attr->odp_caps.per_transport_caps.ud_odp_caps = device->ud_odp_caps;
        // Linux 7.3, drivers/infiniband/hw/mlx5/odp.c, internal_fill_odp_caps()
        if (sim_has_xrc(device))
            attr->xrc_odp_caps = attr->odp_caps.per_transport_caps.rc_odp_caps;
    }
}

enum ibv_qp_type sim_peer_type(enum ibv_qp_type type) {
    return type == IBV_QPT_XRC_SEND   ? IBV_QPT_XRC_RECV
           : type == IBV_QPT_XRC_RECV ? IBV_QPT_XRC_SEND
                                      : type;
}

// rdma-core 65, providers/rxe/rxe.c: RXE_SUP_RC_QP_SEND_OPS_FLAGS and those of UC and UD;
// providers/mlx5/qp.c, mlx5_qp_fill_wr_pfns()
uint64_t sim_send_ops(const struct sim_profile *device, enum ibv_qp_type type) {
    if (!device->has_qp_ex)
        return 0;
    const uint64_t sends =
        IBV_QP_EX_WITH_SEND | (device->has_send_imm ? IBV_QP_EX_WITH_SEND_WITH_IMM : 0);
    if (type == IBV_QPT_UD)
        return sends;
    const uint64_t unreliable =
        sends | IBV_QP_EX_WITH_RDMA_WRITE |
        (device->has_write_imm ? IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM : 0) |
        (device->has_windows ? IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV : 0);
    if (type == IBV_QPT_UC)
        return unreliable;
    return unreliable | IBV_QP_EX_WITH_RDMA_READ |
           (device->has_windows ? IBV_QP_EX_WITH_LOCAL_INV : 0) |
           (sim_has_atomics(device)
                ? IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
                : 0) |
           (device->has_native_flush ? SIM_QP_EX_WITH_FLUSH : 0) |
           (device->has_native_atomic_write ? SIM_QP_EX_WITH_ATOMIC_WRITE : 0);
}

// Linux 7.3, include/rdma/ib_verbs.h, ib_check_mr_access() and IB_ACCESS_SUPPORTED;
// drivers/infiniband/core/umem.c, ib_umem_get(): a region is not empty; mm/gup.c,
// check_vma_flags(): pages of FS-DAX are not pinned; drivers/infiniband/sw/rxe/rxe_mr.c,
// rxe_mr_fill_pages_from_sgt(): persistent flushes need persistent memory, which on-demand
// paging does not check.
int sim_check_region(const struct sim_profile *device, unsigned access, uint64_t length,
                     enum sim_memory memory) {
    const bool is_on_demand = access & IBV_ACCESS_ON_DEMAND;
    const unsigned known = (SIM_ACCESS_FLUSH_PERSISTENT << 1) - 1;
    if (((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
         !(access & IBV_ACCESS_LOCAL_WRITE)) ||
        (access & ~known & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE))
        return EINVAL;
    if ((is_on_demand && !device->has_odp) ||
        ((access & (SIM_ACCESS_FLUSH_GLOBAL | SIM_ACCESS_FLUSH_PERSISTENT)) &&
         !device->has_native_flush))
        return EOPNOTSUPP;
    if (is_on_demand)
        return length == UINT64_MAX && !device->has_implicit_odp ? EINVAL : 0;
    if (length == 0)
        return EINVAL;
    if (memory == SIM_FS_DAX)
        return EOPNOTSUPP;
    return (access & SIM_ACCESS_FLUSH_PERSISTENT) && memory == SIM_VOLATILE ? EINVAL : 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_queue.c, rxe_queue_init(): the next power of two,
// minus the entry that distinguishes full from empty.
uint32_t sim_queue_size(const struct sim_profile *device, uint32_t wanted) {
    const bool is_less = device->rounding == SIM_POWER_OF_TWO_LESS_ONE;
    uint64_t size = 1;
    if (device->sizing)
        return device->sizing->cq(wanted);
    if (device->rounding == SIM_NOT_ROUNDED)
        return wanted;
    while (size < (uint64_t)wanted + is_less)
        size *= 2;
    return (uint32_t)(size - is_less);
}

// Linux 7.3, drivers/infiniband/core/uverbs_std_types_cq.c, UVERBS_METHOD_CQ_CREATE;
// drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_create_cq().
int sim_check_cq(const struct sim_profile *device, int64_t entries, int64_t vector) {
    const bool is_valid = entries >= !device->rounds_empty_cq &&
                          entries <= device->attr.max_cqe && vector >= 0 &&
                          vector < device->vectors;
    return is_valid ? 0 : device->cq_error;
}

// rdma-core 65: providers/rxe/rxe.c, rxe_create_cq_ex(); mlx5/verbs.c, create_cq();
// mlx4/verbs.c, mlx4_create_cq_ex(); hns/hns_roce_u_verbs.c, verify_cq_create_attr();
// irdma/uverbs.c, ucreate_cq(); libibverbs/dummy_ops.c, create_cq_ex().
int sim_check_cq_ex(const struct sim_profile *device, unsigned comp_mask, unsigned flags,
                    uint64_t wc_flags) {
    if (device->cq_wc_flags == 0)
        return EOPNOTSUPP;
    if ((comp_mask & device->cq_refused_mask) ||
        ((comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (flags & device->cq_refused_flags)))
        return device->cq_mask_error;
    return wc_flags & ~device->cq_wc_flags ? EOPNOTSUPP : 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_srq.c, rxe_srq_chk_init() and rxe_srq_from_init().
int sim_check_srq(const struct sim_profile *device, struct ibv_srq_attr *attr,
                  struct ibv_srq_attr *reported) {
    if (!device->has_srq)
        return EOPNOTSUPP;
    if ((attr->max_wr == 0 && device->refuses_empty_srq) ||
        attr->max_wr > (uint32_t)device->attr.max_srq_wr ||
        attr->max_sge > (uint32_t)device->attr.max_srq_sge)
        return EINVAL;
    *reported = *attr;
    if (device->sizing) {
        device->sizing->srq(attr, reported);
        return 0;
    }
    attr->max_wr = sim_queue_size(device, attr->max_wr);
    *reported = *attr;
    return 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_srq.c, rxe_srq_chk_attr(): a limit above the size of
// the queue is refused.
int sim_check_srq_change(const struct sim_profile *device, const struct ibv_srq_attr *attr,
                         unsigned mask, uint32_t *max_wr, size_t receives) {
    struct ibv_srq_attr actual = *attr, reported;
    if (!(mask & IBV_SRQ_MAX_WR))
        actual.max_wr = *max_wr;
    else if (device->sizing)
        device->sizing->srq(&actual, &reported);
    else
        actual.max_wr = sim_queue_size(device, attr->max_wr);
    const uint32_t changed = actual.max_wr;
    if ((mask & ~(unsigned)(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR)) ||
        changed > (uint32_t)device->attr.max_srq_wr || changed < receives ||
        ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > changed))
        return EINVAL;
    *max_wr = changed;
    return 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_qp.c: rxe_qp_chk_cap()
static int check_sizes(const struct sim_profile *device, const struct ibv_qp_cap *cap,
                       bool has_srq) {
    const uint32_t max_wr = (uint32_t)device->attr.max_qp_wr;
    if (cap->max_send_sge > device->max_send_sge ||
        (!device->reduces_inline && cap->max_inline_data > device->max_inline) ||
        (!has_srq && cap->max_recv_sge > device->max_recv_sge))
        return EINVAL;
    if (device->sizing && device->sizing->check)
        return device->sizing->check(cap);
    return cap->max_send_wr > max_wr || (!has_srq && cap->max_recv_wr > max_wr) ? EINVAL : 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_qp.c: the sizes of rxe_qp_init_req() and
// rxe_qp_init_resp(): inline data uses the space of the SGEs.
static void size_qp(const struct sim_profile *device, struct ibv_qp_cap *cap, bool has_srq,
                    struct ibv_qp_cap *reported) {
    const uint32_t least = cap->max_send_sge * device->inline_per_sge;
    if (has_srq)
        cap->max_recv_wr = cap->max_recv_sge = 0;
    if (device->sizing) {
        device->sizing->qp(cap, reported);
        return;
    }
    cap->max_send_wr = sim_queue_size(device, cap->max_send_wr);
    cap->max_recv_wr = has_srq ? 0 : sim_queue_size(device, cap->max_recv_wr);
    if (cap->max_inline_data < least)
        cap->max_inline_data = least;
    *reported = *cap;
}

int sim_check_qp(const struct sim_profile *device, struct ibv_qp_cap *cap, bool has_srq,
                 struct ibv_qp_cap *reported) {
    const struct ibv_qp_cap requested = *cap;
    const int error = check_sizes(device, cap, has_srq);
    if (error)
        return error;
    if (cap->max_inline_data > device->max_inline)
        cap->max_inline_data = device->max_inline;
    size_qp(device, cap, has_srq, reported);
    if (has_srq && device->reports_srq_receives) {
        reported->max_recv_wr = requested.max_recv_wr;
        reported->max_recv_sge = requested.max_recv_sge;
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

// ---- the states of a QP --------------------------------------------------------------------

enum {
    AV = IBV_QP_AV,
    PKEY = IBV_QP_PKEY_INDEX,
    PORT = IBV_QP_PORT,
    QKEY = IBV_QP_QKEY,
    ACCESS = IBV_QP_ACCESS_FLAGS,
    RNR = IBV_QP_MIN_RNR_TIMER,
    ALT = IBV_QP_ALT_PATH,
    MIG = IBV_QP_PATH_MIG_STATE,
    CUR = IBV_QP_CUR_STATE,
    SQ_PSN = IBV_QP_SQ_PSN,
    RTR_UC = AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    RTR_RC = RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | RNR,
    RTS_RC =
        IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC
};

// Linux 7.3, drivers/infiniband/core/verbs.c, qp_state_table.
static const struct {
    enum ibv_qp_state from, to;
    enum ibv_qp_type type;
    int required, optional;
} transitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_RC, PKEY | PORT | ACCESS, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UC, PKEY | PORT | ACCESS, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UD, PKEY | PORT | QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_RC, 0, PKEY | PORT | ACCESS},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UC, 0, PKEY | PORT | ACCESS},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UD, 0, PKEY | PORT | QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_RC, RTR_RC, ALT | ACCESS | PKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UC, RTR_UC, ALT | ACCESS | PKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UD, 0, PKEY | QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC, RTS_RC, CUR | ALT | ACCESS | RNR | MIG},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UC, SQ_PSN, CUR | ALT | ACCESS | MIG},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UD, SQ_PSN, CUR | QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_RC, 0, CUR | ACCESS | ALT | MIG | RNR},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UC, 0, CUR | ACCESS | ALT | MIG},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | QKEY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_RC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_RC, 0, CUR | ALT | ACCESS | RNR | MIG},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UC, 0, CUR | ALT | ACCESS | MIG},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | QKEY},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_RC, 0,
     PORT | AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | ALT | ACCESS | PKEY | RNR | MIG},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UC, 0, AV | ALT | ACCESS | PKEY | MIG},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UD, 0, PKEY | QKEY},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_XRC_SEND, PKEY | PORT | ACCESS, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_XRC_RECV, PKEY | PORT | ACCESS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_XRC_SEND, 0, PKEY | PORT | ACCESS},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_XRC_RECV, 0, PKEY | PORT | ACCESS},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_XRC_SEND, RTR_UC, ALT | ACCESS | PKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_XRC_RECV, RTR_RC, ALT | ACCESS | PKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_XRC_SEND, RTS_RC, CUR | ALT | ACCESS | MIG},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_XRC_RECV, IBV_QP_TIMEOUT | SQ_PSN,
     CUR | ALT | ACCESS | RNR | MIG},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_XRC_SEND, 0, CUR | ACCESS | ALT | MIG},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_XRC_RECV, 0, CUR | ACCESS | ALT | MIG | RNR},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_XRC_SEND, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_XRC_RECV, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_XRC_SEND, 0, CUR | ALT | ACCESS | MIG},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_XRC_RECV, 0, CUR | ALT | ACCESS | RNR | MIG},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_XRC_SEND, 0,
     PORT | AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC | ALT | ACCESS | PKEY | MIG},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_XRC_RECV, 0,
     PORT | AV | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC | ALT | ACCESS | PKEY | RNR | MIG},
    {IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UC, 0, CUR | ACCESS},
    {IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | QKEY},
};

static bool is_allowed(enum ibv_qp_state from, enum ibv_qp_state to, enum ibv_qp_type type,
                       int mask) {
    mask &= ~IBV_QP_STATE;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return mask == 0;
    for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
        if (transitions[i].from == from && transitions[i].to == to &&
            transitions[i].type == type)
            return (mask & transitions[i].required) == transitions[i].required &&
                   !(mask & ~(transitions[i].required | transitions[i].optional));
    return false;
}

// Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, modify_qp(), core/verbs.c,
// rdma_check_ah_attr(), and drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_chk_attr().
static bool are_valid(const struct sim_profile *device, enum ibv_qp_state from,
                      const struct ibv_qp_attr *attr, int mask) {
    const struct ibv_ah_attr *const path = &attr->ah_attr;
    return !((mask & IBV_QP_AV) && device->transport == SIM_ROCE && !path->is_global) &&
           !((mask & IBV_QP_PORT) && attr->port_num != 1) &&
           !((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index != 0) &&
           !((mask & IBV_QP_AV) && path->port_num != 1 && path->port_num != 0) &&
           !((mask & IBV_QP_PATH_MTU) &&
             (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096)) &&
           !((mask & IBV_QP_MAX_QP_RD_ATOMIC) &&
             attr->max_rd_atomic > device->attr.max_qp_init_rd_atom) &&
           !((mask & IBV_QP_MAX_DEST_RD_ATOMIC) &&
             attr->max_dest_rd_atomic > device->attr.max_qp_rd_atom) &&
           !((mask & IBV_QP_TIMEOUT) && attr->timeout > 31) &&
           !((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from);
}

// On iWARP, only the connection manager connects QPs: Linux 7.3,
// drivers/infiniband/sw/siw/siw_qp.c, siw_qp_nextstate_from_idle(), which ignores RTR.
int sim_check_qp_change(const struct sim_profile *device, enum ibv_qp_type type,
                        enum ibv_qp_state from, const struct ibv_qp_attr *attr, int mask) {
    const enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
    if (mask &
        ~((IBV_QP_DEST_QPN << 1) - 1)) // include/rdma/ib_verbs.h: IB_QP_ATTR_STANDARD_BITS
        return EOPNOTSUPP;
    const bool connects =
        to != from && (to == IBV_QPS_RTS || (to == IBV_QPS_RTR && !device->ignores_rtr));
    const bool is_possible =
        device->transport == SIM_IWARP ? !connects : is_allowed(from, to, type, mask);
    return is_possible && are_valid(device, from, attr, mask) ? 0 : EINVAL;
}

// ---- multicast -----------------------------------------------------------------------------

// Linux 7.3, include/rdma/ib_addr.h, rdma_is_multicast_addr(): also an IPv4 address.
bool sim_is_multicast_gid(const union ibv_gid *gid) {
    static const uint8_t of_ipv4[12] = {[10] = 0xff, [11] = 0xff};
    return gid->raw[0] == 0xff ||
           (memcmp(gid->raw, of_ipv4, sizeof(of_ipv4)) == 0 && gid->raw[12] >> 4 == 0xe);
}

// Linux 7.3, drivers/infiniband/core/verbs.c, ib_attach_mcast() and is_valid_mcast_lid()
int sim_check_multicast(const struct sim_profile *device, enum ibv_qp_type type,
                        const union ibv_gid *gid, uint16_t lid) {
    const bool is_lid =
        device->transport != SIM_INFINIBAND || (lid >= SIM_MULTICAST_LID && lid != 0xffff);
    if (device->attr.max_mcast_grp == 0)
        return EOPNOTSUPP;
    return sim_is_multicast_gid(gid) && type == IBV_QPT_UD && is_lid ? 0 : EINVAL;
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
