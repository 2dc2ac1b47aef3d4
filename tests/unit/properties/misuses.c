// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// misuses.c -- the fakes report each mistake that a test must not pass over. A test of the
// library relies on these reports, and the library makes none of these mistakes.

#include "../fakes/fake.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#undef ibv_reg_mr

// One object of each kind; the CM ID is ready to connect, and the child is a pending request.
static struct {
    struct ibv_context *context;
    struct ibv_pd *pd, *other_pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    struct rdma_event_channel *events, *listener_events;
    struct rdma_cm_id *id, *listener, *child;
    struct rdma_cm_event *event; // of the request
    struct ibv_qp *qp;
} w;

static char memory[64];
static struct sockaddr_in address = {.sin_family = AF_INET};
static struct rdma_conn_param param;

static struct rdma_cm_id *new_id(struct rdma_event_channel *events) {
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(events, &id, NULL, RDMA_PS_TCP), 0);
    return id;
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *events) {
    struct rdma_cm_event *event;
    assert_int_equal(rdma_get_cm_event(events, &event), 0);
    return event;
}

static struct rdma_cm_id *resolved_id(struct rdma_event_channel *events) {
    struct rdma_cm_id *const id = new_id(events);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1), 0);
    if (events)
        rdma_ack_cm_event(next_event(events));
    assert_int_equal(rdma_resolve_route(id, 1), 0);
    if (events)
        rdma_ack_cm_event(next_event(events));
    return id;
}

static struct ibv_qp *create_qp(struct rdma_cm_id *id) {
    struct ibv_qp_init_attr_ex attr = {.send_cq = w.cq,
                                       .recv_cq = w.cq,
                                       .pd = w.pd,
                                       .cap = {4, 4, 2, 2, 16},
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD |
                                                    IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
    assert_int_equal(rdma_create_qp_ex(id, &attr), 0);
    return id->qp;
}

static void create_all(void) {
    fake_reset();
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    w.context = fake_context(0);
    w.pd = ibv_alloc_pd(w.context);
    w.other_pd = ibv_alloc_pd(w.context);
    w.channel = ibv_create_comp_channel(w.context);
    w.cq = ibv_create_cq(w.context, 3, &w, w.channel, 0);
    w.srq = ibv_create_srq(w.pd, &(struct ibv_srq_init_attr){.attr = {2, 1, 0}});
    w.mr = ibv_reg_mr(w.pd, memory, sizeof(memory), 0);
    w.events = rdma_create_event_channel();
    w.id = resolved_id(w.events);
    w.qp = create_qp(w.id);
    w.listener_events = rdma_create_event_channel();
    w.listener = new_id(w.listener_events);
    assert_int_equal(rdma_bind_addr(w.listener, (struct sockaddr *)&address), 0);
    assert_int_equal(rdma_listen(w.listener, 1), 0);
    fake_cm_event(w.listener_events->fd, RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    w.event = next_event(w.listener_events);
    w.child = w.event->id;
    assert_string_equal(fake_misuses(), "");
}

// Expects that a call on new objects is reported by these lines, "FUNCTION: TEXT\n".
#define REPORTS(lines, ...)                         \
    do {                                            \
        create_all();                               \
        __VA_ARGS__;                                \
        assert_string_equal(fake_misuses(), lines); \
    } while (0)

static void post_one(uint32_t lkey, const struct ibv_pd *pd, enum ibv_wr_opcode opcode,
                     uint32_t length) {
    struct ibv_sge sge = {(uintptr_t)memory, length, lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    w.qp->pd = (struct ibv_pd *)pd;
    (void)ibv_post_send(w.qp, &wr, &bad);
}

static void request_without_its_region_is_reported(void **unused) {
    (void)unused;
    REPORTS("ibv_post_send: lkey 1: no live region has this key\n",
            post_one(1, w.pd, IBV_WR_RDMA_WRITE, 1));
    char text[128];
    const uint32_t length = sizeof(memory);
    create_all();
    snprintf(text, sizeof(text), "ibv_post_send: lkey %u: ", w.mr->lkey);
    post_one(w.mr->lkey, w.pd, IBV_WR_RDMA_WRITE, length);
    assert_string_equal(fake_misuses(), "");
    post_one(w.mr->lkey, w.pd, IBV_WR_RDMA_WRITE, length + 1);
    assert_string_equal(fake_misuses(), strcat(text, "the SGE is not within the region\n"));
    create_all();
    post_one(w.mr->lkey, w.other_pd, IBV_WR_RDMA_WRITE, 1);
    assert_non_null(strstr(fake_misuses(), ": the region belongs to another domain\n"));
    create_all();
    post_one(w.mr->lkey, w.pd, IBV_WR_RDMA_READ, 1);
    assert_non_null(strstr(fake_misuses(), ": the region has no local write access\n"));
}

static void builder_call_out_of_order_is_reported(void **unused) {
    (void)unused;
    struct ibv_qp_ex *ex;
    REPORTS("ibv_wr_rdma_write: outside of ibv_wr_start()\n", ex = ibv_qp_to_qp_ex(w.qp),
            ibv_wr_rdma_write(ex, 1, 1));
    REPORTS("ibv_wr_set_inline_data: before any request\n", ex = ibv_qp_to_qp_ex(w.qp),
            ibv_wr_start(ex), ibv_wr_set_inline_data(ex, memory, 1), ibv_wr_complete(ex));
    REPORTS("ibv_wr_set_inline_data: without IBV_SEND_INLINE rxe reads the data as SGEs\n",
            ex = ibv_qp_to_qp_ex(w.qp), ibv_wr_start(ex), ex->wr_flags = 0,
            ibv_wr_rdma_write(ex, 1, 1), ibv_wr_set_inline_data(ex, memory, 1),
            ibv_wr_complete(ex));
    REPORTS("", ex = ibv_qp_to_qp_ex(w.qp), ibv_wr_start(ex), ex->wr_id = 7,
            ex->wr_flags = IBV_SEND_INLINE, ibv_wr_rdma_write(ex, 1, 1),
            ibv_wr_set_inline_data(ex, memory, 1), ibv_wr_complete(ex));
    const struct fake_post *const post = fake_posted(0);
    assert_int_equal(post->wr_id, 7);
    assert_int_equal(post->opcode, IBV_WR_RDMA_WRITE);
    assert_int_equal(post->flags, IBV_SEND_INLINE);
    assert_int_equal(post->inlined_bytes, 1);
    assert_int_equal(post->rkey, 1);
    REPORTS("ibv_qp_to_qp_ex: it reads beyond the end of a plain queue pair\n",
            fake_profile()->has_qp_ex = false, ibv_qp_to_qp_ex(w.qp));
}

static void call_of_a_builder_for_another_queue_pair_is_reported(void **unused) {
    (void)unused;
    create_all();
    struct ibv_qp_ex *const ex = ibv_qp_to_qp_ex(w.qp), *const other_ex = ibv_qp_to_qp_ex(
                                                            create_qp(resolved_id(w.events)));
    ibv_wr_start(ex);
    ibv_wr_rdma_write(other_ex, 1, 1);
    ibv_wr_complete(ex);
    assert_string_equal(fake_misuses(), "ibv_wr_rdma_write: outside of ibv_wr_start()\n");
}

// Makes one call fail, and expects its error.
#define FAILS(name, call, failed)         \
    do {                                  \
        fake_fail(name, 1, EIO);          \
        errno = 0;                        \
        assert_true((call) == (failed));  \
        if ((intptr_t)(failed) != EIO)    \
            assert_int_equal(errno, EIO); \
        fake_faults_off();                \
    } while (0)

static void failed_call_has_no_effect(void **unused) {
    (void)unused;
    struct ibv_send_wr send = {0}, *bad_send;
    struct ibv_recv_wr receive = {0}, *bad_receive;
    create_all();
    FAILS("ibv_req_notify_cq", ibv_req_notify_cq(w.cq, 0), EIO);
    assert_false(fake_armed(w.cq));
    assert_int_equal(ibv_req_notify_cq(w.cq, 0), 0);
    assert_true(fake_armed(w.cq));
    FAILS("ibv_modify_srq",
          ibv_modify_srq(w.srq, &(struct ibv_srq_attr){0, 0, 2}, IBV_SRQ_LIMIT), EIO);
    assert_int_equal(fake_srq_limit(w.srq), 0);
    FAILS("ibv_post_recv", ibv_post_recv(w.qp, &receive, &bad_receive), EIO);
    FAILS("ibv_post_srq_recv", ibv_post_srq_recv(w.srq, &receive, &bad_receive), EIO);
    assert_int_equal(fake_received_count(), 0);
    FAILS("ibv_reg_mr", ibv_reg_mr(w.pd, memory, sizeof(memory), 0), NULL);
    FAILS("ibv_alloc_pd", ibv_alloc_pd(w.context), NULL);
    FAILS("ibv_create_comp_channel", ibv_create_comp_channel(w.context), NULL);
    FAILS("ibv_create_cq", ibv_create_cq(w.context, 3, &w, w.channel, 0), NULL);
    FAILS("rdma_create_event_channel", rdma_create_event_channel(), NULL);
    // These can be called again, except rdma_reject().
    FAILS("rdma_connect", rdma_connect(w.id, &param), -1);
    assert_int_equal(rdma_connect(w.id, &param), 0);
    fake_cm_event(w.events->fd, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    rdma_ack_cm_event(next_event(w.events));
    FAILS("ibv_post_send", ibv_post_send(w.qp, &send, &bad_send), EIO);
    assert_int_equal(fake_posted_count(), 0);
    FAILS("rdma_reject", rdma_reject(w.child, NULL, 0), -1);
    struct rdma_cm_id *const id = new_id(w.listener_events);
    FAILS("rdma_resolve_addr", rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1), -1);
    FAILS("rdma_bind_addr", rdma_bind_addr(id, (struct sockaddr *)&address), -1);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&address), 0);
    FAILS("rdma_listen", rdma_listen(id, 1), -1);
    assert_int_equal(rdma_listen(id, 1), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_string_equal(fake_misuses(), "");
    rdma_ack_cm_event(w.event);
    assert_string_equal(fake_leaks(), "2 PD left\n1 MR left\n1 CQ left\n1 channel left\n"
                                      "1 QP left\n1 SRQ left\n3 CM id left\n"
                                      "2 event channel left\n");
}

#define CHANGES_ERRNO(is_changed, call)                   \
    do {                                                  \
        errno = 0;                                        \
        call;                                             \
        assert_int_equal(errno, is_changed ? EXFULL : 0); \
    } while (0)

// record.c, change_errno(): calls of the data path and those that wait leave errno as it was.
static void successful_call_changes_errno_unless_it_posts_or_waits(void **unused) {
    (void)unused;
    struct ibv_recv_wr receive = {0}, *bad;
    struct ibv_wc wc;
    struct ibv_cq *cq;
    void *context;
    create_all();
    CHANGES_ERRNO(true, ibv_dealloc_pd(ibv_alloc_pd(w.context)));
    CHANGES_ERRNO(true, ibv_reg_mr(w.pd, memory, sizeof(memory), 0));
    CHANGES_ERRNO(true, rdma_connect(w.id, &param));
    CHANGES_ERRNO(true, rdma_reject(w.child, NULL, 0));
    CHANGES_ERRNO(true, new_id(w.events));
    CHANGES_ERRNO(true, rdma_ack_cm_event(w.event));
    CHANGES_ERRNO(false, ibv_req_notify_cq(w.cq, 0));
    CHANGES_ERRNO(false, ibv_poll_cq(w.cq, 1, &wc));
    CHANGES_ERRNO(false, ibv_post_recv(w.qp, &receive, &bad));
    fake_notify(w.cq);
    CHANGES_ERRNO(false, ibv_get_cq_event(w.channel, &cq, &context));
    CHANGES_ERRNO(false, ibv_ack_cq_events(w.cq, 1));
    fake_cm_event(w.events->fd, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    CHANGES_ERRNO(false, w.event = next_event(w.events));
}

static void misused_queue_is_reported(void **unused) {
    (void)unused;
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    struct ibv_cq *cq;
    void *context;
    REPORTS("ibv_ack_cq_events: 1 of 0\n", ibv_ack_cq_events(w.cq, 1));
    REPORTS("fake_complete: the test overflows the CQ\n", fake_complete(w.cq, &wc),
            fake_complete(w.cq, &wc), fake_complete(w.cq, &wc), fake_complete(w.cq, &wc));
    REPORTS("ibv_destroy_cq: 1 events are not acknowledged, it would block for ever\n",
            ibv_req_notify_cq(w.cq, 0), fake_complete(w.cq, &wc),
            ibv_get_cq_event(w.channel, &cq, &context), rdma_destroy_qp(w.id),
            ibv_destroy_cq(w.cq));
    assert_ptr_equal(context, &w);
    // as send and as receive CQ
    REPORTS("ibv_destroy_cq: 2 objects still use the CQ\n",
            assert_int_equal(ibv_destroy_cq(w.cq), EBUSY));
    REPORTS("ibv_destroy_comp_channel: 1 objects still use the channel\n",
            assert_int_equal(ibv_destroy_comp_channel(w.channel), EBUSY));
    REPORTS("ibv_modify_srq: changes more than the limit\n",
            ibv_modify_srq(w.srq, &(struct ibv_srq_attr){2, 1, 0}, IBV_SRQ_MAX_WR));
    REPORTS("ibv_modify_qp: changes other than the RNR timer\n",
            ibv_modify_qp(w.qp, &(struct ibv_qp_attr){0}, IBV_QP_STATE));
}

static void deleted_queue_has_no_events(void **unused) {
    (void)unused;
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    struct ibv_cq *cq;
    void *context;
    create_all();
    rdma_destroy_qp(w.id);
    ibv_req_notify_cq(w.cq, 0);
    fake_complete(w.cq, &wc);
    assert_int_equal(ibv_destroy_cq(w.cq), 0);
    fcntl(w.channel->fd, F_SETFL, fcntl(w.channel->fd, F_GETFL) | O_NONBLOCK);
    assert_int_equal(ibv_get_cq_event(w.channel, &cq, &context), -1);
    assert_int_equal(errno, EAGAIN);
}

static void device_results_are_those_of_rxe_or_scripted(void **unused) {
    (void)unused;
    struct ibv_wc wc;
    create_all();
    fake_fail("ibv_poll_cq", 1, EIO);
    assert_int_equal(ibv_poll_cq(w.cq, 1, &wc), -2); // CQ_POLL_ERR of mlx5
    assert_int_equal(ibv_poll_cq(w.cq, 1, &wc), 0);
    char bytes[FAKE_MAX_INLINE] = {[FAKE_MAX_INLINE - 1] = 1};
    struct ibv_sge sge = {(uintptr_t)bytes, sizeof(bytes), 0};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE},
                       *bad;
    (void)ibv_post_send(w.qp, &wr, &bad);
    const struct fake_post *const post = &fake_last("ibv_post_send")->send;
    assert_int_equal(post->inlined_bytes, sizeof(bytes));
    assert_memory_equal(post->inlined, bytes, sizeof(bytes));
    assert_int_equal(post->sg_list.sges[0].length, sizeof(bytes));
    assert_null(fake_posted(fake_posted_count()));
    assert_false(fake_addr_is(NULL, 0));
    assert_string_equal(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
    struct rdma_addrinfo *list, hints = {.ai_flags = RAI_PASSIVE};
    fake_device()->routes = 2; // for connecting only
    assert_int_equal(rdma_getaddrinfo("", NULL, &hints, &list), 0);
    assert_null(list->ai_next);
    fcntl(w.context->async_fd, F_SETFL, fcntl(w.context->async_fd, F_GETFL) | O_NONBLOCK);
    fake_reset();
    assert_int_equal(fcntl(w.context->async_fd, F_GETFL) & O_NONBLOCK, 0);
}

static void full_queue_is_refused_at_its_rounded_size(void **unused) {
    (void)unused;
    create_all();
    assert_int_equal(rdma_connect(w.id, &param), 0);
    fake_cm_event(w.events->fd, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    rdma_ack_cm_event(next_event(w.events));
    struct ibv_send_wr sends[8] = {{0}}, *bad_send = NULL;
    struct ibv_recv_wr receives[8] = {{0}}, *bad_receive = NULL;
    for (int i = 0; i < 7; i++) {
        sends[i].next = &sends[i + 1];
        receives[i].next = &receives[i + 1];
    }
    assert_int_equal(ibv_post_send(w.qp, sends, &bad_send), ENOMEM);
    assert_ptr_equal(bad_send, &sends[7]); // rxe rounds up its queues to 2^n - 1
    assert_int_equal(ibv_post_recv(w.qp, receives, &bad_receive), ENOMEM);
    assert_ptr_equal(bad_receive, &receives[7]);
    assert_int_equal(fake_posted_count(), 7);
    assert_int_equal(fake_received_count(), 7);
}

static void misused_object_or_event_is_reported(void **unused) {
    (void)unused;
    struct ibv_sge sges[2] = {{0}};
    struct ibv_async_event event;
    REPORTS("", assert_int_equal(ibv_dealloc_pd(w.pd), EBUSY)); // an error, no mistake
    REPORTS("ibv_dealloc_pd: the PD was released before\n", ibv_dealloc_pd(w.other_pd),
            assert_int_equal(ibv_dealloc_pd(w.other_pd), EINVAL));
    create_all();
    assert_int_equal(ibv_dereg_mr((struct ibv_mr *)memory), EINVAL);
    assert_non_null(strstr(fake_misuses(), " is no MR\n"));
    create_all();
    assert_int_equal(rdma_destroy_id((struct rdma_cm_id *)memory), -1);
    assert_non_null(strstr(fake_misuses(), " is no CM id\n"));
    REPORTS("ibv_reg_mr: the IOVA differs from the address\n",
            ibv_reg_mr_iova2(w.pd, memory, 1, 1, 0));
    REPORTS("ibv_advise_mr: 2 ranges\n",
            ibv_advise_mr(w.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sges, 2));
    REPORTS("rdma_destroy_qp: 1 events of the device are not acknowledged, it would block for "
            "ever\n",
            fake_async_event(w.context, IBV_EVENT_QP_FATAL, w.qp, 0),
            ibv_get_async_event(w.context, &event), rdma_destroy_qp(w.id));
    REPORTS("ibv_ack_async_event: more acknowledgements than events\n",
            fake_async_event(w.context, IBV_EVENT_QP_FATAL, w.qp, 0),
            ibv_get_async_event(w.context, &event), ibv_ack_async_event(&event),
            ibv_ack_async_event(&event));
}

static void call_in_the_wrong_state_of_an_id_is_reported(void **unused) {
    (void)unused;
    struct rdma_cm_id *id;
    struct rdma_addrinfo *list,
        hints = {.ai_family = AF_INET6, .ai_dst_addr = (struct sockaddr *)&address};
    REPORTS("rdma_create_id: port space 273\n",
            assert_int_equal(rdma_create_id(w.events, &id, NULL, RDMA_PS_UDP), 0));
    REPORTS("rdma_getaddrinfo: family 10, and a destination of family 2\n",
            rdma_getaddrinfo(NULL, NULL, &hints, &list));
    REPORTS("rdma_resolve_route: before the address\n", rdma_resolve_route(new_id(NULL), 1));
    REPORTS("rdma_connect: no QP\n", rdma_destroy_qp(w.id), rdma_connect(w.id, &param));
    REPORTS("rdma_connect: blocks on a synchronous CM ID\nrdma_connect: no QP\n",
            rdma_connect(resolved_id(NULL), &param));
    REPORTS("rdma_connect: on an incoming request\n",
            assert_int_equal(rdma_connect(w.child, &param), -1));
    REPORTS("rdma_accept: not a pending incoming request\n",
            assert_int_equal(rdma_accept(w.id, &param), -1));
    REPORTS("rdma_reject: not a pending incoming request\n",
            assert_int_equal(rdma_reject(w.id, NULL, 0), -1));
    REPORTS("rdma_disconnect: no QP\n", rdma_destroy_qp(w.id), rdma_disconnect(w.id));
    REPORTS("rdma_destroy_id: the ID still has a QP\n", rdma_destroy_id(w.id));
    REPORTS("rdma_destroy_id: 1 events are not acknowledged, it would block for ever\n",
            rdma_reject(w.child, NULL, 0), rdma_destroy_id(w.listener));
    REPORTS("rdma_destroy_id: an incoming request was neither accepted nor rejected\n",
            rdma_destroy_id(w.child));
    REPORTS("rdma_destroy_event_channel: 1 objects still use the event channel\n",
            rdma_destroy_event_channel(w.events));
}

static void impossible_event_of_a_test_is_reported(void **unused) {
    (void)unused;
    REPORTS("fake_cm_event: an incoming request has no events until it is accepted\n",
            fake_cm_event(w.listener_events->fd, RDMA_CM_EVENT_ESTABLISHED, NULL, 0));
    REPORTS("fake_cm_event: 57 bytes of private data do not fit\n",
            fake_cm_event(w.events->fd, RDMA_CM_EVENT_CONNECT_REQUEST, memory, 57));
    REPORTS("fake_cm_event: no CM ID on that descriptor\n",
            fake_cm_event(w.channel->fd, RDMA_CM_EVENT_ESTABLISHED, NULL, 0));
}

static void leaked_objects_are_listed_until_their_deletion(void **unused) {
    (void)unused;
    create_all();
    assert_string_equal(fake_leaks(), "2 PD left\n1 MR left\n1 CQ left\n1 channel left\n"
                                      "1 QP left\n1 SRQ left\n3 CM id left\n"
                                      "2 event channel left\n1 unacknowledged CM event left\n");
    rdma_destroy_qp(w.id);
    fake_fail("ibv_destroy_srq", 1, EBUSY); // the caller cannot delete it any more
    assert_int_equal(ibv_destroy_srq(w.srq), EBUSY);
    assert_null(strstr(fake_leaks(), "QP"));
    assert_null(strstr(fake_leaks(), "SRQ"));
    fake_reset();
    assert_string_equal(fake_leaks(), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_without_its_region_is_reported),
        cmocka_unit_test(builder_call_out_of_order_is_reported),
        cmocka_unit_test(call_of_a_builder_for_another_queue_pair_is_reported),
        cmocka_unit_test(failed_call_has_no_effect),
        cmocka_unit_test(successful_call_changes_errno_unless_it_posts_or_waits),
        cmocka_unit_test(misused_queue_is_reported),
        cmocka_unit_test(deleted_queue_has_no_events),
        cmocka_unit_test(device_results_are_those_of_rxe_or_scripted),
        cmocka_unit_test(full_queue_is_refused_at_its_rounded_size),
        cmocka_unit_test(misused_object_or_event_is_reported),
        cmocka_unit_test(call_in_the_wrong_state_of_an_id_is_reported),
        cmocka_unit_test(impossible_event_of_a_test_is_reported),
        cmocka_unit_test(leaked_objects_are_listed_until_their_deletion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
