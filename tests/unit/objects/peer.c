// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.c -- rpma_peer_new(), rpma_peer_delete(); events of a device and their handles;
// cq_shared.c has the events of all queues

#include "fixture.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>

// One line lists the capabilities of the device and of the build.
TEST_THAT(new_logs_the_granted_sizes) {
    for (int device = 0; device < 16; device++) {
        const bool odp = device & 1, flush = device & 2, atomic_write = device & 4;
        struct rpma_peer *peer = NULL;
        char wanted[160];
        fake_reset();
        fake_profile()->has_odp = odp;
        fake_profile()->has_native_flush = flush;
        fake_profile()->has_native_atomic_write = atomic_write;
        fake_profile()->attr.atomic_cap = device & 8 ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
        MUST(rpma_peer_new(fake_context(0), &peer));
        snprintf(wanted, sizeof(wanted),
                 "native atomic write: %s, native flush: %s, on-demand paging: %s, remote "
                 "atomics: %s",
                 atomic_write && BUILD_WRITES_ATOMICALLY ? "yes" : "no",
                 flush && BUILD_FLUSHES ? "yes" : "no", odp ? "yes" : "no",
                 device & 8 ? "yes" : "no");
        const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_INFO, 0);
        assert_non_null(line);
        assert_string_equal(line->message, wanted);
        MUST(rpma_peer_delete(&peer));
    }
}

static void connect_another(struct rpma_conn **conn) {
    MUST(rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, NULL, &w.h.req));
    MUST(rpma_conn_req_connect(&w.h.req, NULL, conn));
}

// Flushes read into 8 bytes, which all connections of a peer share. A failed deletion may
// deregister them; the next connection registers them again.
TEST_THAT(flush_target_is_made_once_per_peer) {
    struct rpma_conn *first = NULL;
    fixture_peer(&w);
    connect_another(&first);
    const struct fake_call *call = fake_last("ibv_reg_mr");
    assert_int_equal(call->reg_mr.length, 8);
    assert_int_equal(call->reg_mr.access, IBV_ACCESS_LOCAL_WRITE);
    connect_another(&w.h.conn);
    EXPECT_CALLS("rdma_create_event_channel rdma_migrate_id rdma_connect");
    MUST(rpma_conn_delete(&first));
    assert_int_equal(fake_count("ibv_dereg_mr"), 0);
    WATCH(w.h);
    EXPECT_ERROR(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER, "the peer stays",
                 "a connection still uses the flush target",
                 .logs = "the peer before its connections (1)", .own_error = EBUSY);
    MUST(rpma_conn_delete(&w.h.conn));
    assert_int_equal(fake_count("ibv_dereg_mr"), 0);
    fake_fail("ibv_dereg_mr", 1, EBUSY);
    WATCH(w.h);
    EXPECT_ERROR(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER, "the peer stays",
                 "ibv_dereg_mr()", EBUSY, "ibv_dereg_mr");
    WATCH(w.h);
    EXPECT_ERROR(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER,
                 "the peer stays", // h.mr exists
                 "ibv_dealloc_pd()", EBUSY, "ibv_dereg_mr ibv_dealloc_pd");
    connect_another(&w.h.conn);
    EXPECT_CALLS("rdma_create_event_channel rdma_migrate_id ibv_reg_mr rdma_connect");
    MUST(rpma_conn_delete(&w.h.conn));
    MUST(rpma_mr_dereg(&w.h.mr));
    MUST(rpma_peer_delete(&w.h.peer));
    EXPECT_CALLS("ibv_dereg_mr ibv_dealloc_pd");
}

// ---- events of the device ------------------------------------------------------------------

// Takes the only pending event.
static struct rpma_peer_event event_of(struct rpma_peer *peer) {
    struct rpma_peer_event event;
    memset(&event, 0x5a, sizeof(event));
    MUST(rpma_peer_next_event(peer, &event));
    EXPECT_CALLS("ibv_get_async_event ibv_ack_async_event");
    return event;
}

static struct rpma_peer_event deliver_event(enum ibv_event_type type, void *object) {
    fake_async_event(fake_context(0), type, object, 0);
    const struct rpma_peer_event event = event_of(w.h.peer);
    assert_ptr_equal(event.ibv_object, object);
    return event;
}

// The type of each event of libibverbs. An unknown number has the type OTHER.
TEST_THAT(each_event_has_its_type) {
    static const struct {
        int ibv_event;
        enum rpma_peer_event_type type;
        enum { PORT, DEVICE, QP, CQ, SRQ, WQ } about;
        enum rpma_log_level level;
    } table[] = {
        {IBV_EVENT_CQ_ERR, RPMA_PEER_EVENT_CQ_ERROR, CQ, RPMA_LOG_LEVEL_WARNING},
        {IBV_EVENT_QP_FATAL, RPMA_PEER_EVENT_QP_ERROR, QP, RPMA_LOG_LEVEL_WARNING},
        {IBV_EVENT_QP_REQ_ERR, RPMA_PEER_EVENT_QP_ERROR, QP, RPMA_LOG_LEVEL_WARNING},
        {IBV_EVENT_QP_ACCESS_ERR, RPMA_PEER_EVENT_QP_ERROR, QP, RPMA_LOG_LEVEL_WARNING},
        {IBV_EVENT_COMM_EST, RPMA_PEER_EVENT_OTHER, QP, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_SQ_DRAINED, RPMA_PEER_EVENT_OTHER, QP, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_PATH_MIG, RPMA_PEER_EVENT_OTHER, QP, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_PATH_MIG_ERR, RPMA_PEER_EVENT_OTHER, QP, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_DEVICE_FATAL, RPMA_PEER_EVENT_DEVICE_GONE, DEVICE, RPMA_LOG_LEVEL_WARNING},
        {IBV_EVENT_PORT_ACTIVE, RPMA_PEER_EVENT_PORT_UP, PORT, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_PORT_ERR, RPMA_PEER_EVENT_PORT_DOWN, PORT, RPMA_LOG_LEVEL_WARNING},
        {IBV_EVENT_LID_CHANGE, RPMA_PEER_EVENT_ADDR_CHANGED, PORT, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_PKEY_CHANGE, RPMA_PEER_EVENT_OTHER, PORT, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_SM_CHANGE, RPMA_PEER_EVENT_OTHER, PORT, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_SRQ_ERR, RPMA_PEER_EVENT_SRQ_ERROR, SRQ, RPMA_LOG_LEVEL_WARNING},
        {IBV_EVENT_SRQ_LIMIT_REACHED, RPMA_PEER_EVENT_SRQ_LIMIT, SRQ, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_QP_LAST_WQE_REACHED, RPMA_PEER_EVENT_OTHER, QP, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_CLIENT_REREGISTER, RPMA_PEER_EVENT_OTHER, PORT, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_GID_CHANGE, RPMA_PEER_EVENT_ADDR_CHANGED, PORT, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_WQ_FATAL, RPMA_PEER_EVENT_OTHER, WQ, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_WQ_FATAL + 1, RPMA_PEER_EVENT_OTHER, DEVICE, RPMA_LOG_LEVEL_NOTICE},
        {IBV_EVENT_WQ_FATAL + 80, RPMA_PEER_EVENT_OTHER, DEVICE, RPMA_LOG_LEVEL_NOTICE},
    };
    const struct shape shape = {.srq = true};
    fixture_conn(&w, &shape);
    struct ibv_qp *qp = fixture_qp(&w);
    void *const objects[] = {
        [QP] = qp, [CQ] = qp->send_cq, [SRQ] = qp->srq, [WQ] = &w /* any address */};
    for (size_t i = 0; i < LENGTH(table); i++) {
        const bool has_object = table[i].about > DEVICE, has_port = table[i].about == PORT;
        char line[96];
        snprintf(line, sizeof(line), "(event %d of libibverbs) on fake0%s", table[i].ibv_event,
                 has_port ? ", port 3" : "");
        fake_async_event(fake_context(0), table[i].ibv_event,
                         has_object ? objects[table[i].about] : NULL, 3);
        const struct rpma_peer_event event = event_of(w.h.peer);
        const struct rpma_peer_event expected = {
            .type = table[i].type,
            .ibv_event = table[i].ibv_event,
            .port = has_port ? 3 : 0,
            .conn = table[i].about == QP ? w.h.conn : NULL,
            .cq = table[i].about == CQ ? fixture_cq(&w) : NULL,
            .srq = table[i].about == SRQ ? w.h.srq : NULL,
            .ibv_object = has_object ? objects[table[i].about] : NULL,
        };
        if (memcmp(&event, &expected, sizeof(event)) != 0)
            fail_msg("event %d: type %d, port %u, conn %p, cq %p, srq %p, object %p",
                     table[i].ibv_event, event.type, event.port, (void *)event.conn,
                     (void *)event.cq, (void *)event.srq, event.ibv_object);
        assert_int_equal(logged_count(table[i].level), 1);
        assert_non_null(strstr(logged_line(table[i].level, 0)->message, line));
    }
}

// ---- objects of the program ----------------------------------------------------------------

// All pointers of these objects that the program can set point to handles of librpma.
TEST_THAT(events_of_foreign_objects_have_no_handle) {
    const struct shape shape = {.srq = true};
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct ibv_pd *pd = NULL;
    struct rdma_cm_id *id = NULL;
    fixture_conn(&w, &shape);
    MUST(rpma_peer_get_ibv_pd(w.h.peer, &pd));
    struct ibv_comp_channel *channel = ibv_create_comp_channel(pd->context);
    struct ibv_cq *cq = ibv_create_cq(pd->context, 4, fixture_cq(&w), channel, 0);
    struct ibv_srq_init_attr srq_attr = {.srq_context = w.h.srq, .attr = {4, 1, 0}};
    struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
    struct ibv_qp_init_attr_ex attr = {.qp_context = w.h.conn,
                                       .send_cq = cq,
                                       .recv_cq = cq,
                                       .srq = srq,
                                       .cap = {4, 0, 1, 0, 0},
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = pd};
    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1), 0);
    assert_int_equal(rdma_create_qp_ex(id, &attr), 0);
    assert_null(deliver_event(IBV_EVENT_QP_FATAL, id->qp).conn);
    assert_null(deliver_event(IBV_EVENT_CQ_ERR, cq).cq);
    assert_null(deliver_event(IBV_EVENT_SRQ_LIMIT_REACHED, srq).srq);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

// ---- registration of handles ---------------------------------------------------------------

// These functions override the fakes. If a test requests it, an event of the queue pair
// arrives and is taken while they run.
static bool has_event_meanwhile;
static struct rpma_peer_event meanwhile;

static int connect_meanwhile(const char *name, struct rdma_cm_id *id,
                             struct rdma_conn_param *param) {
    int (*next)(struct rdma_cm_id *, struct rdma_conn_param *) = dlsym(RTLD_NEXT, name);
    if (has_event_meanwhile) {
        fake_async_event(fake_context(0), IBV_EVENT_COMM_EST, id->qp, 0);
        (void)rpma_peer_next_event(w.h.peer, &meanwhile);
    }
    return next(id, param);
}
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param) {
    return connect_meanwhile("rdma_accept", id, param);
}
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param) {
    return connect_meanwhile("rdma_connect", id, param);
}

// No connection exists before the program connects; its device events may arrive as soon as
// librdmacm connects it.
TEST_THAT(connection_is_registered_once_connecting) {
    for (int incoming = 0; incoming < 2; incoming++) {
        fixture_reset();
        fixture_peer(&w);
        fixture_request(&w, &(const struct shape){.incoming = incoming});
        const struct rdma_cm_id *id = fake_last("rdma_create_qp_ex")->object;
        struct ibv_qp *qp = id->qp;
        assert_null(deliver_event(IBV_EVENT_COMM_EST, qp).conn);
        has_event_meanwhile = true;
        MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
        has_event_meanwhile = false;
        assert_ptr_equal(meanwhile.ibv_object, qp);
        assert_ptr_equal(meanwhile.conn, w.h.conn);
        assert_ptr_equal(deliver_event(IBV_EVENT_COMM_EST, qp).conn, w.h.conn);
    }
}

static void delete_queue(enum rpma_log_level level, const char *file, const int line,
                         const char *function, const char *format, ...) {
    (void)level, (void)file, (void)line, (void)function, (void)format;
    (void)rpma_log_set_function(NULL);
    (void)rpma_cq_delete(&w.h.shared_cq);
}

// The event must be acknowledged before it is logged, because a deletion waits for that.
TEST_THAT(log_function_may_delete_the_object_of_an_event) {
    struct rpma_peer_event event;
    fixture_peer(&w);
    MUST(rpma_cq_new(w.h.peer, NULL, &w.h.shared_cq));
    const struct rpma_cq *const cq = w.h.shared_cq;
    fake_async_event(fake_context(0), IBV_EVENT_CQ_ERR,
                     fake_cq_on(fixture_cq_fd(w.h.shared_cq), 0), 0);
    MUST(rpma_log_set_function(delete_queue));
    MUST(rpma_peer_next_event(w.h.peer, &event));
    logged_start();
    assert_ptr_equal(event.cq, cq);
    assert_null(w.h.shared_cq);
}

TEST_THAT(refused_deletion_keeps_the_handle) {
    fixture_peer(&w);
    MUST(rpma_cq_new(w.h.peer, NULL, &w.h.shared_cq));
    MUST(rpma_srq_new(w.h.peer, NULL, &w.h.srq));
    struct ibv_cq *cq = fake_cq_on(fixture_cq_fd(w.h.shared_cq), 0);
    fake_fail("ibv_destroy_cq", 1, EBUSY);
    EXPECT_ERROR(rpma_cq_delete(&w.h.shared_cq), RPMA_E_PROVIDER, "the CQ stays",
                 "ibv_destroy_cq()", EBUSY, "ibv_destroy_cq");
    assert_ptr_equal(deliver_event(IBV_EVENT_CQ_ERR, cq).cq, w.h.shared_cq);
    fake_fail("ibv_destroy_srq", 1, EBUSY);
    EXPECT_ERROR(rpma_srq_delete(&w.h.srq), RPMA_E_PROVIDER, "the queue stays",
                 "ibv_destroy_srq()", EBUSY, "ibv_destroy_srq");
    assert_ptr_equal(deliver_event(IBV_EVENT_SRQ_ERR, fake_srq()).srq, w.h.srq);
}

// Without a receive CQ of its own, only the device knows that the queue is in use.
TEST_THAT(shared_receive_queue_is_kept_by_its_connection) {
    static const struct shape shape = {.srq = true};
    fixture_conn(&w, &shape);
    EXPECT_ERROR(rpma_srq_delete(&w.h.srq), RPMA_E_PROVIDER, "the queue stays",
                 "ibv_destroy_srq()", EBUSY, "ibv_destroy_srq");
    assert_non_null(w.h.srq);
}

// The order of deletion differs from the order of creation, so that entries in the middle of a
// list are removed.
TEST_THAT(each_of_many_handles_is_found) {
    enum { MANY = 600 };
    static struct rpma_cq *cqs[MANY];
    fixture_peer(&w);
    for (int i = 0; i < MANY; i++)
        MUST(rpma_cq_new(w.h.peer, NULL, &cqs[i]));
    for (int step = 3; step > 0; step--)
        for (int i = 0; i < MANY; i++) {
            if (cqs[i] && i % step == 0)
                MUST(rpma_cq_delete(&cqs[i]));
            else if (cqs[i])
                assert_ptr_equal(
                    deliver_event(IBV_EVENT_CQ_ERR, fake_cq_on(fixture_cq_fd(cqs[i]), 0)).cq,
                    cqs[i]);
        }
}

// ---- several peers -------------------------------------------------------------------------

// Peers of the same device share its events; a peer of another device gets none of them.
TEST_THAT(each_device_has_its_own_events) {
    struct rpma_peer *second = NULL, *other = NULL;
    int fd[2] = {-1, -1};
    fixture_conn(&w, &(const struct shape){.name = "outgoing"});
    MUST(rpma_peer_new(fake_context(0), &second));
    MUST(rpma_peer_new(fake_context(1), &other));
    MUST(rpma_peer_get_event_fd(second, &fd[0]));
    MUST(rpma_peer_get_event_fd(other, &fd[1]));
    assert_int_equal(fd[0], fake_context(0)->async_fd);
    assert_int_equal(fd[1], fake_context(1)->async_fd);
    fake_async_event(fake_context(0), IBV_EVENT_QP_FATAL, fixture_qp(&w), 0);
    fake_async_event(fake_context(1), IBV_EVENT_PORT_ERR, NULL, 2);
    assert_int_equal(event_of(other).type, RPMA_PEER_EVENT_PORT_DOWN);
    assert_ptr_equal(event_of(second).conn, w.h.conn);
    MUST(rpma_peer_delete(&second));
    MUST(rpma_peer_delete(&other));
}
