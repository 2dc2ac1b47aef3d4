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

// ---- addresses -----------------------------------------------------------------------------

bool sim_is_ip4_gid(const union ibv_gid *gid) {
    static const uint8_t of_ip4[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid->raw, of_ip4, sizeof(of_ip4)) == 0;
}

int sim_check_path(const struct sim_profile *device, const union ibv_gid *gids, size_t count,
                   const struct ibv_ah_attr *path) {
    const uint8_t source = path->grh.sgid_index;
    if (!path->is_global || device->transport == SIM_IWARP)
        return 0;
    if (source >= count)
        return source < device->gid_entries ? ENODATA : EINVAL;
    const bool is_resolved =
        device->transport == SIM_ROCE && !sim_is_multicast_gid(&path->grh.dgid);
    return is_resolved && sim_is_ip4_gid(&gids[source]) != sim_is_ip4_gid(&path->grh.dgid)
               ? EINVAL
               : 0;
}

// ---- multicast -----------------------------------------------------------------------------

// Linux 7.3, include/rdma/ib_addr.h, rdma_is_multicast_addr(): also an IPv4 address.
bool sim_is_multicast_gid(const union ibv_gid *gid) {
    return gid->raw[0] == 0xff || (sim_is_ip4_gid(gid) && gid->raw[12] >> 4 == 0xe);
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
