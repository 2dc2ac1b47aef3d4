// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// conformance.c -- calls libibverbs and librdmacm, and prints a line per case: its name, a tab,
// its result. The fakes and a real device must have the same results; README.md describes the
// comparison.

#include "conformance.h"

#include <fcntl.h>

void (*conformance_deliver)(int fd, const void *data, uint8_t length);

static char memory[8192] __attribute__((aligned(4096))); // plain memory

// ---- objects, which the kernel releases at the end of the process --------------------------

struct objects {
    struct rdma_cm_id *id;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_device_attr_ex device;
    struct ibv_qp_init_attr_ex qp;
};

static struct objects create_objects(void) {
    struct objects s = {.id = bound_id()};
    s.context = s.id->verbs;
    MUST(ibv_query_device_ex(s.context, NULL, &s.device));
    must((s.pd = ibv_alloc_pd(s.context)), "ibv_alloc_pd()");
    must((s.channel = ibv_create_comp_channel(s.context)), "ibv_create_comp_channel()");
    must((s.cq = ibv_create_cq(s.context, 10, NULL, s.channel, 0)), "ibv_create_cq()");
    s.qp = (struct ibv_qp_init_attr_ex){.send_cq = s.cq,
                                        .recv_cq = s.cq,
                                        .cap = {10, 10, 1, 1, 8},
                                        .qp_type = IBV_QPT_RC,
                                        .comp_mask = IBV_QP_INIT_ATTR_PD,
                                        .pd = s.pd};
    return s;
}

// ---- librdmacm -----------------------------------------------------------------------------

static void set_option(const char *name, struct rdma_cm_id *id, int level, int option,
                       size_t length) {
    uint32_t value = 18;
    print_status(name, rdma_set_option(id, level, option, &value, length));
}

// After the resolution, an ID that is bound to a port of any address has an address.
static void test_source_port(void) {
    union address source = own, any = {.in = {.sin_family = AF_INET}};
    source.in.sin_port = any.in.sin_port = htons(7301);
    struct rdma_cm_id *id = new_id();
    print_status("source port: first", rdma_resolve_addr(id, &source.any, &own.any, 1000));
    print_value("source port: kept", id->route.addr.src_sin.sin_port == source.in.sin_port);
    print_status("source port: taken",
                 rdma_resolve_addr(new_id(), &source.any, &own.any, 1000));
    print_status("source port: of any address",
                 rdma_resolve_addr(new_id(), &any.any, &own.any, 1000));
    MUST(rdma_destroy_id(id));
    print_status("source port: free again",
                 rdma_resolve_addr(new_id(), &any.any, &own.any, 1000));
    print_status("source port: taken without an address",
                 rdma_resolve_addr(new_id(), &source.any, &own.any, 1000));
}

static void test_addresses(void) {
    enum {
        ID = RDMA_OPTION_ID,
        TOS = RDMA_OPTION_ID_TOS,
        TIMEOUT = RDMA_OPTION_ID_ACK_TIMEOUT
    };
    union address none = {.in.sin_family = AF_UNSPEC}, foreign = {.in.sin_family = AF_INET};
    union address six = {.in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT}};
    foreign.in.sin_addr.s_addr = inet_addr("192.0.2.1");
    print_status("bind: no address", rdma_bind_addr(new_id(), NULL));
    print_status("bind: no family", rdma_bind_addr(new_id(), &none.any));
    print_status("bind: the address of another host", rdma_bind_addr(new_id(), &foreign.any));
    const struct {
        const char *name;
        struct sockaddr *source, *to;
    } refused[] = {{"resolve: no destination", NULL, NULL},
                   {"resolve: destination without a family", NULL, &none.any},
                   {"resolve: source without a family", &none.any, &own.any},
                   {"resolve: source address of another host", &foreign.any, &own.any},
                   {"resolve: families differ", &six.any, &own.any}};
    for (size_t i = 0; i < LENGTH(refused); i++)
        print_status(refused[i].name,
                     rdma_resolve_addr(new_id(), refused[i].source, refused[i].to, 1000));
    struct rdma_cm_id *id = new_id();
    set_option("option: type of service", id, ID, TOS, 1);
    set_option("option: type of service, 4 bytes", id, ID, TOS, 4);
    set_option("option: timeout", id, ID, TIMEOUT, 1);
    set_option("option: timeout, 4 bytes", id, ID, TIMEOUT, 4);
    set_option("option: name of no option", id, ID, 99, 1);
    set_option("option: level of no option", id, 99, TOS, 1);
    print_status("resolve: own address", rdma_resolve_addr(id, NULL, &own.any, 1000));
    print_value("resolve: device found", id->verbs != NULL);
    print_value("resolve: port", id->port_num);
    print_value("resolve: destination kept",
                id->route.addr.dst_sin.sin_addr.s_addr == own.in.sin_addr.s_addr);
    print_value("resolve: local port chosen", id->route.addr.src_sin.sin_port != 0);
    print_status("resolve: again", rdma_resolve_addr(id, NULL, &own.any, 1000));
    print_status("route: first", rdma_resolve_route(id, 1000));
    print_status("route: again", rdma_resolve_route(id, 1000));
    set_option("option: timeout after the route", id, ID, TIMEOUT, 1);
    id = bound_id();
    print_value("bind: port chosen", id->route.addr.src_sin.sin_port != 0);
    print_value("bind: address kept",
                id->route.addr.src_sin.sin_addr.s_addr == own.in.sin_addr.s_addr);
    print_status("bind: again", rdma_bind_addr(id, &own.any));
    print_status("route: without a destination", rdma_resolve_route(id, 1000));
    test_source_port();
}

static struct rdma_conn_param param = {.responder_resources = RDMA_MAX_RESP_RES,
                                       .initiator_depth = RDMA_MAX_INIT_DEPTH,
                                       .retry_count = 7};

static void test_cm(void) {
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_event *event = NULL;
    print_object("event channel", channel);
    fcntl(channel->fd, F_SETFL, O_NONBLOCK);
    print_status("get event: none", rdma_get_cm_event(channel, &event));
    print_status("acknowledge: no event", rdma_ack_cm_event(NULL));
    struct rdma_cm_id *id = bound_id();
    print_status("accept: no request", rdma_accept(id, &param));
    print_status("reject: no request", rdma_reject(id, NULL, 0));
    print_status("disconnect: no connection", rdma_disconnect(id));
    print_status("connect: no destination", rdma_connect(id, &param));
    print_status("migrate: synchronous to synchronous", rdma_migrate_id(id, NULL));
    print_status("migrate: to a channel", rdma_migrate_id(id, channel));
    print_value("migrate: channel taken", id->channel == channel);
    print_status("listen", rdma_listen(id, 1));
    print_status("listen: again", rdma_listen(id, 1));
    print_status("destroy", rdma_destroy_id(id));
}

// Connects a client to a listener of the same process by the first request that is accepted.
static void test_connection(void) {
    static const char data[255] = "hello";
    static const struct {
        const char *name;
        uint8_t length;
    } requests[] = {
        {"connect: 57 bytes", 57}, {"connect: 255 bytes", 255}, {"connect: 5 bytes", 5}};
    struct rdma_event_channel *passive = rdma_create_event_channel();
    struct rdma_cm_event *event = NULL;
    struct rdma_cm_id *listener = bound_id(), *client = new_id();
    union address to = own;
    struct objects s = create_objects();
    uint8_t sent = 0;
    MUST(rdma_migrate_id(listener, passive));
    MUST(rdma_listen(listener, 1));
    to.in.sin_port = listener->route.addr.src_sin.sin_port;
    MUST(rdma_resolve_addr(client, NULL, &to.any, 1000));
    MUST(rdma_resolve_route(client, 1000));
    MUST(rdma_create_qp_ex(client, &s.qp));
    MUST(rdma_migrate_id(client, rdma_create_event_channel()));
    param.private_data = data;
    for (size_t i = 0; i < LENGTH(requests); i++) {
        param.private_data_len = requests[i].length;
        const int ret = rdma_connect(client, &param);
        print_status(requests[i].name, ret);
        if (ret == 0 && sent == 0)
            sent = requests[i].length;
    }
    if (conformance_deliver)
        conformance_deliver(passive->fd, data, sent);
    MUST(rdma_get_cm_event(passive, &event));
    print_value("request: event", event->event);
    print_value("request: status", event->status);
    print_value("request: bytes of private data", event->param.conn.private_data_len);
    print_value("request: sent bytes first",
                memcmp(event->param.conn.private_data, "hello\0", 7) == 0);
    print_value("request: device found", event->id->verbs != NULL);
    print_value("request: local port of the listener",
                event->id->route.addr.src_sin.sin_port == to.in.sin_port);
    print_status("request: acknowledge", rdma_ack_cm_event(event));
}

// ---- libibverbs ----------------------------------------------------------------------------

static void test_device(void) {
    struct objects s = create_objects();
    const struct ibv_device_attr *attr = &s.device.orig_attr;
    print_result("device: query", ibv_query_device_ex(s.context, NULL, &s.device));
    print_value("device: max_qp_wr", attr->max_qp_wr);
    print_value("device: max_cqe", attr->max_cqe);
    print_value("device: max_sge", attr->max_sge);
    print_value("device: max_srq_wr", attr->max_srq_wr);
    print_value("device: max_srq_sge", attr->max_srq_sge);
    print_value("device: global flush", s.device.device_cap_flags_ex >> 38 & 1);
    print_value("device: persistent flush", s.device.device_cap_flags_ex >> 39 & 1);
    print_value("device: atomic write", s.device.device_cap_flags_ex >> 40 & 1);
    print_value("device: on-demand paging", s.device.odp_caps.general_caps & IBV_ODP_SUPPORT);
    print_value("device: transport", s.context->device->transport_type);
}

// The device and the memory determine the valid access of a region.
static void test_mr(void) {
    static const struct {
        const char *name;
        unsigned access;
    } cases[] = {
        {"mr: nothing", 0},
        {"mr: local write", IBV_ACCESS_LOCAL_WRITE},
        {"mr: remote read", IBV_ACCESS_REMOTE_READ},
        {"mr: remote write alone", IBV_ACCESS_REMOTE_WRITE},
        {"mr: remote atomic alone", IBV_ACCESS_REMOTE_ATOMIC},
        {"mr: remote and local write", IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE},
        {"mr: on demand", IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE},
        {"mr: global flush", FLUSH_GLOBAL},
        {"mr: persistent flush", FLUSH_PERSISTENT},
        {"mr: both flushes", FLUSH_GLOBAL | FLUSH_PERSISTENT},
        {"mr: both flushes on demand", FLUSH_GLOBAL | FLUSH_PERSISTENT | IBV_ACCESS_ON_DEMAND},
    };
    struct objects s = create_objects();
    for (size_t i = 0; i < LENGTH(cases); i++)
        print_object(cases[i].name,
                     ibv_reg_mr(s.pd, memory, sizeof(memory), (int)cases[i].access));
    struct ibv_mr *mr = ibv_reg_mr(s.pd, memory + 100, 16, IBV_ACCESS_LOCAL_WRITE);
    print_value("mr: address kept", mr && mr->addr == memory + 100 && mr->length == 16);
    print_result("mr: domain in use", ibv_dealloc_pd(s.pd));
    print_result("mr: deregister", ibv_dereg_mr(mr));
}

static void test_cq(void) {
    struct objects s = create_objects();
    const int most = s.device.orig_attr.max_cqe;
    const struct {
        const char *name;
        int cqe, vector;
    } sizes[] = {{"cq: 0", 0, 0},
                 {"cq: -1", -1, 0},
                 {"cq: 1", 1, 0},
                 {"cq: 10", 10, 0},
                 {"cq: 16", 16, 0},
                 {"cq: all", most, 0},
                 {"cq: one too many", most + 1, 0},
                 {"cq: INT32_MAX", INT32_MAX, 0},
                 {"cq: unknown vector", 1, 12345}};
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context = NULL;
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        cq = ibv_create_cq(s.context, sizes[i].cqe, NULL, s.channel, sizes[i].vector);
        if (print_object(sizes[i].name, cq))
            printf("%s, entries\t%d\n", sizes[i].name, cq->cqe);
    }
    print_value("cq: poll nothing", ibv_poll_cq(s.cq, 1, &wc));
    print_result("cq: arm", ibv_req_notify_cq(s.cq, 0));
    print_result("cq: arm again", ibv_req_notify_cq(s.cq, 0));
    fcntl(s.channel->fd, F_SETFL, O_NONBLOCK);
    print_status("cq: no event", ibv_get_cq_event(s.channel, &cq, &context));
    print_result("cq: channel in use", ibv_destroy_comp_channel(s.channel));
}

static void test_srq(void) {
    struct objects s = create_objects();
    const struct {
        const char *name;
        int wr, sge;
    } sizes[] = {{"srq: 0", 0, 1},
                 {"srq: 10", 10, 1},
                 {"srq: one too many", s.device.orig_attr.max_srq_wr + 1, 1},
                 {"srq: too many elements", 1, s.device.orig_attr.max_srq_sge + 1}};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        struct ibv_srq_init_attr attr = {
            .attr = {.max_wr = (uint32_t)sizes[i].wr, .max_sge = (uint32_t)sizes[i].sge}};
        if (print_object(sizes[i].name, ibv_create_srq(s.pd, &attr)))
            printf("%s, entries\t%u\n", sizes[i].name, attr.attr.max_wr);
    }
}

static void create_qp(const char *name, const struct objects *s,
                      struct ibv_qp_init_attr_ex attr) {
    print_status(name, rdma_create_qp_ex(s->id, &attr));
    if (s->id->qp)
        rdma_destroy_qp(s->id);
}

static void test_capabilities(const struct objects *s) {
    const uint32_t wr = (uint32_t)s->device.orig_attr.max_qp_wr + 1;
    const uint32_t sge = (uint32_t)s->device.orig_attr.max_sge + 1;
    const struct {
        const char *name;
        struct ibv_qp_cap cap;
    } refused[] = {{"qp: send queue too long", {wr, 10, 1, 1, 8}},
                   {"qp: receive queue too long", {10, wr, 1, 1, 8}},
                   {"qp: too many elements to send", {10, 10, sge, 1, 8}},
                   {"qp: too many elements to receive", {10, 10, 1, sge, 8}},
                   {"qp: too much inline data", {10, 10, 1, 1, 100000}}};
    struct ibv_qp_init_attr_ex attr = s->qp;
    for (size_t i = 0; i < LENGTH(refused); i++) {
        attr.cap = refused[i].cap;
        create_qp(refused[i].name, s, attr);
    }
    attr = s->qp;
    attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | SEND_FLUSH | SEND_ATOMIC_WRITE;
    create_qp("qp: native operations", s, attr);
    attr.send_ops_flags = IBV_QP_EX_WITH_TSO;
    create_qp("qp: operations that no RC queue pair has", s, attr);
}

static void test_qp(void) {
    struct objects s = create_objects();
    struct ibv_qp_init_attr_ex attr = s.qp;
    struct ibv_recv_wr receive = {.wr_id = 1}, *bad = NULL;
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
    int posted = 1, ret;
    test_capabilities(&s);
    print_status("qp: create", rdma_create_qp_ex(s.id, &attr));
    print_value("qp: send entries", attr.cap.max_send_wr);
    print_value("qp: receive entries", attr.cap.max_recv_wr);
    print_value("qp: send elements", attr.cap.max_send_sge);
    print_value("qp: receive elements", attr.cap.max_recv_sge);
    print_value("qp: inline bytes", attr.cap.max_inline_data);
    print_value("qp: number", s.id->qp->qp_num > 0);
    print_value("qp: domain of the ID", s.id->pd == s.pd);
    print_value("qp: no extended queue pair", ibv_qp_to_qp_ex(s.id->qp) == NULL);
    print_status("qp: create again", rdma_create_qp_ex(s.id, &s.qp));
    print_result("qp: post a receive", ibv_post_recv(s.id->qp, &receive, &bad));
    while (posted < 100 && (ret = ibv_post_recv(s.id->qp, &receive, &bad)) == 0)
        posted++;
    print_result("qp: receive queue full", posted < 100 ? ret : 0);
    print_value("qp: receives posted", posted);
    // Without a connection the doorbell fails, but the requests are in the queue.
    print_result("qp: post a send", ibv_post_send(s.id->qp, &send, &bad_send));
    for (posted = 0; posted < 100 && !bad_send; posted++)
        ret = ibv_post_send(s.id->qp, &send, &bad_send);
    print_result("qp: send queue full", ret);
    print_value("qp: sends posted", posted);
    rdma_destroy_qp(s.id);
    print_value("qp: none after its destruction", s.id->qp == NULL);
}

// The QP is not connected, so that no request is executed. The actual number of inline bytes
// depends on the number of SGEs.
static void test_requests(void) {
    struct objects s = create_objects();
    uint64_t words[2] = {0};
    struct ibv_mr *mr = ibv_reg_mr(s.pd, words, sizeof(words), IBV_ACCESS_LOCAL_WRITE);
    must(mr, "ibv_reg_mr()");
    struct ibv_sge sge = {(uintptr_t)words, 8, mr->lkey};
    struct ibv_send_wr atomic = {.sg_list = &sge, .num_sge = 1}, *bad;
    s.qp.cap.max_send_sge = 4;
    MUST(rdma_create_qp_ex(s.id, &s.qp));
    print_value("request: inline bytes of 4 elements", s.qp.cap.max_inline_data);
    atomic.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    atomic.wr.atomic.remote_addr = 4;
    print_result("request: atomic of an unaligned address",
                 ibv_post_send(s.id->qp, &atomic, &bad));
    print_value("request: atomic of an unaligned address named", bad == &atomic);
    atomic.wr.atomic.remote_addr = 8;
    sge.length = 4;
    print_result("request: atomic of 4 bytes", ibv_post_send(s.id->qp, &atomic, &bad));
    print_value("request: atomic of 4 bytes named", bad == &atomic);
    rdma_destroy_qp(s.id);
}

static void post_built(const char *name, struct ibv_qp_ex *qp, uint32_t requests,
                       size_t elements) {
    static const struct ibv_sge sges[2];
    if (!qp) {
        printf("%s\tnot asked\n", name);
        return;
    }
    ibv_wr_start(qp);
    for (uint32_t i = 0; i < requests; i++) {
        ibv_wr_rdma_write(qp, 1, 8);
        ibv_wr_set_sge_list(qp, elements, sges);
    }
    print_result(name, ibv_wr_complete(qp));
}

// The third case shows that a refused list leaves no request in the queue.
static void test_builders(void) {
    struct objects s = create_objects();
    s.qp.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    s.qp.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
    const bool has_builders = rdma_create_qp_ex(s.id, &s.qp) == 0;
    struct ibv_qp_ex *qp = has_builders ? ibv_qp_to_qp_ex(s.id->qp) : NULL;
    const uint32_t entries = s.qp.cap.max_send_wr;
    post_built("built: too many elements", qp, 1, 2);
    post_built("built: one more than the queue holds", qp, entries + 1, 1);
    post_built("built: as many as the queue holds", qp, entries, 1);
    post_built("built: queue full", qp, 1, 1);
}

static void test_order(void) {
    struct objects s = create_objects();
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = s.qp.srq = ibv_create_srq(s.pd, &srq_attr);
    struct ibv_recv_wr receive = {.wr_id = 1}, *bad = NULL;
    MUST(rdma_create_qp_ex(s.id, &s.qp));
    // Not run on siw: such a QP has no receive queue, but siw_post_recv() reads it (rdma-core
    // 56, providers/siw/siw.c), so that SIGSEGV ends the process.
    if (!srq || s.context->device->transport_type == IBV_TRANSPORT_IWARP) {
        puts("order: post to the queue pair of an SRQ\tnot asked");
        puts("order: refused request named\tnot asked");
    } else {
        print_result("order: post to the queue pair of an SRQ",
                     ibv_post_recv(s.id->qp, &receive, &bad));
        print_value("order: refused request named", bad == &receive);
    }
    if (srq) {
        print_result("order: post to the SRQ", ibv_post_srq_recv(srq, &receive, &bad));
        print_result("order: SRQ in use", ibv_destroy_srq(srq));
    }
    print_result("order: CQ in use", ibv_destroy_cq(s.cq));
    print_result("order: domain in use", ibv_dealloc_pd(s.pd));
    rdma_destroy_qp(s.id);
    if (srq)
        print_result("order: SRQ", ibv_destroy_srq(srq));
}

// ---- the table -----------------------------------------------------------------------------

static void (*const tests[])(void) = {test_addresses, test_cm,    test_device,    test_mr,
                                      test_cq,        test_srq,   test_qp,        test_requests,
                                      test_builders,  test_order, test_connection};

static void run_case(size_t index) {
    tests[index]();
}

const struct cases conformance_cases = {"conformance", set_address, LENGTH(tests), run_case};
