// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fakes_check.c -- the fakes themselves: each misuse and what they say of it, what they refuse
// as a provider does, what they find left. No rule of the fakes is without a row here.

#include "fakes_stand.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

static char said[16384]; // by all rows so far

static void check(const char *what, int ret, int answer, const char *says) {
    char pattern[256];
    snprintf(pattern, sizeof(pattern), *says ? "%s\n" : "%s", says);
    if (ret != answer || fnmatch(pattern, fake_misuses(), 0) != 0)
        fail_msg("%s = %d (expected: %d), the fakes say \"%s\" (expected: \"%s\")", what, ret,
                 answer, fake_misuses(), says);
    strcat(said, fake_misuses());
}

// One row: in a new stand, the expression has that value and the fakes say that of it.
#define ROW(answer, says, ...) \
    (stand_up(), fake_forget(), check(#__VA_ARGS__, (__VA_ARGS__), answer, says))
#define RIGHT(...) ROW(0, "", __VA_ARGS__)
#define CHECKS(name) static void name(__attribute__((unused)) void **state)

static unsigned descriptors_before;

CHECKS(objects) {
    void *block;
    RIGHT(FAKE_HOOK(munmap)(map(), 8192));
    ROW(EXFULL, "", (errno = 0, ibv_alloc_pd(s.context), errno)); // a success disturbs it
    ROW(0, "", (errno = 0, send_many(1), errno));                 // but not on the data path
    RIGHT((FAKE_HOOK(free)(FAKE_HOOK(malloc)(24)), 0));
    RIGHT(ibv_dereg_mr(s.other) || ibv_dealloc_pd(s.other_pd));
    ROW(EINVAL, "ibv_dereg_mr: the MR was released before",
        (ibv_dereg_mr(s.mr), ibv_dereg_mr(s.mr)));
    ROW(EINVAL, "ibv_dereg_mr: 0x* is no MR", ibv_dereg_mr((struct ibv_mr *)&s));
    ROW(EINVAL, "ibv_destroy_cq: the CQ was released before", ibv_destroy_cq(gone_cq()));
    ROW(EINVAL, "ibv_destroy_srq: the SRQ was released before", ibv_destroy_srq(gone_srq()));
    ROW(EINVAL, "ibv_post_srq_recv: the SRQ was released before",
        (gone_srq(), receive(s.mr, true)));
    ROW(EINVAL, "ibv_post_send: the QP was released before",
        (rdma_destroy_qp(s.id), send_many(1)));
    ROW(0, "free: the allocation was released before",
        (block = FAKE_HOOK(malloc)(24), FAKE_HOOK(free)(block), FAKE_HOOK(free)(block), 0));
    ROW(0, "munmap: 4096 bytes of 8192", FAKE_HOOK(munmap)(map(), 4096));
    ROW(EBUSY, "ibv_destroy_cq: 2 objects still use the CQ", ibv_destroy_cq(s.cq));
    ROW(EBUSY, "ibv_destroy_comp_channel: 2 objects still use the channel",
        ibv_destroy_comp_channel(s.channel));
    ROW(EBUSY, "", ibv_dealloc_pd(s.pd));
    ROW(0, "rdma_destroy_event_channel: 1 objects still use the event channel",
        (rdma_destroy_event_channel(s.others), 0));
    ROW(0, "ibv_create_comp_channel: no descriptor left",
        (descriptors(1), ibv_create_comp_channel(s.context), descriptors(0)));
    ROW(0, "rdma_create_event_channel: no descriptor left",
        (descriptors(1), rdma_create_event_channel(), descriptors(0)));
    ROW(0, "ibv_reg_mr: the address is not kept",
        ibv_reg_mr_iova2(s.pd, memory, 8, 4096, 0) == NULL);
}

#define GONE(answer, says, call) ROW(answer, says " was released before", call)

CHECKS(gone_objects) {
    struct ibv_device **list;
    void *unused;
    GONE(-1, "rdma_bind_addr: the CM id", rdma_bind_addr(gone(), addr));
    GONE(-1, "rdma_resolve_addr: the CM id", rdma_resolve_addr(gone(), NULL, addr, 1));
    GONE(-1, "rdma_resolve_route: the CM id", rdma_resolve_route(gone(), 1));
    GONE(-1, "rdma_set_option: the CM id", set_option(gone(), RDMA_OPTION_ID_TOS, 1));
    GONE(-1, "rdma_listen: the CM id", rdma_listen(gone(), 1));
    GONE(-1, "rdma_create_qp_ex: the CM id", create_on(gone(), s.pd, s.cq));
    GONE(0, "rdma_destroy_qp: the CM id", (rdma_destroy_qp(gone()), 0));
    GONE(-1, "rdma_connect: the CM id", rdma_connect(gone(), &param));
    GONE(-1, "rdma_accept: the CM id", rdma_accept(gone(), &param));
    GONE(-1, "rdma_reject: the CM id", rdma_reject(gone(), NULL, 0));
    GONE(-1, "rdma_disconnect: the CM id", rdma_disconnect(gone()));
    GONE(-1, "rdma_destroy_id: the CM id", rdma_destroy_id(gone()));
    GONE(-1, "rdma_migrate_id: the CM id", rdma_migrate_id(gone(), s.events));
    GONE(0, "rdma_migrate_id: the event channel", rdma_migrate_id(s.listener, gone_channel()));
    GONE(0, "rdma_create_id: the event channel",
         rdma_create_id(gone_channel(), &s.idle, NULL, RDMA_PS_TCP));
    GONE(0, "rdma_destroy_event_channel: the event channel",
         (rdma_destroy_event_channel(gone_channel()), 0));
    GONE(-1, "rdma_get_cm_event: the event channel",
         rdma_get_cm_event(gone_channel(), &s.event));
    GONE(0, "rdma_freeaddrinfo: the address list",
         (look_up(AF_INET), rdma_freeaddrinfo(looked_up), rdma_freeaddrinfo(looked_up), 0));
    GONE(-1, "ibv_get_cq_event: the channel",
         ibv_get_cq_event(gone_comp_channel(), &s.cq, &unused));
    GONE(1, "ibv_create_cq: the channel",
         !ibv_create_cq(s.context, 1, NULL, gone_comp_channel(), 0));
    GONE(0, "ibv_free_device_list: the device list",
         (list = ibv_get_device_list(NULL), ibv_free_device_list(list),
          ibv_free_device_list(list), 0));
    GONE(EINVAL, "ibv_req_notify_cq: the CQ", ibv_req_notify_cq(gone_cq(), 0));
    GONE(0, "ibv_ack_cq_events: the CQ", (ibv_ack_cq_events(gone_cq(), 0), 0));
    GONE(EINVAL, "ibv_modify_cq: the CQ", (s.cq = gone_cq(), moderate(1)));
    GONE(EINVAL, "ibv_modify_srq: the SRQ", (gone_srq(), set_limit(0, IBV_SRQ_LIMIT)));
    GONE(EINVAL, "ibv_post_recv: the QP", (rdma_destroy_qp(s.id), receive(s.mr, false)));
    GONE(1, "ibv_qp_to_qp_ex: the QP", (rdma_destroy_qp(s.id), !ibv_qp_to_qp_ex(s.qp)));
    GONE(EINVAL, "ibv_dealloc_pd: the PD", ibv_dealloc_pd(gone_pd()));
    GONE(1, "ibv_reg_mr: the PD", !ibv_reg_mr(gone_pd(), memory, 8, 0));
    GONE(1, "ibv_create_srq: the PD",
         !ibv_create_srq(gone_pd(), &(struct ibv_srq_init_attr){.attr = {1, 1}}));
    GONE(-1, "rdma_create_qp_ex: the PD", create_on(s.idle, gone_pd(), s.cq));
    GONE(-1, "rdma_create_qp_ex: the CQ", create_on(s.idle, s.pd, gone_cq()));
    GONE(-1, "rdma_create_qp_ex: the CQ",
         (s.attr.recv_cq = gone_cq(), create_on(s.idle, s.pd, s.cq)));
    GONE(0, "rdma_create_qp_ex: the SRQ", create_sized(ONE_OF_ALL, gone_srq()));
}

// What stands in for the C library.
CHECKS(libc) {
    const struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr.s6_addr[15] = 2};
    const struct sockaddr_ib ib = {.sib_family = AF_IB, .sib_addr.sib_raw[15] = 32};
    int priority;
    ROW(1, "", allocate());
    ROW(ENOMEM, "", (fake_fail("malloc", 1, EIO), FAKE_HOOK(malloc)(1) ? 0 : errno));
    ROW(ENOMEM, "", (fake_fail("malloc", 1, EIO), FAKE_HOOK(calloc)(1, 1) ? 0 : errno));
    ROW(ENOMEM, "", (fake_fail("mmap", 1, EIO), map() != MAP_FAILED ? 0 : errno));
    ROW(8192, "", (map(), (int)fake_last("mmap")->bytes));
    ROW(-1, "munmap: 0x* is no mapping", FAKE_HOOK(munmap)(memory, 8));
    RIGHT((FAKE_HOOK(free)(NULL), 0));
    RIGHT((FAKE_HOOK(syslog)(LOG_INFO, "%s", "text"), strcmp(fake_syslog(&priority), "text")) ||
          priority != LOG_INFO);
    RIGHT((fake_syslog_forget(), *fake_syslog(&priority)) || priority != -1);
    RIGHT(syslog_fortified());
    RIGHT(format_fortified(2, "%d", 12));
    ROW(1, "", fake_addr_is((const struct sockaddr *)&in6, 1));
    ROW(1, "", fake_addr_is((const struct sockaddr *)&ib, FAKE_FIRST_ROUTE));
    ROW(0, "", fake_addr_is(NULL, 0));
    ROW(1234, "", (fake_device()->addresses = 4, find_names("name", AF_UNSPEC, 0)));
    ROW(13, "", (fake_device()->addresses = 4, find_names("name", AF_INET, 0)));
    ROW(2, "", (fake_device()->addresses = 2, find_names("name", AF_INET6, 0)));
    ROW(3, "",
        (fake_device()->addresses = 4, find_names("127.0.0.3", AF_UNSPEC, AI_NUMERICHOST)));
    ROW(EAI_NONAME, "", find_names("name", AF_UNSPEC, AI_NUMERICHOST));
    ROW(AF_INET6, "",
        (find_names("name", AF_INET6, 0), fake_last("getaddrinfo")->getaddrinfo.family));
    ROW(EAI_ADDRFAMILY, "", find_names("name", AF_INET6, 0));
    RIGHT((find_names("name", AF_INET6, 0), strstr(fake_left(), "list of names") != NULL));
    ROW(EAI_FAMILY, "",
        (fake_device()->gai_error = EAI_FAMILY, find_names("name", AF_INET, 0)));
    ROW(1, "", (fake_device()->gai_error = EAI_FAMILY, look_up_passively()));
    ROW(0, "freeaddrinfo: 0x* is no list of names",
        (FAKE_HOOK(freeaddrinfo)((struct addrinfo *)&s), 0));
    ROW(1, "", look_up_routes());
}

CHECKS(record) {
    ROW(1011, "", (fake_fail("ibv_alloc_pd", 2, EIO), allocate_pds(EIO)));
    ROW(1000, "", (fake_fail_from("ibv_alloc_pd", 2, EIO), allocate_pds(EIO)));
    ROW(1001, "",
        (fake_fail("ibv_alloc_pd", 2, EIO), fake_fail(NULL, 3, EIO), allocate_pds(EIO)));
    ROW(1111, "", (fake_fail("ibv_reg_mr", 1, EIO), allocate_pds(0)));
    ROW(3, "", (fake_fail_from(NULL, 2, EIO), allocate_pds(EIO), (int)fake_faults_fired()));
    RIGHT((fake_fail(NULL, 1, EIO), fake_fail("ibv_reg_mr", 1, EIO), allocate_pds(EIO),
           strcmp(fake_first_fault(), "ibv_alloc_pd")));
    ROW(ERANGE, "",
        (fake_fail("ibv_alloc_pd", 1, 0), errno = ERANGE, ibv_alloc_pd(s.context), errno));
    ROW(0, "", (errno = 0, build_many(1), errno));
    RIGHT((fake_fail("ibv_alloc_pd", 1, EIO), fake_faults_off(), !ibv_alloc_pd(s.context)));
    RIGHT((allocate_pds(0), ibv_reg_mr(s.pd, memory, 8, 0),
           strcmp(fake_calls(),
                  "ibv_alloc_pd ibv_alloc_pd ibv_alloc_pd ibv_alloc_pd ibv_reg_mr")));
    RIGHT((ibv_reg_mr(s.pd, memory, 8, 0), fake_forget(), ibv_reg_mr(s.pd, memory, 4, 0),
           fake_last("ibv_reg_mr")->failed || fake_last("ibv_reg_mr")->object != s.pd ||
               fake_nth("ibv_reg_mr", 2) || fake_last("ibv_alloc_pd")));
    // The record has room for this many, and begins anew behind them.
    ROW(MOST_RECORDED, "", arm_often(MOST_RECORDED));
    ROW(1, "", arm_often(MOST_RECORDED + 1));
    ROW(MOST_RECORDED, "",
        (fake_quiet(true), send_many(MOST_RECORDED), (int)fake_posted_count()));
    ROW(1, "", (fake_quiet(true), send_many(MOST_RECORDED + 1), (int)fake_posted_count()));
    ROW(1, "",
        (fake_quiet(true), (void)REPEATED(MOST_RECORDED + 1, receive(s.mr, true)),
         (int)fake_received_count()));
    RIGHT(fake_lkey(&s) + fake_rkey(&s)); // there is no region
    RIGHT((send_many(1), !fake_posted(0) || fake_posted(1)));
    RIGHT((receive(s.mr, true), !fake_received(0) || fake_received(1)));
    RIGHT((receive(s.mr, false), memcmp(fake_received(0), &fake_last("ibv_post_recv")->recv,
                                        sizeof(struct fake_receive))));
    ROW(0, "", // an event of the devices is waited for in every test
        (fcntl(s.context->async_fd, F_SETFL, O_NONBLOCK), fake_reset(),
         fcntl(s.context->async_fd, F_GETFL) & O_NONBLOCK));
}

CHECKS(connections) {
    RIGHT(rdma_reject(request(), NULL, 0));
    RIGHT(create_on(s.idle, s.pd, s.cq) || rdma_connect(s.idle, &param));
    RIGHT(look_up(AF_INET));
    RIGHT(look_up_passively());
    ROW(1, "", (address.sin_addr.s_addr = htonl(0x7f000003), fake_addr_is(addr, 2)));
    address.sin_addr.s_addr = 0;
    ROW(0, "rdma_create_id: port space *", rdma_create_id(NULL, &s.id, NULL, RDMA_PS_UDP));
    ROW(-1, "rdma_resolve_route: before the address", rdma_resolve_route(s.listener, 1));
    ROW(0, "rdma_connect: no QP", rdma_connect(s.idle, &param));
    ROW(0, "rdma_connect: blocks on a synchronous CM ID",
        (s.idle = routed(NULL), create_on(s.idle, s.pd, s.cq), rdma_connect(s.idle, &param)));
    ROW(-1, "rdma_connect: on an incoming request", rdma_connect(request(), &param));
    ROW(-1, "rdma_accept: not an unanswered incoming request", rdma_accept(s.id, &param));
    ROW(-1, "rdma_reject: not an unanswered incoming request", rdma_reject(s.id, NULL, 0));
    ROW(-1, "rdma_disconnect: no QP", rdma_disconnect(s.idle));
    ROW(0, "rdma_destroy_id: its QP is still there", rdma_destroy_id(s.id));
    ROW(0, "rdma_destroy_id: an incoming request was neither accepted nor rejected",
        rdma_destroy_id(request()));
    ROW(0, "rdma_destroy_id: 1 events are not acknowledged, it would block for ever",
        take_event(s.others, RDMA_CM_EVENT_DEVICE_REMOVAL) || rdma_destroy_id(s.listener));
    ROW(0, "rdma_migrate_id: 1 events are not acknowledged, it would block for ever",
        take_event(s.others, RDMA_CM_EVENT_DEVICE_REMOVAL) ||
            rdma_migrate_id(s.listener, s.events));
    ROW(-1, "rdma_ack_cm_event: the unacknowledged CM event was released before",
        (request(), rdma_ack_cm_event(s.event)));
    ROW(0, "rdma_getaddrinfo: family *, and a destination of family *", look_up(AF_INET6));
    ROW(0, "fake_cm_event: no CM ID on that descriptor",
        (fake_cm_event(0, RDMA_CM_EVENT_REJECTED, NULL, 0), 0));
    ROW(0, "fake_cm_event: 200 bytes of private data do not fit",
        (fake_cm_event(s.events->fd, RDMA_CM_EVENT_ESTABLISHED, memory, 200), 0));
    ROW(0, "fake_cm_event: an incoming request has no events until it is accepted",
        (request(), fake_cm_event(s.others->fd, RDMA_CM_EVENT_REJECTED, NULL, 0), 0));
    ROW(-1, "", create_on(s.idle, s.pd, foreign_cq()));
    ROW(-1, "", (s.attr.recv_cq = foreign_cq(), create_on(s.idle, s.pd, s.cq)));
    ROW(-1, "", create_sized(ONE_OF_ALL, foreign_srq()));
    ROW(-1, "", create_on(s.idle, ibv_alloc_pd(fake_context(1)), s.cq));
    ROW(EINVAL, "", // until it is connected, a queue pair takes receives alone
        (create_on(s.idle, s.pd, s.cq), s.qp = s.idle->qp, send_many(1)));
}

// Events go to where their ID is, with what was sent.
CHECKS(events_of_connections) {
    struct rdma_cm_id *id;
    ROW(1, "",
        (happen_on(s.others), rdma_migrate_id(s.listener, s.events)) ||
                fake_pending_on(s.others->fd)
            ? -1
            : (int)fake_pending_on(s.events->fd));
    ROW(1, "",
        (happen_on(s.events), id = unbound(), happen_on(s.events), rdma_destroy_id(id))
            ? -1
            : (int)fake_pending_on(s.events->fd));
    RIGHT((happen_on(s.others), happen_on(s.others), rdma_destroy_id(s.listener)) ||
          poll(&(struct pollfd){.fd = s.others->fd, .events = POLLIN}, 1, 0));
    ROW(0, "", (int)fake_pending_on(-1));
    RIGHT((happen_on(s.events), strstr(fake_left(), "CM event") != NULL)); // nobody has it
    ROW(2, "", (int)fake_ids_on(s.events->fd));
    // A synchronous ID has a channel of its own, which goes with it.
    RIGHT((id = routed(NULL), strstr(fake_left(), "3 event channel") != NULL) ||
          rdma_destroy_id(id) || unit_descriptors() != descriptors_before + 3);
    RIGHT((id = routed(NULL), rdma_migrate_id(id, s.events)) ||
          unit_descriptors() != descriptors_before + 3);
    RIGHT(s.context != fake_context(0) || s.qp->state != IBV_QPS_RTS);
    RIGHT(rdma_disconnect(s.id) || take_event(s.events, RDMA_CM_EVENT_ESTABLISHED) ||
          s.qp->state != IBV_QPS_ERR);
    RIGHT(strcmp(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT") ||
          strcmp(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT + 1), "UNKNOWN EVENT"));
    ROW(0, "", (int)fake_ids_on(-1));
    RIGHT(take_event(s.others, RDMA_CM_EVENT_CONNECT_REQUEST) ||
          s.event->listen_id != s.listener || s.event->id->verbs != s.context ||
          !fake_addr_is((struct sockaddr *)&s.event->id->route.addr.dst_storage, 0));
    ROW(1, "", (fake_device()->other_device = 1, request()->verbs == fake_context(1)));
    RIGHT(take_event(s.events, RDMA_CM_EVENT_CONNECT_REQUEST) || s.event->id != s.id);
    RIGHT(tell(RDMA_CM_EVENT_REJECTED, 7, 5) || s.event->status != 7 ||
          memcmp(s.event->param.conn.private_data, "hello\0", 7) ||
          s.event->param.conn.private_data_len != 148);
    RIGHT(
        (fake_device()->transport = IBV_TRANSPORT_IWARP, tell(RDMA_CM_EVENT_REJECTED, 0, 5)) ||
        s.event->param.conn.private_data_len != 5);
    RIGHT(tell(RDMA_CM_EVENT_DISCONNECTED, 0, 5) || s.event->param.conn.private_data);
    RIGHT((id = request(), create_on(id, s.pd, s.cq)) || rdma_accept(id, &param) ||
          length_of(s.others, RDMA_CM_EVENT_ESTABLISHED) || rdma_ack_cm_event(s.event) ||
          rdma_disconnect(id));
    RIGHT((id = request(), create_on(id, s.pd, s.cq)) ||
          (fake_fail("rdma_accept", 1, EIO), !rdma_accept(id, &param)) ||
          id->qp->state != IBV_QPS_INIT);
    RIGHT(resolve_failing("address event", RDMA_CM_EVENT_ADDR_ERROR) ||
          resolve_failing("route event", RDMA_CM_EVENT_ROUTE_ERROR));
    ROW(0, "",
        (fake_device()->silent = true, rdma_resolve_addr(unbound(), NULL, addr, 1),
         (int)fake_pending_on(s.events->fd)));
    RIGHT((request(), is_readable(s.event))); // it is acknowledged
    // An acknowledgement that failed counts, and the event is not the library's any more.
    RIGHT(take_event(s.others, RDMA_CM_EVENT_DEVICE_REMOVAL) ||
          (fake_fail("rdma_ack_cm_event", 1, EIO), !rdma_ack_cm_event(s.event)) ||
          strstr(fake_left(), "unacknowledged CM event") || rdma_ack_cm_event(s.event) ||
          rdma_destroy_id(s.listener));
}

// The states of an ID, and the sizes of its messages.
CHECKS(refusals_of_connections) {
    struct rdma_cm_id *id;
    struct rdma_conn_param data;
    RIGHT((create_on(s.idle, s.pd, s.cq), data = sending(56), rdma_connect(s.idle, &data)));
    ROW(-1, "",
        (create_on(s.idle, s.pd, s.cq), data = sending(57), rdma_connect(s.idle, &data)));
    ROW(-1, "", rdma_connect(s.id, &param)); // it is connected
    ROW(-1, "", (id = request(), data = sending(197), rdma_accept(id, &data)));
    RIGHT(rdma_reject(request(), sending(148).private_data, 148));
    ROW(-1, "", rdma_reject(request(), sending(149).private_data, 149));
    ROW(0, "",
        (id = request(), rdma_reject(id, sending(149).private_data, 149),
         rdma_reject(id, NULL, 0)));
    ROW(-1, "rdma_reject: not an unanswered incoming request",
        (id = request(), rdma_reject(id, NULL, 0), rdma_reject(id, NULL, 0)));
    RIGHT(reject_twice(EINVAL, 1)); // Linux refuses data first
    ROW(-1, "rdma_reject: not an unanswered incoming request", reject_twice(EINVAL, 0));
    ROW(-1, "rdma_reject: not an unanswered incoming request", reject_twice(EIO, 1));
    RIGHT((id = request(), create_on(id, s.pd, s.cq)) || id->qp->state != IBV_QPS_INIT ||
          rdma_accept(id, &param) || id->qp->state != IBV_QPS_RTS);
    ROW(0, "", // iWARP sends whatever there is
        (fake_device()->transport = IBV_TRANSPORT_IWARP, create_on(s.idle, s.pd, s.cq),
         data = sending(255), rdma_connect(s.idle, &data)));
    ROW(56, "", length_of(s.others, RDMA_CM_EVENT_CONNECT_REQUEST));
    ROW(196, "", length_of(s.events, RDMA_CM_EVENT_ESTABLISHED));
    ROW(148, "", length_of(s.events, RDMA_CM_EVENT_REJECTED));
    ROW(0, "", length_of(s.events, RDMA_CM_EVENT_DISCONNECTED));
    RIGHT(rdma_disconnect(s.id) || s.qp->state != IBV_QPS_ERR);
    ROW(-1, "", (create_on(s.idle, s.pd, s.cq), rdma_disconnect(s.idle)));
    ROW(-1, "",
        (rdma_resolve_addr(id = unbound(), NULL, addr, 1),
         rdma_resolve_addr(id, NULL, addr, 1)));
    ROW(-1, "", rdma_resolve_route(s.idle, 1));
    ROW(-1, "",
        (rdma_resolve_addr(id = unbound(), NULL, addr, 1), told(s.events),
         rdma_resolve_route(id, 1), rdma_resolve_route(id, 1)));
    ROW(1, "", bind_in6(id = unbound()) == 0 && id->verbs == s.context);
    ROW(-1, "", set_option(s.idle, RDMA_OPTION_ID_TOS, 0));
    RIGHT(set_option(s.idle, RDMA_OPTION_ID_AFONLY, sizeof(int)));
    ROW(-1, "", set_option(s.idle, RDMA_OPTION_ID_AFONLY, 1));
    ROW(-1, "", set_option(s.listener, RDMA_OPTION_ID_AFONLY, sizeof(int)));
    ROW(0, "", rdma_migrate_id(s.listener, s.events) || fake_ids_on(s.others->fd));
}

// What a device refuses, and takes, at its limits.
CHECKS(limits) {
    const uint32_t wr = 1 << 20, sge = FAKE_MAX_SGE;
    RIGHT(create_sized((struct ibv_qp_cap){wr, wr, sge, sge, FAKE_MAX_INLINE}, NULL));
    ROW(-1, "", create_sized((struct ibv_qp_cap){1, 1, 1, 1, FAKE_MAX_INLINE + 1}, NULL));
    RIGHT(create_sized((struct ibv_qp_cap){1, wr + 1, 1, sge + 1, 0}, s.srq) ||
          s.attr.cap.max_recv_wr != wr + 1);
    ROW(48, "",
        (create_sized((struct ibv_qp_cap){1, 1, 3, 1, 8}, NULL),
         (int)s.attr.cap.max_inline_data));
    RIGHT(create_sized((struct ibv_qp_cap){1, 0, 1, 1, 0}, NULL) || s.attr.cap.max_recv_wr);
    ROW(1, "", ibv_create_cq(s.context, 1, NULL, s.channel, 3) != NULL);
    ROW(0, "", ibv_create_cq(s.context, 1, NULL, s.channel, 4) != NULL);
    ROW(1, "",
        ibv_create_cq(s.context, 1, &s, s.channel, 0)->cq_context == &s &&
            fake_last("ibv_create_cq")->create_cq.cq_context == &s);
    ROW(0, "", ibv_create_cq(s.context, 1, NULL, s.channel, -1) != NULL);
    ROW(1, "", ibv_create_srq(s.pd, &(struct ibv_srq_init_attr){.attr = {wr, 1}}) != NULL);
    ROW(0, "", ibv_create_srq(s.pd, &(struct ibv_srq_init_attr){.attr = {wr + 1, 1}}) != NULL);
    ROW(2 * wr - 1, "",
        (create_sized((struct ibv_qp_cap){wr, 1, 1, 1, 0}, NULL), (int)s.attr.cap.max_send_wr));
    ROW(EBUSY, "", (create_sized(ONE_OF_ALL, s.srq), ibv_destroy_srq(s.srq)));
    ROW(1, "", ibv_reg_mr(s.pd, memory, 1ULL << 32, 0)->length == 1ULL << 32);
    RIGHT(ibv_query_device(s.context, &(struct ibv_device_attr){0}));
    ROW(EIO, "",
        (fake_fail("ibv_query_device", 1, EIO),
         ibv_query_device(s.context, &(struct ibv_device_attr){0})));
    RIGHT(moderate(0xfff));
    ROW(EINVAL, "", moderate(0x1000));
    RIGHT(SEND(IBV_WR_ATOMIC_FETCH_AND_ADD, s.mr, 0, 8, 1, 0, 8));
    ROW(EINVAL, "", SEND(IBV_WR_ATOMIC_FETCH_AND_ADD, s.mr, 0, 8, 1, 0, 4));
    ROW(EINVAL, "", SEND(IBV_WR_ATOMIC_FETCH_AND_ADD, s.mr, 0, 8, 2, 0, 8));
    ROW(EINVAL, "", SEND(IBV_WR_ATOMIC_FETCH_AND_ADD, s.mr, 0, 7, 1, 0, 8));
}

CHECKS(completions) {
    struct ibv_wc wc;
    RIGHT(complete_small(1) || ibv_poll_cq(s.small, 2, &wc) != 1 || complete_small(1));
    ROW(-2, "ibv_poll_cq: the CQ was released before", ibv_poll_cq(gone_cq(), 1, &wc));
    RIGHT(ibv_req_notify_cq(s.cq, 0) || complete_small(1));
    RIGHT(fake_cq_on(s.channel->fd, 0) != s.cq || fake_cq_on(s.channel->fd, 1) != s.small ||
          fake_cq_on(s.channel->fd, 2));
    RIGHT(strcmp(ibv_wc_status_str(IBV_WC_SUCCESS), "success"));
    ROW(0, "fake_complete: the test overflows the CQ", complete_small(2));
    ROW(12345, "", poll_in_parts());
    RIGHT((fake_complete(s.cq, &(const struct ibv_wc){.status = IBV_WC_REM_ACCESS_ERR,
                                                      .qp_num = s.qp->qp_num}),
           s.qp->state != IBV_QPS_ERR));
    ROW(0, "ibv_ack_cq_events: 2 of 1", (notified(s.cq), ibv_ack_cq_events(s.cq, 2), 0));
    ROW(0, "ibv_destroy_cq: 1 events are not acknowledged, it would block for ever",
        notified(s.small) || ibv_destroy_cq(s.small));
}

static struct ibv_async_event happened;

static int happen(enum ibv_event_type type, void *object) {
    fake_async_event(s.context, type, object, 1);
    return ibv_get_async_event(s.context, &happened);
}

static int happen_and_acknowledge(enum ibv_event_type type, void *object) {
    const int ret = happen(type, object);
    ibv_ack_async_event(&happened);
    return ret;
}

CHECKS(events_of_the_device) {
    RIGHT(strcmp(ibv_event_type_str(IBV_EVENT_WQ_FATAL), "event of the fakes") ||
          strcmp(ibv_event_type_str(IBV_EVENT_WQ_FATAL + 1), "unknown"));
    RIGHT(happen(IBV_EVENT_PORT_ERR, NULL) || happened.element.port_num != 1);
    RIGHT(happen_and_acknowledge(IBV_EVENT_CQ_ERR, s.small) || ibv_destroy_cq(s.small));
    RIGHT(happen_and_acknowledge(IBV_EVENT_QP_FATAL, s.qp) || (rdma_destroy_qp(s.id), 0));
    RIGHT(happen_and_acknowledge(IBV_EVENT_SRQ_ERR, s.srq) || ibv_destroy_srq(s.srq));
    // An event that was not taken goes with its object.
    RIGHT(
        (fake_async_event(s.context, IBV_EVENT_CQ_ERR, s.small, 0), ibv_destroy_cq(s.small)) ||
        happen(IBV_EVENT_PORT_ERR, NULL) || happened.event_type != IBV_EVENT_PORT_ERR);
    ROW(0, "ibv_destroy_cq: 1 events of the device are not acknowledged, it would block for *",
        happen(IBV_EVENT_CQ_ERR, s.small) || ibv_destroy_cq(s.small));
    ROW(0, "ibv_destroy_srq: 1 events of the device are not acknowledged, it would block for *",
        happen(IBV_EVENT_SRQ_LIMIT_REACHED, s.srq) || ibv_destroy_srq(s.srq));
    ROW(0, "rdma_destroy_qp: 1 events of the device are not acknowledged, it would block for *",
        happen(IBV_EVENT_QP_FATAL, s.qp) || (rdma_destroy_qp(s.id), 0));
    ROW(0, "ibv_ack_async_event: more than were taken",
        happen_and_acknowledge(IBV_EVENT_CQ_ERR, s.cq) || (ibv_ack_async_event(&happened), 0));
    RIGHT(set_limit(RECEIVES, IBV_SRQ_LIMIT) || fake_srq_limit(s.srq) != RECEIVES);
    ROW(EINVAL, "", set_limit(RECEIVES + 1, IBV_SRQ_LIMIT));
    ROW(0, "ibv_modify_srq: changes more than the limit",
        set_limit(1, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR));
}

CHECKS(requests) {
    const long end = sizeof(memory);
    struct ibv_sge sges[2] = {{0}};
    RIGHT(SEND(IBV_WR_SEND, s.constant, 0, sizeof(memory), 1));
    RIGHT(SEND(IBV_WR_RDMA_READ, s.mr, end - 1, 1, 1));
    RIGHT(SEND(IBV_WR_SEND, s.mr, end + 1, 0, 1)); // of no byte
    RIGHT(receive(s.mr, false) || receive(s.mr, true));
    ROW(0, "ibv_post_send: lkey 1 belongs to no live region", SEND(IBV_WR_SEND, NULL, 0, 8, 1));
    ROW(0, "ibv_post_send: the region of lkey * is of another domain",
        SEND(IBV_WR_SEND, s.other, 0, 8, 1));
    ROW(0, "ibv_post_recv: the region of lkey * is of another domain", receive(s.other, false));
    ROW(0, "ibv_post_send: the region of lkey * must not be written",
        SEND(IBV_WR_RDMA_READ, s.constant, 0, 8, 1));
    ROW(0, "ibv_post_srq_recv: the region of lkey * must not be written",
        receive(s.constant, true));
    ROW(0, "ibv_post_send: an element is not within the region of lkey *",
        SEND(IBV_WR_SEND, s.mr, end - 7, 8, 1));
    ROW(0, "ibv_post_send: an element is not within the region of lkey *",
        SEND(IBV_WR_SEND, s.mr, -1, 8, 1));
    ROW(0, "ibv_post_send: an element is not within the region of lkey *",
        SEND(IBV_WR_SEND, s.mr, end, 1, 1));
    ROW(0, "ibv_post_send: an element is not within the region of lkey *",
        SEND(IBV_WR_SEND, s.mr, 0, sizeof(memory) + 1, 1));
    ROW(0, "ibv_post_send: lkey 1 belongs to no live region", // with threads, too
        (fake_quiet(true), SEND(IBV_WR_SEND, NULL, 0, 8, 1)));
    RIGHT((fake_quiet(true), send_many(1) || fake_count("ibv_post_send")));
    RIGHT(send_many(SENDS));
    ROW(ENOMEM, "", send_many(SENDS + 1));
    RIGHT(send_many(SENDS) || (fake_forget(), send_many(SENDS)));
    RIGHT(build_many(SENDS));
    ROW(ENOSPC, "", build_many(SENDS + 1));
    RIGHT((build_many(SENDS + 1), build_many(1)));
    ROW(EIO, "", (fake_fail("doorbell", 1, EIO), build_many(1)));
    ROW(IBV_WR_SEND, "", (build_many(1), fake_last("ibv_wr_complete")->send.opcode));
    ROW(ENOMEM, "", REPEATED(RECEIVES + 1, receive(s.mr, false)));
    ROW(ENOMEM, "", REPEATED(RECEIVES + 1, receive(s.mr, true)));
    ROW(EINVAL, "", receive_of(2, s.mr, false));
    ROW(EINVAL, "", receive_of(2, s.mr, true));
    RIGHT(SEND(IBV_WR_RDMA_WRITE, s.mr, 0, 8, 2) ||
          SEND(IBV_WR_RDMA_WRITE, s.mr, 0, 32, 1, IBV_SEND_INLINE));
    ROW(EINVAL, "", SEND(IBV_WR_RDMA_WRITE, s.mr, 0, 8, 3));
    ROW(EINVAL, "", SEND(IBV_WR_RDMA_WRITE, s.mr, 0, 33, 1, IBV_SEND_INLINE));
    ROW(IBV_QPS_RTS, "", read_from(TARGET + 56, KEY));
    ROW(IBV_QPS_ERR, "", read_from(TARGET + 57, KEY));
    ROW(IBV_QPS_ERR, "", read_from(TARGET - 8, KEY));
    ROW(IBV_QPS_RTS, "", (fake_target_stops(0), read_from(TARGET, 8)));
    ROW(IBV_QPS_ERR, "", read_from(TARGET, 8));
    RIGHT(!s.ex->wr_rdma_read || !s.ex->wr_rdma_write_imm || !s.ex->wr_send_imm ||
          !s.ex->wr_atomic_fetch_add || !s.ex->wr_atomic_cmp_swp || !s.ex->wr_atomic_write);
    for (int opcode = 0; opcode < IBV_WR_LOCAL_INV; opcode++)
        ROW(1, "", is_built(opcode));
    ROW(1, "", is_built(FAKE_WR_ATOMIC_WRITE));
    RIGHT(build_of(2, 0) || build_of(0, 32));
    ROW(ENOSPC, "", build_of(3, 0));
    ROW(ENOSPC, "", build_of(0, 33));
    ROW(ENOSPC, "", build_of(0, FAKE_MAX_INLINE + 1)); // which is not read
    ROW(0, "ibv_wr_set_sge_list: the region of lkey * must not be written",
        (s.mr = s.constant, build_of(1, 0)));
    ROW(EIO, "",
        (fake_fail("send request", 1, EIO), build_many(2)) ?: (int)fake_posted_count());
    RIGHT((fake_fail("send request", 1, EIO), build_many(1)));
    ROW(EIO, "", (fake_fail("ibv_wr_complete", 1, EIO), build_many(1)));
    ROW(3, "", (build_many(3), (int)fake_last("ibv_wr_complete")->requests));
    ROW(3, "", (build_many(3), (int)fake_posted_count()));
    ROW(EINVAL, "",
        (create_on(s.idle, s.pd, s.cq), s.ex = ibv_qp_to_qp_ex(s.idle->qp), build_many(1)));
    ROW(1, "", // a builder that was not asked for
        (s.attr.send_ops_flags = IBV_QP_EX_WITH_SEND, create_on(s.idle, s.pd, s.cq),
         ibv_qp_to_qp_ex(s.idle->qp)->wr_rdma_read == NULL));
    ROW(IBV_QPS_RTS, "", EXECUTE(IBV_WR_RDMA_READ, s.mr, 0, 64, 1, 0, TARGET, KEY));
    ROW(IBV_QPS_ERR, "", EXECUTE(IBV_WR_RDMA_READ, s.mr, 0, 40, 2, 0, TARGET, KEY));
    ROW(IBV_QPS_RTS, "", EXECUTE(IBV_WR_RDMA_READ, s.mr, 0, 0, 1, 0, 5, 5)); // of no byte
    ROW(IBV_QPS_RTS, "", EXECUTE(IBV_WR_SEND, s.mr, 0, 8, 1));
    ROW(IBV_QPS_RTS, "", EXECUTE(IBV_WR_SEND_WITH_IMM, s.mr, 0, 8, 1));
    ROW(IBV_QPS_ERR, "ibv_post_send: lkey 1 belongs to no live region",
        EXECUTE(IBV_WR_RDMA_READ, NULL, 0, 8, 1, 0, TARGET, KEY));
    ROW(IBV_QPS_ERR, "",
        (fake_device()->any_range = true,
         EXECUTE(IBV_WR_RDMA_WRITE, s.mr, end - 4, 8, 1, 0, TARGET, KEY)));
    ROW(1, "", write_atomically(TARGET + 8));
    ROW(0, "", write_atomically(TARGET + 4));
    ROW(0, "", write_and_flush(TARGET, 2, 0)); // another range
    ROW(1, "", write_and_flush(TARGET + 0x20, 2, 0));
    ROW(1, "", write_and_flush(TARGET, 2, 1));        // the whole region
    ROW(0, "", write_and_flush(TARGET + 0x20, 1, 1)); // visible, not persistent
    ROW(0, "ibv_advise_mr: 2 ranges", ibv_advise_mr(s.pd, 0, 0, sges, 2));
    ROW(0, "ibv_wr_send: outside of ibv_wr_start()", (build_many(0), ibv_wr_send(s.ex), 0));
    ROW(0, "ibv_wr_set_sge_list: before any request",
        (ibv_wr_start(s.ex), ibv_wr_set_sge_list(s.ex, 0, sges), ibv_wr_complete(s.ex)));
    ROW(0, "ibv_wr_set_inline_data: without IBV_SEND_INLINE rxe takes it for elements",
        (ibv_wr_start(s.ex), s.ex->wr_flags = 0, ibv_wr_send(s.ex),
         ibv_wr_set_inline_data(s.ex, memory, 8), ibv_wr_complete(s.ex)));
    ROW(0, "ibv_qp_to_qp_ex: it reads behind the end of a plain queue pair",
        (fake_device()->plain_qp = true, ibv_qp_to_qp_ex(s.qp) == NULL));
}

CHECKS(left) {
    static const char *const lines[] = {
        "1 device list left\n",  "2 PD left\n",         "3 MR left\n",
        "2 CQ left\n",           "1 channel left\n",    "1 QP left\n",
        "1 SRQ left\n",          "3 CM id left\n",      "2 event channel left",
        "1 address list left\n", "1 allocation left\n", "1 unacknowledged CM event left\n",
        "1 mapping left\n",      "8216 bytes left\n",   "1 unacknowledged CQ"};
    stand_up();
    void *block = FAKE_HOOK(malloc)(24);
    (void)ibv_get_device_list(NULL);
    (void)(look_up(AF_INET) || notified(s.cq) || !map());
    (void)take_event(s.others, RDMA_CM_EVENT_DEVICE_REMOVAL);
    for (size_t i = 0; i < LENGTH(lines); i++)
        if (!strstr(fake_left(), lines[i]))
            fail_msg("no \"%s\" in\n%s", lines[i], fake_left());
    FAKE_HOOK(free)(block);
}

// The sentence of a fake_misuse() in the sources, with * for what differs from use to use.
static const char *pattern_of(const char *at) {
    static char pattern[256];
    size_t used = 0;
    pattern[used++] = '*';
    for (at = strchr(at, '"') + 1; *at != '"'; at++)
        if ((pattern[used++] = *at == '%' ? '*' : *at) == '*')
            at += strcspn(at, "sudp");
    strcpy(pattern + used, "\n*");
    return pattern;
}

CHECKS(every_rule_has_a_row) {
    static const char call[] = "fake_misuse(";
    unsigned rules = 0;
    glob_t sources;
    assert_int_equal(glob(FAKES_DIRECTORY "/*.c", 0, NULL, &sources), 0);
    for (size_t i = 0; i < sources.gl_pathc; i++) {
        static char text[65536];
        FILE *file = fopen(sources.gl_pathv[i], "r");
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
        for (const char *at = text; (at = strstr(at, call)); at += strlen(call)) {
            const char *pattern = pattern_of(at);
            if (fnmatch(pattern, said, 0) != 0)
                fail_msg("%s: no row says \"%s\"", sources.gl_pathv[i], pattern);
            rules++;
        }
    }
    globfree(&sources);
    assert_true(rules > 30);
}

static int forget(void **state) {
    (void)state;
    fake_reset();
    return unit_descriptors() != descriptors_before || *fake_calls() || *fake_left() ||
           fake_posted_count() || fake_received_count() || fake_faults_fired();
}

#define TEST_OF_FAKES(function) cmocka_unit_test_teardown(function, forget)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_OF_FAKES(objects),
        TEST_OF_FAKES(gone_objects),
        TEST_OF_FAKES(libc),
        TEST_OF_FAKES(record),
        TEST_OF_FAKES(connections),
        TEST_OF_FAKES(events_of_connections),
        TEST_OF_FAKES(refusals_of_connections),
        TEST_OF_FAKES(limits),
        TEST_OF_FAKES(completions),
        TEST_OF_FAKES(requests),
        TEST_OF_FAKES(events_of_the_device),
        TEST_OF_FAKES(left),
        TEST_OF_FAKES(every_rule_has_a_row),
    };
    fake_reset();
    descriptors_before = unit_descriptors();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
