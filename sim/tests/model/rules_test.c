// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// rules_test.c -- the rules of devices and of queues, which the fabric and the fakes of the
// unit tests share. The sources of the expected values are named in device/rules.c.

#include "rules_device.h"

#include <string.h>

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

static void iwarp_qp_is_connected_by_the_connection_manager_only(void **unused) {
    (void)unused;
    BUT(other.transport = SIM_IWARP);
    IS(change(&other, RC, INIT, RTR, 0, valid_attr), EINVAL);
    IS(change(&other, RC, RTR, RTS, 0, valid_attr), EINVAL);
    IS(change(&other, RC, RTS, RTS, 0, valid_attr), 0);
    IS(change(&other, RC, RTS, ERR, 0, valid_attr), 0);
    IS(change(&other, RC, RESET, INIT, 0, valid_attr), 0);
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
        cmocka_unit_test(iwarp_qp_is_connected_by_the_connection_manager_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
