// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fakes_stand.h -- what each check of the fakes begins with, and the calls that checks make

#ifndef FAKES_STAND_H
#define FAKES_STAND_H 1

#include "unit.h"

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { FLUSH = 1 << 11, ATOMIC_WRITE = 1 << 12 }; // flags of rdma-core 45
enum {
    EVERY_BUILDER = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |
                    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | FLUSH | ATOMIC_WRITE
};
enum { SENDS = 15, RECEIVES = 3 }; // that the queues of the stand take

static struct sockaddr_in address = {.sin_family = AF_INET};
static struct sockaddr *const addr = (struct sockaddr *)&address;
static struct rdma_conn_param param;
static char memory[64];

// What a test begins with: a connection that is up, a second ID with a route, and a listener.
static struct {
    struct rdma_event_channel *events, *others;
    struct rdma_cm_id *id, *idle, *listener;
    struct rdma_cm_event *event;
    struct ibv_context *context;
    struct ibv_pd *pd, *other_pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq, *small;
    struct ibv_srq *srq;
    struct ibv_mr *mr, *constant, *other;
    struct ibv_qp_init_attr_ex attr;
    struct ibv_qp *qp;
    struct ibv_qp_ex *ex;
} s;

static int take_event(struct rdma_event_channel *events, enum rdma_cm_event_type type) {
    fake_cm_event(events->fd, type, NULL, 0);
    return rdma_get_cm_event(events, &s.event);
}

static struct rdma_cm_id *request(void) {
    (void)take_event(s.others, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = s.event->id;
    (void)rdma_ack_cm_event(s.event);
    return id;
}

// On a channel an event tells that a step of resolving is done.
static void told(struct rdma_event_channel *events) {
    if (!events)
        return;
    assert_int_equal(rdma_get_cm_event(events, &s.event), 0);
    assert_int_equal(rdma_ack_cm_event(s.event), 0);
}

static struct rdma_cm_id *routed(struct rdma_event_channel *events) {
    struct rdma_cm_id *id = NULL;
    assert_int_equal(rdma_create_id(events, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, addr, 1), 0);
    told(events);
    assert_int_equal(rdma_resolve_route(id, 1), 0);
    told(events);
    return id;
}

static void stand_up(void) {
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};
    fake_reset();
    fake_device()->native_flush = true;
    s.others = rdma_create_event_channel();
    s.events = rdma_create_event_channel();
    assert_int_equal(rdma_create_id(s.others, &s.listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_listen(s.listener, 1), 0);
    s.idle = routed(s.events);
    s.id = routed(s.events);
    s.context = s.id->verbs;
    s.pd = ibv_alloc_pd(s.context);
    s.other_pd = ibv_alloc_pd(s.context);
    s.channel = ibv_create_comp_channel(s.context);
    s.cq = ibv_create_cq(s.context, 10, NULL, s.channel, 0);
    s.small = ibv_create_cq(s.context, 1, NULL, s.channel, 0);
    s.srq = ibv_create_srq(s.pd, &srq_attr);
    s.mr = ibv_reg_mr(s.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    s.constant = ibv_reg_mr(s.pd, memory, sizeof(memory), 0);
    s.other = ibv_reg_mr(s.other_pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    s.attr = (struct ibv_qp_init_attr_ex){.send_cq = s.cq,
                                          .recv_cq = s.cq,
                                          .pd = s.pd,
                                          .cap = {SENDS, RECEIVES, 2, 1, 8},
                                          .comp_mask = IBV_QP_INIT_ATTR_PD |
                                                       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                          .send_ops_flags = EVERY_BUILDER};
    assert_int_equal(rdma_create_qp_ex(s.id, &s.attr), 0);
    s.qp = s.id->qp;
    s.ex = ibv_qp_to_qp_ex(s.qp);
    assert_int_equal(rdma_connect(s.id, &param), 0);
    assert_int_equal(take_event(s.events, RDMA_CM_EVENT_ESTABLISHED), 0);
    (void)rdma_ack_cm_event(s.event);
}

// A request of num_sge equal elements; of a key that no region has without mr.
struct request {
    enum ibv_wr_opcode opcode;
    const struct ibv_mr *mr;
    long offset;
    uint32_t length;
    int num_sge;
    unsigned flags;
    uint64_t remote_addr;
    uint32_t rkey;
};
#define SEND(...) post(&(const struct request){__VA_ARGS__})
static int post(const struct request *r) {
    const uint64_t start = (uintptr_t)memory + (uint64_t)r->offset;
    struct ibv_sge sges[3] = {[0 ... 2] = {start, r->length, r->mr ? r->mr->lkey : 1}};
    struct ibv_send_wr wr = {.opcode = r->opcode, .sg_list = sges, .num_sge = r->num_sge}, *bad;
    wr.send_flags = r->flags;
    if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = r->remote_addr;
    } else {
        wr.wr.rdma.remote_addr = r->remote_addr;
        wr.wr.rdma.rkey = r->rkey;
    }
    return ibv_post_send(s.qp, &wr, &bad);
}

static int receive(const struct ibv_mr *mr, bool by_srq) {
    struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    return by_srq ? ibv_post_srq_recv(s.srq, &wr, &bad) : ibv_post_recv(s.qp, &wr, &bad);
}

// Makes the call that often, and has the value of the last; -1 when one before failed.
#define REPEATED(count, call)            \
    ({                                   \
        int left_ = count, ret_ = 0;     \
        while (left_-- > 0 && ret_ == 0) \
            ret_ = call;                 \
        left_ < 0 ? ret_ : -1;           \
    })

static int build_many(int count) {
    ibv_wr_start(s.ex);
    while (count-- > 0)
        ibv_wr_send(s.ex);
    return ibv_wr_complete(s.ex);
}

// Writes 8 bytes and flushes 8 at that address, by builders: whether the power leaves them.
static int write_and_flush(uint64_t flushed, uint8_t type, uint8_t level) {
    typedef void flush_builder(struct ibv_qp_ex *, uint32_t rkey, uint64_t addr, size_t len,
                               uint8_t type, uint8_t level);
    flush_builder *flush; // older headers end before it
    memcpy(&flush, &s.ex->wr_atomic_write + 1, sizeof(void *));
    const unsigned char *found = fake_target(0x1000, 64, 7);
    ibv_wr_start(s.ex);
    s.ex->wr_flags = IBV_SEND_INLINE;
    ibv_wr_rdma_write(s.ex, 7, 0x1020);
    ibv_wr_set_inline_data(s.ex, "8 bytes", 8);
    flush(s.ex, 7, flushed, 8, type, level);
    assert_int_equal(ibv_wr_complete(s.ex), 0);
    assert_memory_equal(fake_posted(0)->inlined, "8 bytes", 8);
    assert_int_equal(fake_last("ibv_wr_complete")->send.inlined_bytes, 8);
    (void)fake_power_failure(0);
    return memcmp(found + 0x20, "8 bytes", 8) == 0;
}

static int read_from(uint64_t remote_addr, uint32_t rkey) {
    (void)fake_target(0x1000, 64, 7);
    (void)SEND(IBV_WR_RDMA_READ, s.mr, 0, 8, 1, 0, remote_addr, rkey);
    return (int)s.qp->state;
}

static int create_on(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_cq *cq) {
    s.attr.pd = pd;
    s.attr.send_cq = cq;
    return rdma_create_qp_ex(id, &s.attr);
}

// Whether a queue pair of these sizes is made; the sizes that it got are in s.attr.cap.
static int create_sized(struct ibv_qp_cap cap, struct ibv_srq *srq) {
    s.attr.cap = cap;
    s.attr.srq = srq;
    return create_on(s.idle, s.pd, s.cq);
}

static int set_option(struct rdma_cm_id *id, int name, size_t length) {
    static char value[8];
    return rdma_set_option(id, RDMA_OPTION_ID, name, value, length);
}

static int moderate(uint16_t period) {
    return ibv_modify_cq(s.cq, &(struct ibv_modify_cq_attr){.moderate.cq_period = period});
}

static struct rdma_conn_param sending(uint8_t length) {
    static char data[255];
    return (struct rdma_conn_param){.private_data = data, .private_data_len = length};
}

static struct rdma_cm_id *unbound(void) {
    struct rdma_cm_id *id = NULL;
    assert_int_equal(rdma_create_id(s.events, &id, NULL, RDMA_PS_TCP), 0);
    return id;
}

// The bytes of private data that an event has.
static int length_of(struct rdma_event_channel *events, enum rdma_cm_event_type type) {
    return take_event(events, type) == 0 ? s.event->param.conn.private_data_len : -1;
}

static struct ibv_cq *foreign_cq(void) {
    struct ibv_comp_channel *channel = ibv_create_comp_channel(fake_context(1));
    return ibv_create_cq(fake_context(1), 10, NULL, channel, 0);
}

static int notified(struct ibv_cq *cq) {
    void *context;
    fake_notify(cq);
    return ibv_get_cq_event(s.channel, &cq, &context);
}

static int complete_small(int count) {
    const struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    while (count-- > 0)
        fake_complete(s.small, &wc);
    return 0;
}

static int descriptors(rlim_t most) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = most ? most : limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

static int look_up(int family) {
    const struct rdma_addrinfo hints = {
        .ai_family = family, .ai_dst_addr = addr, .ai_dst_len = sizeof(address)};
    struct rdma_addrinfo *found = NULL;
    return rdma_getaddrinfo(NULL, NULL, &hints, &found);
}

// A name has one address, which is a source.
static int look_up_passively(void) {
    const struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE};
    struct rdma_addrinfo *found = NULL;
    return rdma_getaddrinfo("name", NULL, &hints, &found) || found->ai_next ||
           !fake_addr_is(found->ai_src_addr, 0) || found->ai_dst_addr;
}

static void *map(void) {
    return FAKE_HOOK(mmap)(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int send_many(int count) {
    return REPEATED(count, SEND(IBV_WR_RDMA_WRITE, s.mr, 0, 0, 0));
}

#endif // FAKES_STAND_H
