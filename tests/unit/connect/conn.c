// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn.c -- connections: events, private data, and the objects of a connection

#include "fixture.h"

static const struct shape outgoing = {.name = "outgoing"};

// A connection after rpma_conn_req_connect(), before the first event.
static void new_unestablished(const struct shape *shape) {
    fixture_peer(&w);
    fixture_request(&w, shape);
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
}

static void deliver_event(enum rdma_cm_event_type type) {
    fake_cm_event(fixture_event_fd(&w), type, NULL, 0);
}

// ---- events --------------------------------------------------------------------------------

// ../properties/failure_lines.tsv has the texts of their status.
TEST_THAT(each_cm_event_has_its_conn_event) {
    static const struct {
        enum rdma_cm_event_type type;
        enum rpma_conn_event event;
        enum rpma_log_level level;
    } cases[] = {
        {RDMA_CM_EVENT_ESTABLISHED, RPMA_CONN_ESTABLISHED, RPMA_LOG_LEVEL_NOTICE},
        {RDMA_CM_EVENT_DISCONNECTED, RPMA_CONN_CLOSED, RPMA_LOG_LEVEL_NOTICE},
        {RDMA_CM_EVENT_TIMEWAIT_EXIT, RPMA_CONN_CLOSED, RPMA_LOG_LEVEL_NOTICE},
        {RDMA_CM_EVENT_CONNECT_ERROR, RPMA_CONN_LOST, RPMA_LOG_LEVEL_WARNING},
        {RDMA_CM_EVENT_DEVICE_REMOVAL, RPMA_CONN_LOST, RPMA_LOG_LEVEL_WARNING},
        {RDMA_CM_EVENT_UNREACHABLE, RPMA_CONN_UNREACHABLE, RPMA_LOG_LEVEL_WARNING},
        {RDMA_CM_EVENT_REJECTED, RPMA_CONN_REJECTED, RPMA_LOG_LEVEL_WARNING},
    };
    fixture_conn(&w, &outgoing);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
        deliver_event(cases[i].type);
        MUST(rpma_conn_next_event(w.h.conn, &event));
        assert_int_equal(event, cases[i].event);
        assert_int_equal(logged_count(cases[i].level), 1);
        assert_non_null(
            strstr(logged_line(cases[i].level, 0)->message, rdma_event_str(cases[i].type)));
    }
}

// The call returns RPMA_E_NO_EVENT instead of waiting for another event; events before and
// after the address change are returned.
TEST_THAT(address_change_keeps_the_connection) {
    for (int established = 0; established < 2; established++) {
        enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
        fixture_reset();
        if (established)
            fixture_conn(&w, &outgoing);
        else
            new_unestablished(&outgoing);
        deliver_event(RDMA_CM_EVENT_ADDR_CHANGE);
        deliver_event(established ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_ESTABLISHED);
        WATCH(event);
        EXPECT_ERROR(rpma_conn_next_event(w.h.conn, &event), RPMA_E_NO_EVENT,
                     "RDMA_CM_EVENT_ADDR_CHANGE", "RDMA_CM_EVENT_ADDR_CHANGE",
                     .calls = "rdma_get_cm_event rdma_ack_cm_event",
                     .level = RPMA_LOG_LEVEL_INFO);
        MUST(rpma_conn_next_event(w.h.conn, &event));
        assert_int_equal(event, established ? RPMA_CONN_CLOSED : RPMA_CONN_ESTABLISHED);
        deliver_event(RDMA_CM_EVENT_ADDR_CHANGE);
        fake_fail("rdma_ack_cm_event", 1, EIO);
        WATCH(event);
        EXPECT_ERROR(rpma_conn_next_event(w.h.conn, &event), RPMA_E_PROVIDER,
                     "rdma_ack_cm_event() failed", "rdma_ack_cm_event()", EIO,
                     "rdma_get_cm_event rdma_ack_cm_event");
    }
}

// ---- private data --------------------------------------------------------------------------

static void expect_data(const void *data, uint8_t len) {
    struct rpma_conn_private_data pdata = {&w, 99};
    MUST(rpma_conn_get_private_data(w.h.conn, &pdata));
    assert_int_equal(pdata.len, len);
    if (len)
        assert_memory_equal(pdata.ptr, data, len);
    else
        assert_null(pdata.ptr);
}

// InfiniBand delivers all bytes of the message, iWARP only those that were sent. A rejection
// whose bytes are all 0 has no private data. The event is returned even without memory for its
// data.
TEST_THAT(private_data_arrives_with_the_reply) {
    static const struct {
        enum rdma_cm_event_type type;
        enum sim_transport transport;
        int byte;
        uint8_t sent, seen;
        const char *warning; // without memory for the data
    } cases[] = {
        {RDMA_CM_EVENT_ESTABLISHED, SIM_ROCE, 1, 0, 196},
        {RDMA_CM_EVENT_ESTABLISHED, SIM_ROCE, 1, 1, 196},
        {RDMA_CM_EVENT_ESTABLISHED, SIM_ROCE, 1, 196, 196},
        {RDMA_CM_EVENT_ESTABLISHED, SIM_IWARP, 1, 0, 0},
        {RDMA_CM_EVENT_ESTABLISHED, SIM_IWARP, 1, 1, 1},
        {RDMA_CM_EVENT_ESTABLISHED, SIM_IWARP, 1, UINT8_MAX, UINT8_MAX},
        {RDMA_CM_EVENT_ESTABLISHED, SIM_ROCE, 1, 5, 0, "without the 196 bytes"},
        {RDMA_CM_EVENT_REJECTED, SIM_ROCE, 1, 4, 148},
        {RDMA_CM_EVENT_REJECTED, SIM_ROCE, 1, 5, 0, "is rejected without the 148 bytes"},
        {RDMA_CM_EVENT_REJECTED, SIM_ROCE, 1, 0, 0},
        {RDMA_CM_EVENT_REJECTED, SIM_ROCE, 0, 8, 0},
        {RDMA_CM_EVENT_REJECTED, SIM_IWARP, 1, 4, 4},
        {RDMA_CM_EVENT_REJECTED, SIM_IWARP, 1, 0, 0},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const bool rejected = cases[i].type == RDMA_CM_EVENT_REJECTED;
        enum rpma_conn_event event;
        unsigned char data[UINT8_MAX] = {0};
        memset(data, cases[i].byte, cases[i].sent);
        fake_profile()->transport = cases[i].transport;
        new_unestablished(&outgoing);
        expect_data(NULL, 0);
        fake_cm_event(fixture_event_fd(&w), cases[i].type, data, cases[i].sent);
        if (cases[i].warning)
            fake_fail("malloc", 1, ENOMEM);
        MUST(rpma_conn_next_event(w.h.conn, &event));
        assert_int_equal(event, rejected ? RPMA_CONN_REJECTED : RPMA_CONN_ESTABLISHED);
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING),
                         rejected + (cases[i].warning != NULL)); // a rejection logs a warning
        if (cases[i].warning) {
            const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_WARNING, 0);
            assert_string_equal(line->function, "rpma_conn_next_event");
            assert_non_null(strstr(line->message, cases[i].warning));
        }
        expect_data(data, cases[i].seen);
        fake_cm_event(fixture_event_fd(&w), RDMA_CM_EVENT_DISCONNECTED, "later", 5);
        MUST(rpma_conn_next_event(w.h.conn, &event));
        expect_data(data, cases[i].seen); // other events have no data
    }
}

TEST_THAT(private_data_of_the_request_is_kept) {
    enum rpma_conn_event event;
    const struct shape shape = {.incoming = true, .private_data = 20};
    fake_profile()->transport = SIM_IWARP; // also delivers data with ESTABLISHED
    new_unestablished(&shape);
    expect_data("from here to there\0", 20);
    fake_cm_event(fixture_event_fd(&w), RDMA_CM_EVENT_ESTABLISHED, "other", 5);
    MUST(rpma_conn_next_event(w.h.conn, &event));
    expect_data("from here to there\0", 20);
}

// The call fails, and discards the private data of the event.
TEST_THAT(unacknowledged_event_is_not_counted) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    new_unestablished(&outgoing);
    fake_cm_event(fixture_event_fd(&w), RDMA_CM_EVENT_ESTABLISHED, "hello", 5);
    fake_fail("rdma_ack_cm_event", 1, EIO);
    WATCH(event);
    EXPECT_ERROR(rpma_conn_next_event(w.h.conn, &event), RPMA_E_PROVIDER, "rdma_ack_cm_event()",
                 "rdma_ack_cm_event()", EIO, "rdma_get_cm_event rdma_ack_cm_event");
    expect_data(NULL, 0);
}

static void delete_and_note(enum rpma_log_level level, const char *file, const int line,
                            const char *function, const char *format, ...) {
    (void)level, (void)file, (void)line, (void)function, (void)format;
    (void)rpma_log_set_function(NULL);
    (void)rpma_conn_delete(&w.h.conn);
}

// The library reads nothing of the connection after it has logged the event.
TEST_THAT(log_function_may_delete_the_connection) {
    static const enum rdma_cm_event_type types[] = {
        RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_REJECTED};
    static const enum rpma_conn_event events[] = {RPMA_CONN_ESTABLISHED, RPMA_CONN_CLOSED,
                                                  RPMA_CONN_REJECTED};
    for (size_t i = 0; i < LENGTH(types); i++) {
        enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
        new_unestablished(&outgoing);
        deliver_event(types[i]);
        MUST(rpma_log_set_function(delete_and_note));
        MUST(rpma_conn_next_event(w.h.conn, &event));
        logged_start();
        assert_int_equal(event, events[i]);
        assert_null(w.h.conn);
    }
}

// A connection can be deleted in any state, with pending events and completions.
TEST_THAT(pending_event_is_ignored_by_delete) {
    const struct ibv_wc wc = {.wr_id = 1};
    new_unestablished(&outgoing);
    deliver_event(RDMA_CM_EVENT_ESTABLISHED);
    fake_complete(fixture_qp(&w)->send_cq, &wc);
    MUST(rpma_conn_disconnect(w.h.conn));
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_NOTICE, 0)->message, "disconnecting");
    MUST(rpma_conn_delete(&w.h.conn));
}

// iWARP drivers return EINVAL for a connection that has ended, or that is not established yet.
TEST_THAT(disconnecting_an_ended_connection_succeeds) {
    enum { NO_EVENT = -1, EVENTS = 3 };
    static const struct {
        int events[EVENTS];
        bool has_ended_or_was_established;
    } cases[] = {
        {{NO_EVENT}, false},
        {{RDMA_CM_EVENT_ADDR_CHANGE, NO_EVENT}, false},
        {{RDMA_CM_EVENT_MULTICAST_JOIN, NO_EVENT}, false}, // unexpected
        {{RDMA_CM_EVENT_ESTABLISHED, NO_EVENT}, true},     // CLOSED is not taken yet
        {{RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, NO_EVENT}, true},
        {{RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DEVICE_REMOVAL, NO_EVENT}, true},
        {{RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_UNREACHABLE, NO_EVENT}, true},
        {{RDMA_CM_EVENT_TIMEWAIT_EXIT, NO_EVENT}, true},
        {{RDMA_CM_EVENT_CONNECT_ERROR, NO_EVENT}, true},
        {{RDMA_CM_EVENT_REJECTED, NO_EVENT}, true},
        {{RDMA_CM_EVENT_UNREACHABLE, NO_EVENT}, true},
    };
    for (size_t i = 0; i < 2 * LENGTH(cases); i++)
        for (int error = EINVAL; error > 0; error = error == EINVAL ? EIO : 0) {
            fixture_reset();
            new_unestablished(&(const struct shape){.incoming = i % 2 != 0});
            for (const int *type = cases[i / 2].events; *type != NO_EVENT; type++) {
                enum rpma_conn_event event;
                fake_cm_event(fixture_event_fd(&w), (enum rdma_cm_event_type) * type, NULL, 0);
                (void)rpma_conn_next_event(w.h.conn, &event);
            }
            fake_fail("rdma_disconnect", 1, error);
            unit_begin();
            errno = EXFULL;
            const int code = rpma_conn_disconnect(w.h.conn);
            const bool ends = error == EINVAL && cases[i / 2].has_ended_or_was_established;
            assert_int_equal(code, ends ? 0 : RPMA_E_PROVIDER);
            assert_int_equal(errno, ends ? EXFULL : error);
            assert_int_equal(logged_count(RPMA_LOG_LEVEL_ERROR), !ends);
            assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
            assert_int_equal(logged_count(RPMA_LOG_LEVEL_DEBUG), ends);
            EXPECT_CALLS("rdma_disconnect");
        }
}

// ---- the objects of a connection -----------------------------------------------------------

TEST_THAT(getters_return_the_created_verbs_objects) {
    struct ibv_pd *pd = NULL;
    struct ibv_mr *mr = NULL;
    struct ibv_qp *qp = NULL;
    struct ibv_cq *cq = NULL;
    fixture_conn(&w, &(const struct shape){0});
    MUST(rpma_peer_get_ibv_pd(w.h.peer, &pd));
    MUST(rpma_mr_get_ibv_mr(w.h.mr, &mr));
    MUST(rpma_conn_get_ibv_qp(w.h.conn, &qp));
    MUST(rpma_cq_get_ibv_cq(fixture_cq(&w), &cq));
    EXPECT_CALLS("");
    assert_ptr_equal(mr->pd, pd);
    assert_ptr_equal(mr->addr, w.memory);
    assert_ptr_equal(qp, fixture_qp(&w));
    assert_ptr_equal(qp->pd, pd);
    assert_ptr_equal(qp->send_cq, cq);
    assert_null(fixture_rcq(&w));
}
