// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// request_rules_test.c -- the rules of requests, of their execution and of connections, which
// the fabric and the fakes of the unit tests share. The sources of the expected values are
// named in device/rules.c.

#include "rules_device.h"

#include <netinet/in.h>

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
        cmocka_unit_test(attribute_beyond_its_range_is_refused),
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
