// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// rules_test.c -- the rules that the fabric and the fakes of the unit tests share, of a device
// whose limits and error numbers all differ. The sources of the expected values are named in
// device/rules.c.

#include "../../device/rules.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define IS(value, expected) assert_int_equal((long)(value), (long)(expected))

// Some limits need more than 16 bits.
static const struct sim_profile device = {
    .transport = SIM_ROCE,
    .attr = {.max_qp_wr = 0x10040,
             .max_sge = 0x10004,
             .max_sge_rd = 2,
             .max_cqe = 0x10020,
             .max_srq_wr = 0x10010,
             .max_srq_sge = 0x10003,
             .max_qp_init_rd_atom = 8,
             .max_qp_rd_atom = 6,
             .device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN,
             .atomic_cap = IBV_ATOMIC_HCA},
    .vectors = 2,
    .cq_error = EINVAL,
    .max_inline = 0x10080,
    .inline_per_sge = 16,
    .max_send_sge = 0x10004,
    .max_recv_sge = 5,
    .full_queue_error = ENOSPC,
    .inline_error = E2BIG,
    .sge_error = EDOM,
    .opcode_error = EBADF,
    .doorbell_error = EBADF,
    .invalid_error = EBADF,
    .builder_error = ENOBUFS,
    .has_srq = true,
    .refuses_empty_srq = true,
    .has_send_imm = true,
    .has_write_imm = true,
    .has_native_flush = true,
    .has_native_atomic_write = true,
    .has_odp = true,
    .has_qp_ex = true,
    .checks_atomics = true,
    .checks_read_access = true,
};

// The same device with one difference.
#define BUT(...)                       \
    struct sim_profile other = device; \
    __VA_ARGS__

// ---- devices -------------------------------------------------------------------------------

static void device_reports_its_capabilities(void **unused) {
    (void)unused;
    const uint64_t plain = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
                           IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV;
    struct ibv_device_attr_ex attr;
    sim_describe_device(&device, &attr);
    IS(attr.phys_port_cnt_ex, 1);
    IS(attr.orig_attr.max_qp_wr, 0x10040);
    assert_true(attr.device_cap_flags_ex == (IBV_DEVICE_RC_RNR_NAK_GEN | SIM_CAP_FLUSH_GLOBAL |
                                             SIM_CAP_FLUSH_PERSISTENT | SIM_CAP_ATOMIC_WRITE));
    IS(attr.odp_caps.general_caps, IBV_ODP_SUPPORT);
    IS(attr.odp_caps.per_transport_caps.rc_odp_caps, plain | IBV_ODP_SUPPORT_ATOMIC);
    BUT(other.attr.atomic_cap = IBV_ATOMIC_NONE; other.has_native_flush = false;
        other.has_native_atomic_write = false);
    sim_describe_device(&other, &attr);
    IS(attr.device_cap_flags_ex, IBV_DEVICE_RC_RNR_NAK_GEN);
    IS(attr.odp_caps.per_transport_caps.rc_odp_caps, plain);
    other.has_odp = false;
    sim_describe_device(&other, &attr);
    IS(attr.odp_caps.general_caps, 0);
    IS(attr.odp_caps.per_transport_caps.rc_odp_caps, 0);
}

static void each_operation_of_the_device_has_a_builder(void **unused) {
    (void)unused;
    const uint64_t plain =
        IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND;
    IS(sim_send_ops(&device, IBV_QPT_RC),
       plain | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_IMM |
           IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
           SIM_QP_EX_WITH_FLUSH | SIM_QP_EX_WITH_ATOMIC_WRITE);
    BUT(other.has_write_imm = other.has_send_imm = other.has_native_flush =
            other.has_native_atomic_write = false);
    other.attr.atomic_cap = IBV_ATOMIC_NONE;
    IS(sim_send_ops(&other, IBV_QPT_RC), plain);
    other.has_windows = true;
    IS(sim_send_ops(&other, IBV_QPT_RC), plain | IBV_QP_EX_WITH_BIND_MW |
                                             IBV_QP_EX_WITH_LOCAL_INV |
                                             IBV_QP_EX_WITH_SEND_WITH_INV);
    IS(sim_send_ops(&other, IBV_QPT_UC), IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND |
                                             IBV_QP_EX_WITH_BIND_MW |
                                             IBV_QP_EX_WITH_SEND_WITH_INV);
    IS(sim_send_ops(&other, IBV_QPT_UD), IBV_QP_EX_WITH_SEND);
    other.has_qp_ex = false;
    IS(sim_send_ops(&other, IBV_QPT_RC), 0);
}

static void region_is_refused_without_the_capability_of_its_access(void **unused) {
    (void)unused;
    const unsigned write = IBV_ACCESS_LOCAL_WRITE, demand = IBV_ACCESS_ON_DEMAND;
    IS(sim_check_region(&device, 0, 1, SIM_VOLATILE), 0);
    IS(sim_check_region(&device, 0, 0, SIM_VOLATILE), EINVAL);
    IS(sim_check_region(&device, demand, 0, SIM_VOLATILE), 0);
    IS(sim_check_region(&device, demand, UINT64_MAX, SIM_VOLATILE), EINVAL);
    IS(sim_check_region(&device, write | IBV_ACCESS_REMOTE_WRITE, 1, SIM_VOLATILE), 0);
    IS(sim_check_region(&device, IBV_ACCESS_REMOTE_WRITE, 1, SIM_VOLATILE), EINVAL);
    IS(sim_check_region(&device, IBV_ACCESS_REMOTE_ATOMIC, 1, SIM_VOLATILE), EINVAL);
    IS(sim_check_region(&device, IBV_ACCESS_REMOTE_READ, 1, SIM_VOLATILE), 0);
    IS(sim_check_region(&device, SIM_ACCESS_FLUSH_GLOBAL, 1, SIM_VOLATILE), 0);
    IS(sim_check_region(&device, SIM_ACCESS_FLUSH_PERSISTENT, 1, SIM_VOLATILE), EINVAL);
    IS(sim_check_region(&device, SIM_ACCESS_FLUSH_PERSISTENT, 1, SIM_DEVICE_DAX), 0);
    IS(sim_check_region(&device, SIM_ACCESS_FLUSH_PERSISTENT | demand, 1, SIM_VOLATILE), 0);
    IS(sim_check_region(&device, IBV_ACCESS_MW_BIND, 1, SIM_VOLATILE), 0);
    BUT(other.has_implicit_odp = true);
    IS(sim_check_region(&other, demand, UINT64_MAX, SIM_VOLATILE), 0);
    other.has_odp = other.has_native_flush = false;
    IS(sim_check_region(&other, 0, 1, SIM_VOLATILE), 0);
    IS(sim_check_region(&other, demand, 1, SIM_VOLATILE), EOPNOTSUPP);
    IS(sim_check_region(&other, SIM_ACCESS_FLUSH_GLOBAL, 1, SIM_DEVICE_DAX), EOPNOTSUPP);
    IS(sim_check_region(&other, SIM_ACCESS_FLUSH_PERSISTENT, 1, SIM_DEVICE_DAX), EOPNOTSUPP);
}

static void queue_size_is_rounded_as_by_the_driver(void **unused) {
    (void)unused;
    static const struct {
        enum sim_rounding rounding;
        uint32_t wanted, size;
    } rows[] = {
        {SIM_NOT_ROUNDED, 0, 0},           {SIM_NOT_ROUNDED, 5, 5},
        {SIM_POWER_OF_TWO, 1, 1},          {SIM_POWER_OF_TWO, 4, 4},
        {SIM_POWER_OF_TWO, 5, 8},          {SIM_POWER_OF_TWO, 0x10001, 0x20000},
        {SIM_POWER_OF_TWO_LESS_ONE, 0, 0}, {SIM_POWER_OF_TWO_LESS_ONE, 3, 3},
        {SIM_POWER_OF_TWO_LESS_ONE, 4, 7}, {SIM_POWER_OF_TWO_LESS_ONE, UINT32_MAX, UINT32_MAX}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BUT(other.rounding = rows[i].rounding);
        assert_true(sim_queue_size(&other, rows[i].wanted) == rows[i].size);
    }
}

static void cq_beyond_the_limits_is_refused(void **unused) {
    (void)unused;
    IS(sim_check_cq(&device, 1, 0), 0);
    IS(sim_check_cq(&device, 0x10020, 1), 0);
    IS(sim_check_cq(&device, 0x10021, 0), EINVAL);
    IS(sim_check_cq(&device, 0, 0), EINVAL);
    IS(sim_check_cq(&device, 1, 2), EINVAL);
    IS(sim_check_cq(&device, 1, -1), EINVAL);
    BUT(other.rounds_empty_cq = true, other.cq_error = EIO);
    IS(sim_check_cq(&other, 0, 0), 0);
    IS(sim_check_cq(&other, -1, 0), EIO);
}

static int check_srq(const struct sim_profile *on, uint32_t max_wr, uint32_t max_sge) {
    struct ibv_srq_attr attr = {max_wr, max_sge, 0}, reported;
    return sim_check_srq(on, &attr, &reported);
}

static void srq_beyond_the_limits_is_refused(void **unused) {
    (void)unused;
    IS(check_srq(&device, 1, 0x10003), 0);
    IS(check_srq(&device, 0x10010, 0), 0);
    IS(check_srq(&device, 0, 1), EINVAL);
    IS(check_srq(&device, 0x10011, 1), EINVAL);
    IS(check_srq(&device, 1, 0x10004), EINVAL);
    BUT(other.rounding = SIM_POWER_OF_TWO);
    struct ibv_srq_attr attr = {5, 1, 0}, reported = {0};
    IS(sim_check_srq(&other, &attr, &reported), 0);
    IS(attr.max_wr, 8);
    IS(reported.max_wr, 8);
    IS(reported.max_sge, 1);
    other.refuses_empty_srq = false;
    IS(check_srq(&other, 0, 1), 0);
    other.has_srq = false;
    IS(check_srq(&other, 1, 1), EOPNOTSUPP);
}

static int change_srq(uint32_t max_wr, uint32_t limit, unsigned mask, size_t receives,
                      uint32_t *actual) {
    const struct ibv_srq_attr attr = {max_wr, 0, limit};
    BUT(other.rounding = SIM_POWER_OF_TWO);
    *actual = 8;
    return sim_check_srq_change(&other, &attr, mask, actual, receives);
}

static void srq_change_keeps_room_for_its_receives_and_limit(void **unused) {
    (void)unused;
    uint32_t size;
    IS(change_srq(0, 8, IBV_SRQ_LIMIT, 8, &size), 0);
    IS(size, 8);
    IS(change_srq(0, 9, IBV_SRQ_LIMIT, 0, &size), EINVAL);
    IS(change_srq(9, 0, IBV_SRQ_MAX_WR, 9, &size), 0);
    IS(size, 16);
    IS(change_srq(3, 9, IBV_SRQ_MAX_WR, 4, &size), 0);
    IS(size, 4);
    IS(change_srq(3, 0, IBV_SRQ_MAX_WR, 5, &size), EINVAL);
    IS(size, 8);
    IS(change_srq(9, 16, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 0, &size), 0);
    IS(change_srq(9, 17, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 0, &size), EINVAL);
    IS(change_srq(0x10000, 0, IBV_SRQ_MAX_WR, 0, &size), 0);
    IS(change_srq(0x10011, 0, IBV_SRQ_MAX_WR, 0, &size), EINVAL);
    IS(change_srq(0, 1, IBV_SRQ_LIMIT | 1 << 5, 0, &size), EINVAL);
}

static int check_qp(struct ibv_qp_cap cap, bool has_srq) {
    struct ibv_qp_cap reported;
    return sim_check_qp(&device, &cap, has_srq, &reported);
}

static void qp_beyond_the_limits_is_refused(void **unused) {
    (void)unused;
    IS(check_qp((struct ibv_qp_cap){0x10040, 0x10040, 0x10004, 5, 0x10080}, false), 0);
    IS(check_qp((struct ibv_qp_cap){0x10041, 1, 1, 1, 0}, false), EINVAL);
    IS(check_qp((struct ibv_qp_cap){1, 0x10041, 1, 1, 0}, false), EINVAL);
    IS(check_qp((struct ibv_qp_cap){1, 0x10041, 1, 1, 0}, true), 0);
    IS(check_qp((struct ibv_qp_cap){1, 1, 0x10005, 1, 0}, false), EINVAL);
    IS(check_qp((struct ibv_qp_cap){1, 1, 1, 6, 0}, false), EINVAL);
    IS(check_qp((struct ibv_qp_cap){1, 1, 1, 6, 0}, true), 0);
    IS(check_qp((struct ibv_qp_cap){1, 1, 1, 1, 0x10081}, true), EINVAL);
    BUT(other.rounding = SIM_POWER_OF_TWO);
    struct ibv_qp_cap cap = {3, 5, 2, 4, 8}, reported;
    IS(sim_check_qp(&other, &cap, false, &reported), 0);
    IS(cap.max_send_wr, 4);
    IS(cap.max_recv_wr, 8);
    IS(cap.max_recv_sge, 4);
    IS(cap.max_inline_data, 32); // of two SGEs
    IS(memcmp(&cap, &reported, sizeof(cap)), 0);
    cap = (struct ibv_qp_cap){3, 5, 3, 4, 41};
    IS(sim_check_qp(&other, &cap, true, &reported), 0);
    IS(cap.max_recv_wr, 0);
    IS(cap.max_recv_sge, 0);
    IS(cap.max_inline_data, 48); // of three SGEs
    IS(reported.max_recv_wr, 0);
    other.reports_srq_receives = other.reduces_inline = true;
    cap = (struct ibv_qp_cap){3, 5, 2, 4, 0x10081};
    IS(sim_check_qp(&other, &cap, true, &reported), 0);
    IS(cap.max_recv_wr, 0);
    IS(reported.max_recv_wr, 5);
    IS(reported.max_recv_sge, 4);
    IS(reported.max_inline_data, 0x10080);
}

static void each_event_has_the_type_of_its_object(void **unused) {
    (void)unused;
    IS(sim_about_of(IBV_EVENT_CQ_ERR), SIM_ABOUT_CQ);
    IS(sim_about_of(IBV_EVENT_SRQ_ERR), SIM_ABOUT_SRQ);
    IS(sim_about_of(IBV_EVENT_SRQ_LIMIT_REACHED), SIM_ABOUT_SRQ);
    IS(sim_about_of(IBV_EVENT_QP_LAST_WQE_REACHED), SIM_ABOUT_QP);
    IS(sim_about_of(IBV_EVENT_COMM_EST), SIM_ABOUT_QP);
    IS(sim_about_of(IBV_EVENT_PORT_ERR), SIM_ABOUT_DEVICE);
    IS(sim_about_of(IBV_EVENT_DEVICE_FATAL), SIM_ABOUT_DEVICE);
}

// ---- the states of a QP --------------------------------------------------------------------

enum {
    RESET = IBV_QPS_RESET,
    INIT = IBV_QPS_INIT,
    RTR = IBV_QPS_RTR,
    RTS = IBV_QPS_RTS,
    SQD = IBV_QPS_SQD,
    SQE = IBV_QPS_SQE,
    ERR = IBV_QPS_ERR,
    RC = IBV_QPT_RC,
    UC = IBV_QPT_UC,
    UD = IBV_QPT_UD,
};

static int change(const struct sim_profile *on, int type, int from, int to, int mask,
                  struct ibv_qp_attr attr) {
    attr.qp_state = (enum ibv_qp_state)to;
    attr.cur_qp_state = (enum ibv_qp_state)from;
    return sim_check_qp_change(on, (enum ibv_qp_type)type, (enum ibv_qp_state)from, &attr,
                               mask | IBV_QP_STATE);
}

static const struct ibv_qp_attr valid_attr = {
    .port_num = 1, .path_mtu = IBV_MTU_1024, .ah_attr = {.port_num = 1, .is_global = 1}};

// InfiniBand Architecture Specification, volume 1, release 1.4, tables 96 and 98: the required
// attributes of each transition, each of which is needed, and an optional one.
static void transition_needs_each_required_attribute(void **unused) {
    (void)unused;
    const int port = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    const int rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    const int rts = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                    IBV_QP_MAX_QP_RD_ATOMIC;
    const struct {
        int type, from, to, required, optional, invalid;
    } rows[] = {
        {RC, RESET, INIT, port | IBV_QP_ACCESS_FLAGS, 0, IBV_QP_QKEY},
        {UC, RESET, INIT, port | IBV_QP_ACCESS_FLAGS, 0, IBV_QP_QKEY},
        {UD, RESET, INIT, port | IBV_QP_QKEY, 0, IBV_QP_ACCESS_FLAGS},
        {RC, INIT, INIT, 0, port | IBV_QP_ACCESS_FLAGS, IBV_QP_QKEY},
        {UC, INIT, INIT, 0, port | IBV_QP_ACCESS_FLAGS, IBV_QP_QKEY},
        {UD, INIT, INIT, 0, port | IBV_QP_QKEY, IBV_QP_ACCESS_FLAGS},
        {RC, INIT, RTR, rtr, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
         IBV_QP_SQ_PSN},
        {UC, INIT, RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
         IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, IBV_QP_MIN_RNR_TIMER},
        {UD, INIT, RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY, IBV_QP_AV},
        {RC, RTR, RTS, rts,
         IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
             IBV_QP_PATH_MIG_STATE,
         IBV_QP_AV},
        {UC, RTR, RTS, IBV_QP_SQ_PSN,
         IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE,
         IBV_QP_TIMEOUT},
        {UD, RTR, RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY, IBV_QP_TIMEOUT},
        {RC, RTS, RTS, 0,
         IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
             IBV_QP_MIN_RNR_TIMER,
         IBV_QP_TIMEOUT},
        {UC, RTS, RTS, 0,
         IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
         IBV_QP_MIN_RNR_TIMER},
        {UD, RTS, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY, IBV_QP_ACCESS_FLAGS},
        {RC, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_CUR_STATE},
        {UC, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_CUR_STATE},
        {UD, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_QKEY},
        {RC, SQD, RTS, 0,
         IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
             IBV_QP_PATH_MIG_STATE,
         IBV_QP_TIMEOUT},
        {UC, SQD, RTS, 0,
         IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE,
         IBV_QP_MIN_RNR_TIMER},
        {UD, SQD, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY, IBV_QP_ACCESS_FLAGS},
        {RC, SQD, SQD, 0,
         IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
             IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH |
             IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER |
             IBV_QP_PATH_MIG_STATE,
         IBV_QP_SQ_PSN},
        {UC, SQD, SQD, 0,
         IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
             IBV_QP_PATH_MIG_STATE,
         IBV_QP_PORT},
        {UD, SQD, SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY, IBV_QP_ACCESS_FLAGS},
        {UC, SQE, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, IBV_QP_ALT_PATH},
        {UD, SQE, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY, IBV_QP_ACCESS_FLAGS},
        {RC, SQD, ERR, 0, 0, IBV_QP_ACCESS_FLAGS},
        {UD, RTS, RESET, 0, 0, IBV_QP_QKEY},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int type = rows[i].type, from = rows[i].from, to = rows[i].to,
                  required = rows[i].required;
        IS(change(&device, type, from, to, required, valid_attr), 0);
        IS(change(&device, type, from, to, required | rows[i].invalid, valid_attr), EINVAL);
        for (int bit = 1; bit <= required; bit <<= 1)
            if (required & bit)
                IS(change(&device, type, from, to, required & ~bit, valid_attr), EINVAL);
        for (int bit = 1; bit <= rows[i].optional; bit <<= 1)
            if (rows[i].optional & bit)
                IS(change(&device, type, from, to, required | bit, valid_attr), 0);
    }
    IS(change(&device, RC, RESET, RTS, 0, valid_attr), EINVAL);
    IS(change(&device, RC, SQE, RTS, 0, valid_attr), EINVAL);
    IS(change(&device, RC, ERR, INIT, port | IBV_QP_ACCESS_FLAGS, valid_attr), EINVAL);
    struct ibv_qp_attr attr = valid_attr; // without a new state
    IS(sim_check_qp_change(&device, IBV_QPT_RC, IBV_QPS_RTS, &attr, IBV_QP_MIN_RNR_TIMER), 0);
    IS(sim_check_qp_change(&device, IBV_QPT_RC, IBV_QPS_RTS, &attr, IBV_QP_TIMEOUT), EINVAL);
}

// A change in a state that permits all of these attributes.
static int change_in_rts(const struct sim_profile *on, int mask, struct ibv_qp_attr attr) {
    return change(on, RC, mask & IBV_QP_PATH_MTU ? INIT : SQD,
                  mask & IBV_QP_PATH_MTU ? RTR : SQD, mask, attr);
}

static void attribute_beyond_its_range_is_refused(void **unused) {
    (void)unused;
    const int rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    struct ibv_qp_attr attr = valid_attr;
    attr.port_num = 2;
    attr.pkey_index = 1;
    attr.timeout = 32;
    attr.max_rd_atomic = 9;
    attr.max_dest_rd_atomic = 7;
    attr.ah_attr.port_num = 2;
    IS(change_in_rts(&device, 0, attr), 0);
    IS(change_in_rts(&device, IBV_QP_PORT, attr), EINVAL);
    IS(change_in_rts(&device, IBV_QP_PKEY_INDEX, attr), EINVAL);
    IS(change_in_rts(&device, IBV_QP_TIMEOUT, attr), EINVAL);
    IS(change_in_rts(&device, IBV_QP_MAX_QP_RD_ATOMIC, attr), EINVAL);
    IS(change_in_rts(&device, IBV_QP_MAX_DEST_RD_ATOMIC, attr), EINVAL);
    IS(change_in_rts(&device, IBV_QP_AV, attr), EINVAL);
    attr.timeout = 31;
    attr.max_rd_atomic = 8;
    attr.max_dest_rd_atomic = 6;
    attr.ah_attr.port_num = 0;
    IS(change_in_rts(
           &device, IBV_QP_TIMEOUT | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC, attr),
       0);
    IS(change_in_rts(&device, IBV_QP_AV, attr), 0);
    attr.ah_attr.is_global = 0;
    IS(change_in_rts(&device, IBV_QP_AV, attr), EINVAL);
    BUT(other.transport = SIM_INFINIBAND);
    IS(change_in_rts(&other, IBV_QP_AV, attr), 0);
    static const struct {
        int mtu, result;
    } rows[] = {{0, EINVAL}, {IBV_MTU_256, 0}, {IBV_MTU_4096, 0}, {IBV_MTU_4096 + 1, EINVAL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        attr.path_mtu = (enum ibv_mtu)rows[i].mtu;
        IS(change_in_rts(&other, rtr, attr), rows[i].result);
    }
    attr.qp_state = IBV_QPS_RTS;
    attr.cur_qp_state = IBV_QPS_RTR;
    IS(sim_check_qp_change(&device, IBV_QPT_RC, IBV_QPS_RTS, &attr, IBV_QP_CUR_STATE), EINVAL);
}

static void iwarp_qp_is_connected_by_the_connection_manager_only(void **unused) {
    (void)unused;
    BUT(other.transport = SIM_IWARP);
    IS(change(&other, RC, INIT, RTR, 0, valid_attr), EINVAL);
    IS(change(&other, RC, RTR, RTS, 0, valid_attr), EINVAL);
    IS(change(&other, RC, RTS, RTS, 0, valid_attr), 0);
    IS(change(&other, RC, RTS, ERR, 0, valid_attr), 0);
    IS(change(&other, RC, RESET, INIT, 0, valid_attr), 0);
}

// ---- requests ------------------------------------------------------------------------------

static const struct ibv_qp_cap granted = {4, 4, 3, 3, 64};

static int send_on(const struct sim_profile *on, uint32_t opcode, uint32_t flags,
                   uint32_t num_sge, uint64_t length, uint64_t address) {
    const struct sim_send send = {opcode, flags, num_sge, length, address, 0, 0};
    return sim_check_send(on, true, &granted, &send, 3);
}

static void invalid_send_has_the_error_of_the_device(void **unused) {
    (void)unused;
    static const struct {
        uint32_t opcode, flags, num_sge;
        uint64_t length, address;
        int result;
    } rows[] = {
        {IBV_WR_RDMA_WRITE, 0, 3, 1 << 30, 1, 0},
        {IBV_WR_RDMA_WRITE, 0, 4, 1, 0, EDOM},
        {IBV_WR_SEND, 0, 0, 0, 0, 0},
        {IBV_WR_RDMA_READ, 0, 2, 8, 0, 0},
        {IBV_WR_RDMA_READ, 0, 3, 8, 0, EBADF},
        {IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 1, 64, 0, 0},
        {IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 1, 65, 0, E2BIG},
        {IBV_WR_RDMA_WRITE, 0, 1, 65, 0, 0},
        {IBV_WR_RDMA_READ, IBV_SEND_INLINE, 1, 65, 0, 0},
        {IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1, 8, 0, 0},
        {IBV_WR_SEND_WITH_IMM, 0, 1, 8, 0, 0},
        {IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1, 8, 16, 0},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8, 16, 0},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 7, 16, EBADF},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8, 20, EBADF},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 0, 16, EBADF},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 2, 16, 16, 0},
        {SIM_WR_FLUSH, 0, 0, 1 << 20, 3, 0},
        {SIM_WR_FLUSH, IBV_SEND_INLINE, 0, 1 << 20, 3, 0},
        {SIM_WR_ATOMIC_WRITE, IBV_SEND_INLINE, 0, 8, 3, 0},
        {IBV_WR_LOCAL_INV, 0, 0, 0, 0, EBADF},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        IS(send_on(&device, rows[i].opcode, rows[i].flags, rows[i].num_sge, rows[i].length,
                   rows[i].address),
           rows[i].result);
    BUT(other.has_write_imm = other.has_send_imm = other.has_native_flush =
            other.has_native_atomic_write = other.checks_atomics = false);
    IS(send_on(&other, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 7, 20), 0);
    other.attr.atomic_cap = IBV_ATOMIC_NONE;
    const uint32_t missing[] = {
        IBV_WR_RDMA_WRITE_WITH_IMM,  IBV_WR_SEND_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD, SIM_WR_FLUSH,         SIM_WR_ATOMIC_WRITE};
    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
        IS(send_on(&other, missing[i], 0, 1, 8, 16), EBADF);
}

static void send_to_a_full_queue_or_in_a_late_state_is_refused(void **unused) {
    (void)unused;
    const struct sim_send send = {IBV_WR_SEND, 0, 1, 8, 0, 0, 0};
    IS(sim_check_send(&device, true, &granted, &send, 4), ENOSPC);
    IS(sim_check_send(&device, false, &granted, &send, 0), 0); // its doorbell fails
    IS(sim_post_result(&device, false, true, 1, 0), EBADF);
    IS(sim_post_result(&device, true, true, 1, ENOSPC), ENOSPC);
    IS(sim_post_result(&device, true, true, 1, 0), 0);
    BUT(other.early_error = ENOTCONN; other.hides_refusals = true);
    IS(sim_check_send(&other, false, &granted, &send, 0), ENOTCONN);
    IS(sim_check_send(&other, true, &granted, &send, 0), 0);
    IS(sim_post_result(&other, false, true, 0, ENOTCONN), ENOTCONN);
    IS(sim_post_result(&other, true, true, 1, ENOSPC), 0);
    IS(sim_post_result(&other, true, false, 1, ENOSPC), ENOSPC);
    IS(sim_post_result(&other, true, true, 0, ENOSPC), ENOSPC);
}

static int check_built(uint32_t opcode, uint32_t flags, uint32_t num_sge, uint64_t length,
                       size_t queued) {
    const struct sim_send send = {opcode, flags, num_sge, length, 0, 0, 0};
    return sim_check_built(&device, true, &granted, &send, queued);
}

static void invalid_built_send_has_one_error(void **unused) {
    (void)unused;
    IS(check_built(IBV_WR_SEND, 0, 3, 1 << 20, 3), 0);
    IS(check_built(IBV_WR_SEND, 0, 3, 8, 4), ENOBUFS);
    IS(check_built(IBV_WR_SEND, 0, 4, 8, 0), ENOBUFS);
    IS(check_built(IBV_WR_SEND, IBV_SEND_INLINE, 0, 64, 0), 0);
    IS(check_built(IBV_WR_SEND, IBV_SEND_INLINE, 0, 65, 0), ENOBUFS);
    IS(check_built(SIM_WR_ATOMIC_WRITE, IBV_SEND_INLINE, 0, 65, 0), 0);
}

static void invalid_receive_is_refused(void **unused) {
    (void)unused;
    IS(sim_check_receive(&device, 2, 3, 3, 1), 0);
    IS(sim_check_receive(&device, 2, 3, 0, 0), 0);
    IS(sim_check_receive(&device, 2, 3, 4, 0), EBADF);
    IS(sim_check_receive(&device, 2, 3, 1, 2), ENOSPC);
    BUT(other.receives_need_sge = true);
    IS(sim_check_receive(&other, 2, 3, 0, 0), EBADF);
    IS(sim_check_receive(&other, 2, 3, 1, 0), 0);
}

// ---- execution -----------------------------------------------------------------------------

static void range_beyond_its_region_is_refused(void **unused) {
    (void)unused;
    int pd, other_pd;
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    const struct sim_region region = {&pd, 4096, 100, access};
    static const struct {
        uint64_t address, length;
        enum sim_fault fault;
    } rows[] = {{4096, 100, SIM_NO_FAULT},        {4195, 1, SIM_NO_FAULT},
                {4195, 2, SIM_OUT_OF_RANGE},      {4095, 1, SIM_OUT_OF_RANGE},
                {4096, 101, SIM_OUT_OF_RANGE},    {4197, 0, SIM_OUT_OF_RANGE},
                {4196, 0, SIM_NO_FAULT},          {4096, UINT64_MAX, SIM_OUT_OF_RANGE},
                {UINT64_MAX, 2, SIM_OUT_OF_RANGE}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        IS(sim_check_range(&region, &pd, 0, rows[i].address, rows[i].length), rows[i].fault);
    IS(sim_check_key(NULL, &pd, 0), SIM_NO_REGION);
    IS(sim_check_key(&region, &other_pd, 0), SIM_OTHER_PD);
    IS(sim_check_key(&region, &pd, access), SIM_NO_FAULT);
    IS(sim_check_key(&region, &pd, access | IBV_ACCESS_REMOTE_WRITE), SIM_NO_ACCESS);
    IS(sim_check_range(&region, &other_pd, 0, 4096, 1), SIM_OTHER_PD);
}

static void target_without_access_has_the_status_of_its_operation(void **unused) {
    (void)unused;
    int pd;
    const unsigned all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC,
                   flushes = SIM_ACCESS_FLUSH_GLOBAL | SIM_ACCESS_FLUSH_PERSISTENT;
    const struct {
        uint32_t opcode;
        uint64_t length, address;
        unsigned type, level, of_qp, of_region;
        enum ibv_wc_status status;
    } rows[] = {
        {IBV_WR_RDMA_WRITE, 8, 4097, 0, 0, all, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS},
        {IBV_WR_RDMA_WRITE, 8, 4097, 0, 0, all, IBV_ACCESS_REMOTE_READ, IBV_WC_REM_ACCESS_ERR},
        {IBV_WR_RDMA_WRITE, 101, 4096, 0, 0, all, all, IBV_WC_REM_ACCESS_ERR},
        {IBV_WR_RDMA_WRITE, 8, 4096, 0, 0, IBV_ACCESS_REMOTE_READ, all, IBV_WC_REM_INV_REQ_ERR},
        {IBV_WR_RDMA_WRITE, 0, 1, 0, 0, all, 0, IBV_WC_SUCCESS},
        {IBV_WR_RDMA_READ, 8, 4097, 0, 0, all, IBV_ACCESS_REMOTE_READ, IBV_WC_SUCCESS},
        {IBV_WR_RDMA_READ, 8, 4096, 0, 0, all, IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_ACCESS_ERR},
        {IBV_WR_RDMA_READ, 8, 4096, 0, 0, IBV_ACCESS_REMOTE_WRITE, all, IBV_WC_REM_INV_REQ_ERR},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 4096, 0, 0, all, IBV_ACCESS_REMOTE_ATOMIC,
         IBV_WC_SUCCESS},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 4100, 0, 0, all, all, IBV_WC_REM_INV_REQ_ERR},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 4100, 0, 0, all, 0, IBV_WC_REM_ACCESS_ERR},
        {IBV_WR_ATOMIC_CMP_AND_SWP, 8, 4096, 0, 0, IBV_ACCESS_REMOTE_WRITE, all,
         IBV_WC_REM_INV_REQ_ERR},
        {SIM_WR_ATOMIC_WRITE, 8, 4096, 0, 0, all, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS},
        {SIM_WR_ATOMIC_WRITE, 8, 4100, 0, 0, all, all, IBV_WC_REM_INV_REQ_ERR},
        {SIM_WR_FLUSH, 8, 4097, SIM_FLUSH_PERSISTENT, SIM_FLUSH_RANGE, 0,
         SIM_ACCESS_FLUSH_PERSISTENT, IBV_WC_SUCCESS},
        {SIM_WR_FLUSH, 8, 4096, SIM_FLUSH_GLOBAL, SIM_FLUSH_RANGE, 0,
         SIM_ACCESS_FLUSH_PERSISTENT, IBV_WC_REM_ACCESS_ERR},
        {SIM_WR_FLUSH, 8, 4096, SIM_FLUSH_PERSISTENT, SIM_FLUSH_RANGE, 0,
         SIM_ACCESS_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR},
        {SIM_WR_FLUSH, 0, 1, SIM_FLUSH_GLOBAL, SIM_FLUSH_RANGE, 0, flushes,
         IBV_WC_REM_ACCESS_ERR},
        {SIM_WR_FLUSH, 0, 1, SIM_FLUSH_GLOBAL, SIM_FLUSH_REGION, 0, flushes, IBV_WC_SUCCESS},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct sim_region region = {&pd, 4096, 100, rows[i].of_region};
        const struct sim_send send = {
            rows[i].opcode, 0, 1, rows[i].length, rows[i].address, rows[i].type, rows[i].level};
        IS(sim_check_target(&device, &send, rows[i].of_qp, &region, &pd), rows[i].status);
    }
    const struct sim_region region = {&pd, 4096, 100, 0};
    const struct sim_send read = {IBV_WR_RDMA_READ, 0, 1, 8, 4096, 0, 0};
    BUT(other.checks_read_access = false);
    IS(sim_check_target(&other, &read, 0, &region, &pd), IBV_WC_SUCCESS);
    IS(sim_check_target(&other, &read, 0, NULL, &pd), IBV_WC_REM_ACCESS_ERR);
    other = device;
    other.transport = SIM_IWARP; // the access of the region decides
    IS(sim_check_target(&other, &read, 0, &region, &pd), IBV_WC_REM_ACCESS_ERR);
}

static void atomic_result_is_that_of_its_operation(void **unused) {
    (void)unused;
    IS(sim_atomic_result(IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 3, 9), 8);
    IS(sim_atomic_result(IBV_WR_ATOMIC_CMP_AND_SWP, 5, 5, 9), 9);
    IS(sim_atomic_result(IBV_WR_ATOMIC_CMP_AND_SWP, 5, 4, 9), 5);
    assert_true(sim_atomic_result(IBV_WR_ATOMIC_FETCH_AND_ADD, 1ULL << 40, 1ULL << 40, 0) ==
                1ULL << 41);
}

static void armed_cq_is_notified_once(void **unused) {
    (void)unused;
    enum sim_armed armed = SIM_NOT_ARMED;
    IS(sim_notifies(&device, &armed, IBV_WC_SUCCESS, true), false);
    sim_arm(&armed, true);
    IS(sim_notifies(&device, &armed, IBV_WC_SUCCESS, false), false);
    IS(sim_notifies(&device, &armed, IBV_WC_WR_FLUSH_ERR, false), false);
    IS(sim_notifies(&device, &armed, IBV_WC_SUCCESS, true), true);
    IS(armed, SIM_NOT_ARMED);
    sim_arm(&armed, false);
    sim_arm(&armed, true);
    IS(armed, SIM_ARMED);
    IS(sim_notifies(&device, &armed, IBV_WC_SUCCESS, false), true);
    IS(sim_notifies(&device, &armed, IBV_WC_SUCCESS, true), false);
    BUT(other.errors_are_solicited = true);
    sim_arm(&armed, true);
    IS(sim_notifies(&other, &armed, IBV_WC_SUCCESS, false), false);
    IS(sim_notifies(&other, &armed, IBV_WC_WR_FLUSH_ERR, false), true);
}

// ---- connections ---------------------------------------------------------------------------

static void private_data_beyond_the_message_is_refused(void **unused) {
    (void)unused;
    static const struct {
        enum sim_message message;
        uint8_t most;
    } rows[] = {{SIM_REQUEST, 56},
                {SIM_REPLY, 196},
                {SIM_REJECTION, 148},
                {SIM_UD_REQUEST, 180},
                {SIM_UD_REPLY, 136}};
    BUT(other.transport = SIM_IWARP);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        IS(sim_check_private_data(&device, rows[i].message, rows[i].most), 0);
        IS(sim_check_private_data(&device, rows[i].message, rows[i].most + 1U), EINVAL);
        IS(sim_check_private_data(&other, rows[i].message, 255), 0);
        IS(sim_received_data(&device, rows[i].message, 3), rows[i].most);
        IS(sim_received_data(&other, rows[i].message, 3), 3);
    }
}

static void address_is_compared_without_its_port(void **unused) {
    (void)unused;
    struct sockaddr_in one = {.sin_family = AF_INET, .sin_addr = {htonl(0x0a4d0001)}},
                       two = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6}, seven = six;
    struct sockaddr *const v4 = (struct sockaddr *)&one, *const any4 = (struct sockaddr *)&two,
                           *const any6 = (struct sockaddr *)&six,
                           *const v6 = (struct sockaddr *)&seven;
    seven.sin6_addr.s6_addr[15] = 1;
    IS(sim_address_length(NULL), 0);
    IS(sim_address_length(v4), sizeof(one));
    IS(sim_address_length(v6), sizeof(six));
    IS(sim_address_length(&(struct sockaddr){.sa_family = AF_UNIX}), 0);
    sim_set_port(v6, htons(7204));
    IS(sim_port(v6), htons(7204));
    IS(seven.sin6_port, htons(7204));
    IS(sim_is_wildcard(v4), false);
    IS(sim_is_wildcard(any4), true);
    IS(sim_is_wildcard(any6), true);
    IS(sim_is_wildcard(v6), false);
    IS(sim_is_same_host(v4, v4), true);
    IS(sim_is_same_host(v4, any4), false);
    IS(sim_is_same_host(any4, any6), false);
    IS(sim_is_same_host(v6, any6), false);
    six = seven;
    sim_set_port(any6, htons(1));
    IS(sim_is_same_host(v6, any6), true);
}

// The first and the last state in which each call is possible.
static void call_in_another_state_is_refused(void **unused) {
    (void)unused;
    static const struct {
        enum sim_cm_call call;
        enum sim_cm_state first, last;
    } rows[] = {
        {SIM_CM_BIND, SIM_CM_IDLE, SIM_CM_IDLE},
        {SIM_CM_RESOLVE_ADDR, SIM_CM_IDLE, SIM_CM_BOUND},
        {SIM_CM_RESOLVE_ROUTE, SIM_CM_RESOLVED, SIM_CM_RESOLVED},
        {SIM_CM_LISTEN, SIM_CM_IDLE, SIM_CM_BOUND},
        {SIM_CM_CONNECT, SIM_CM_ROUTED, SIM_CM_ROUTED},
        {SIM_CM_ACCEPT, SIM_CM_REQ_RECEIVED, SIM_CM_REQ_RECEIVED},
        {SIM_CM_CONFIRM, SIM_CM_REP_RECEIVED, SIM_CM_REP_RECEIVED},
        {SIM_CM_REJECT, SIM_CM_REQ_SENT, SIM_CM_REP_RECEIVED},
        {SIM_CM_DISCONNECT, SIM_CM_REQ_SENT, SIM_CM_CLOSED},
        {SIM_CM_SET_AFONLY, SIM_CM_IDLE, SIM_CM_BOUND},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int state = SIM_CM_IDLE; state <= SIM_CM_CLOSED; state++)
            IS(sim_check_cm_call((enum sim_cm_state)state, rows[i].call),
               state < (int)rows[i].first || state > (int)rows[i].last ? EINVAL : 0);
}

static void state_after_an_event_is_that_of_the_kernel(void **unused) {
    (void)unused;
    static const struct {
        enum rdma_cm_event_type event;
        enum sim_cm_state state;
    } rows[] = {
        {RDMA_CM_EVENT_ADDR_RESOLVED, SIM_CM_RESOLVED},
        {RDMA_CM_EVENT_ADDR_ERROR, SIM_CM_BOUND},
        {RDMA_CM_EVENT_ROUTE_RESOLVED, SIM_CM_ROUTED},
        {RDMA_CM_EVENT_ROUTE_ERROR, SIM_CM_RESOLVED},
        {RDMA_CM_EVENT_CONNECT_RESPONSE, SIM_CM_REP_RECEIVED},
        {RDMA_CM_EVENT_ESTABLISHED, SIM_CM_ESTABLISHED},
        {RDMA_CM_EVENT_CONNECT_ERROR, SIM_CM_CLOSED},
        {RDMA_CM_EVENT_UNREACHABLE, SIM_CM_CLOSED},
        {RDMA_CM_EVENT_REJECTED, SIM_CM_CLOSED},
        {RDMA_CM_EVENT_DEVICE_REMOVAL, SIM_CM_CLOSED},
        {RDMA_CM_EVENT_DISCONNECTED, SIM_CM_DREQ_SENT}, // unchanged
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        IS(sim_cm_state_after(SIM_CM_DREQ_SENT, rows[i].event), rows[i].state);
}

static void option_of_another_size_is_refused(void **unused) {
    (void)unused;
    IS(sim_check_option(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1), 0);
    IS(sim_check_option(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4), EINVAL);
    IS(sim_check_option(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4), 0);
    IS(sim_check_option(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1), EINVAL);
    IS(sim_check_option(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1), 0);
    IS(sim_check_option(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT + 1, 1), ENOSYS);
    IS(sim_check_option(RDMA_OPTION_ID, -1, 1), ENOSYS);
    IS(sim_check_option(RDMA_OPTION_IB, RDMA_OPTION_ID_TOS, 1), ENOSYS);
    assert_string_equal(sim_cm_event_name(RDMA_CM_EVENT_ADDR_RESOLVED),
                        "RDMA_CM_EVENT_ADDR_RESOLVED");
    assert_string_equal(sim_cm_event_name(RDMA_CM_EVENT_TIMEWAIT_EXIT),
                        "RDMA_CM_EVENT_TIMEWAIT_EXIT");
    assert_string_equal(sim_cm_event_name(RDMA_CM_EVENT_TIMEWAIT_EXIT + 1), "UNKNOWN EVENT");
    assert_string_equal(sim_cm_event_name(-1), "UNKNOWN EVENT");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_reports_its_capabilities),
        cmocka_unit_test(each_operation_of_the_device_has_a_builder),
        cmocka_unit_test(region_is_refused_without_the_capability_of_its_access),
        cmocka_unit_test(queue_size_is_rounded_as_by_the_driver),
        cmocka_unit_test(cq_beyond_the_limits_is_refused),
        cmocka_unit_test(srq_beyond_the_limits_is_refused),
        cmocka_unit_test(srq_change_keeps_room_for_its_receives_and_limit),
        cmocka_unit_test(qp_beyond_the_limits_is_refused),
        cmocka_unit_test(each_event_has_the_type_of_its_object),
        cmocka_unit_test(transition_needs_each_required_attribute),
        cmocka_unit_test(attribute_beyond_its_range_is_refused),
        cmocka_unit_test(iwarp_qp_is_connected_by_the_connection_manager_only),
        cmocka_unit_test(invalid_send_has_the_error_of_the_device),
        cmocka_unit_test(send_to_a_full_queue_or_in_a_late_state_is_refused),
        cmocka_unit_test(invalid_built_send_has_one_error),
        cmocka_unit_test(invalid_receive_is_refused),
        cmocka_unit_test(range_beyond_its_region_is_refused),
        cmocka_unit_test(target_without_access_has_the_status_of_its_operation),
        cmocka_unit_test(atomic_result_is_that_of_its_operation),
        cmocka_unit_test(armed_cq_is_notified_once),
        cmocka_unit_test(private_data_beyond_the_message_is_refused),
        cmocka_unit_test(address_is_compared_without_its_port),
        cmocka_unit_test(call_in_another_state_is_refused),
        cmocka_unit_test(state_after_an_event_is_that_of_the_kernel),
        cmocka_unit_test(option_of_another_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
