// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fakes_stand.h -- what each check of the fakes begins with, and the calls that checks make

#ifndef FAKES_STAND_H
#define FAKES_STAND_H 1

#include "unit.h"

#include <infiniband/ib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <syslog.h>
#include <unistd.h>

enum { FLUSH = 1 << 11, ATOMIC_WRITE = 1 << 12 }; // flags of rdma-core 45
enum {
    EVERY_BUILDER = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |
                    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | FLUSH | ATOMIC_WRITE
};
enum { MOST_RECORDED = 2048, KEY = 0x70007 };
static const uint64_t TARGET = 0x700001000; // memory of a target, which has that key
enum { SENDS = 15, RECEIVES = 3 };          // that the queues of the stand take

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

static bool is_readable(const void *byte) {
    const int fd = memfd_create("byte", 0);
    const bool is = write(fd, byte, 1) == 1;
    close(fd);
    return is;
}

// On a channel an event tells that a step of resolving is done.
static void told(struct rdma_event_channel *events) {
    if (!events)
        return;
    assert_int_equal(rdma_get_cm_event(events, &s.event), 0);
    assert_int_equal(s.event->status, 0);
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

static int receive_of(int num_sge, const struct ibv_mr *mr, bool by_srq) {
    struct ibv_sge sges[2] = {[0 ... 1] = {(uintptr_t)memory, 8, mr->lkey}};
    struct ibv_recv_wr wr = {.sg_list = sges, .num_sge = num_sge}, *bad;
    return by_srq ? ibv_post_srq_recv(s.srq, &wr, &bad) : ibv_post_recv(s.qp, &wr, &bad);
}
static int receive(const struct ibv_mr *mr, bool by_srq) {
    return receive_of(1, mr, by_srq);
}

// Makes the call that often, and has the value of the last; -1 when one before failed.
#define REPEATED(count, call)            \
    ({                                   \
        int left_ = count, ret_ = 0;     \
        while (left_-- > 0 && ret_ == 0) \
            ret_ = call;                 \
        left_ < 0 ? ret_ : -1;           \
    })

static int build(const struct fake_post *wanted, struct ibv_sge *sge) {
    struct ibv_qp_ex *ex = s.ex;
    const uint64_t addr = wanted->remote_addr, add = wanted->compare_add;
    const uint32_t rkey = wanted->rkey;
    ibv_wr_start(ex);
    ex->wr_id = wanted->wr_id;
    ex->wr_flags = wanted->flags;
    const int opcode = wanted->opcode;
    opcode == IBV_WR_RDMA_READ              ? ibv_wr_rdma_read(ex, rkey, addr)
    : opcode == IBV_WR_RDMA_WRITE           ? ibv_wr_rdma_write(ex, rkey, addr)
    : opcode == IBV_WR_RDMA_WRITE_WITH_IMM  ? ibv_wr_rdma_write_imm(ex, rkey, addr, wanted->imm)
    : opcode == IBV_WR_SEND                 ? ibv_wr_send(ex)
    : opcode == IBV_WR_SEND_WITH_IMM        ? ibv_wr_send_imm(ex, wanted->imm)
    : opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? ibv_wr_atomic_fetch_add(ex, rkey, addr, add)
    : opcode == IBV_WR_ATOMIC_CMP_AND_SWP
        ? ibv_wr_atomic_cmp_swp(ex, rkey, addr, add, wanted->swap)
        : ex->wr_atomic_write(ex, rkey, addr, wanted->inlined);
    if (sge)
        ibv_wr_set_sge_list(ex, 1, sge);
    return ibv_wr_complete(ex) || memcmp(fake_posted(0), wanted, sizeof(*wanted));
}

// Whether a builder makes a request of that opcode with all that it was given.
static int is_built(int opcode) {
    struct ibv_sge sge = {(uintptr_t)memory, 8, s.mr->lkey};
    struct fake_post wanted = {.wr_id = 5, .opcode = opcode, .flags = IBV_SEND_SIGNALED};
    if (opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        wanted.imm = 6;
    if (opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM) {
        wanted.remote_addr = 0x1008;
        wanted.rkey = 7;
    }
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wanted.compare_add = 0x300000003;
        wanted.swap = opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? 0x400000004 : 0x300000003;
    }
    if (opcode == FAKE_WR_ATOMIC_WRITE)
        memcpy(wanted.inlined, "8 bytes", wanted.inlined_bytes = 8);
    else
        wanted.elements = (struct fake_elements){.num_sge = 1, .sge = sge};
    return build(&wanted, opcode == FAKE_WR_ATOMIC_WRITE ? NULL : &sge) == 0;
}

// A request of num_sge elements, or of that much inline data.
static int build_of(size_t num_sge, size_t inlined) {
    const struct ibv_sge sges[3] = {[0 ... 2] = {(uintptr_t)memory, 8, s.mr->lkey}};
    ibv_wr_start(s.ex);
    s.ex->wr_flags = inlined ? IBV_SEND_INLINE : 0;
    ibv_wr_rdma_read(s.ex, 7, 0);
    if (inlined)
        ibv_wr_set_inline_data(s.ex, memory, inlined);
    else
        ibv_wr_set_sge_list(s.ex, num_sge, sges);
    return ibv_wr_complete(s.ex);
}

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
    const unsigned char *found = fake_target(TARGET, 64, KEY);
    ibv_wr_start(s.ex);
    s.ex->wr_flags = IBV_SEND_INLINE;
    ibv_wr_rdma_write(s.ex, KEY, TARGET + 0x20);
    ibv_wr_set_inline_data(s.ex, "8 bytes", 8);
    flush(s.ex, KEY, flushed, 8, type, level);
    assert_int_equal(ibv_wr_complete(s.ex), 0);
    assert_int_equal(s.qp->state, IBV_QPS_RTS);
    assert_memory_equal(fake_posted(0)->inlined, "8 bytes", 8);
    assert_int_equal(fake_last("ibv_wr_complete")->send.inlined_bytes, 8);
    (void)fake_power_failure(0);
    return memcmp(found + 0x20, "8 bytes", 8) == 0;
}

// Whether an atomic write by a builder reaches the memory.
static int write_atomically(uint64_t remote_addr) {
    const unsigned char *found = fake_target(TARGET, 64, KEY);
    ibv_wr_start(s.ex);
    s.ex->wr_atomic_write(s.ex, KEY, remote_addr, "8 bytes");
    assert_int_equal(ibv_wr_complete(s.ex), 0);
    (void)fake_power_failure(UINT64_MAX);
    return s.qp->state == IBV_QPS_RTS &&
           memcmp(found + (remote_addr - TARGET), "8 bytes", 8) == 0;
}

// What a request over the memory of a target makes of the queue pair.
#define EXECUTE(...) (fake_target(TARGET, 64, KEY), SEND(__VA_ARGS__), (int)s.qp->state)

static int read_from(uint64_t remote_addr, uint32_t rkey) {
    (void)fake_target(TARGET, 64, KEY);
    (void)SEND(IBV_WR_RDMA_READ, s.mr, 0, 8, 1, 0, remote_addr, rkey);
    return (int)s.qp->state;
}

static int create_on(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_cq *cq) {
    s.attr.pd = pd;
    s.attr.send_cq = cq;
    return rdma_create_qp_ex(id, &s.attr);
}

#define ONE_OF_ALL ((struct ibv_qp_cap){1, 1, 1, 1, 0})

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

static int set_limit(uint32_t limit, int mask) {
    return ibv_modify_srq(s.srq, &(struct ibv_srq_attr){.srq_limit = limit}, mask);
}

static int moderate(uint16_t period) {
    return ibv_modify_cq(s.cq, &(struct ibv_modify_cq_attr){.moderate.cq_period = period});
}

static struct rdma_conn_param sending(uint8_t length) {
    static char data[255];
    return (struct rdma_conn_param){.private_data = data, .private_data_len = length};
}

// The first time it fails with that error.
static int reject_twice(int error, uint8_t length) {
    struct rdma_cm_id *id = request();
    fake_fail("rdma_reject", 1, error);
    assert_int_equal(rdma_reject(id, memory, length), -1);
    assert_int_equal(errno, error);
    return rdma_reject(id, NULL, 0);
}

static struct rdma_cm_id *unbound(void) {
    struct rdma_cm_id *id = NULL;
    assert_int_equal(rdma_create_id(s.events, &id, NULL, RDMA_PS_TCP), 0);
    return id;
}

// The whole address is kept.
static int bind_in6(struct rdma_cm_id *id) {
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    in6.sin6_scope_id = 5;
    return rdma_bind_addr(id, (struct sockaddr *)&in6) ||
           memcmp(&id->route.addr.src_storage, &in6, sizeof(in6));
}

// The bytes of private data that an event has.
static int length_of(struct rdma_event_channel *events, enum rdma_cm_event_type type) {
    return take_event(events, type) == 0 ? s.event->param.conn.private_data_len : -1;
}

static void happen_on(struct rdma_event_channel *events) {
    fake_cm_event(events->fd, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL, 0);
}

// An event with the first bytes of a text.
static int tell(enum rdma_cm_event_type type, int status, uint8_t length) {
    fake_cm_event_status(s.events->fd, type, status, "hello, there", length);
    return rdma_get_cm_event(s.events, &s.event);
}

// Resolves an address and a route; the part of that name fails with EIO.
static int resolve_failing(const char *name, enum rdma_cm_event_type type) {
    struct rdma_cm_id *id = unbound();
    fake_fail(name, 1, EIO);
    assert_int_equal(rdma_resolve_addr(id, NULL, addr, 1), 0);
    if (type == RDMA_CM_EVENT_ROUTE_ERROR) {
        told(s.events);
        assert_int_equal(rdma_resolve_route(id, 1), 0);
    }
    assert_int_equal(rdma_get_cm_event(s.events, &s.event), 0);
    fake_faults_off();
    return s.event->event != type || s.event->status != -EIO;
}

static struct ibv_cq *foreign_cq(void) {
    struct ibv_comp_channel *channel = ibv_create_comp_channel(fake_context(1));
    return ibv_create_cq(fake_context(1), 10, NULL, channel, 0);
}

static struct ibv_srq *foreign_srq(void) {
    struct ibv_srq_init_attr attr = {.attr = {1, 1}};
    return ibv_create_srq(ibv_alloc_pd(fake_context(1)), &attr);
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

// Which of 4 calls succeed, as digits; the others fail with that error.
static int allocate_pds(int error) {
    int digits = 0;
    for (int i = 0; i < 4; i++) {
        const bool is_made = ibv_alloc_pd(s.context);
        digits = 10 * digits + is_made;
        assert_true(is_made || errno == error);
    }
    return digits;
}

static int arm_often(int count) {
    (void)REPEATED(count, ibv_req_notify_cq(s.cq, 0));
    return (int)fake_count("ibv_req_notify_cq");
}

// Three completions, of which two are taken before two more: their numbers, as digits.
static int poll_in_parts(void) {
    struct ibv_wc wc[3];
    int digits = 0;
    for (uint64_t number = 1; number <= 5; number++) {
        fake_complete(s.cq, &(const struct ibv_wc){.wr_id = number});
        if (number != 3 && number != 5)
            continue;
        const int got = ibv_poll_cq(s.cq, number == 3 ? 2 : 3, wc);
        for (int i = 0; i < got; i++)
            digits = 10 * digits + (int)wc[i].wr_id;
    }
    return digits;
}

static int descriptors(rlim_t most) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = most ? most : limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

static struct rdma_addrinfo *looked_up;

static int look_up(int family) {
    const struct rdma_addrinfo hints = {
        .ai_family = family, .ai_dst_addr = addr, .ai_dst_len = sizeof(address)};
    return rdma_getaddrinfo(NULL, NULL, &hints, &looked_up);
}

// A name has one address, which is a source.
static int look_up_passively(void) {
    const struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE};
    struct rdma_addrinfo *found = NULL;
    return rdma_getaddrinfo("name", NULL, &hints, &found) || found->ai_next ||
           !fake_addr_is(found->ai_src_addr, 0) || found->ai_dst_addr;
}

// The numbers of the addresses that getaddrinfo() finds, as digits from left to right; or why
// it finds none.
static int find_names(const char *node, int family, int flags) {
    const struct addrinfo hints = {flags, family, SOCK_STREAM, IPPROTO_TCP};
    struct addrinfo *names = NULL;
    const int ret = FAKE_HOOK(getaddrinfo)(node, NULL, &hints, &names);
    int digits = 0;
    if (ret != 0)
        return ret;
    for (const struct addrinfo *name = names; name; name = name->ai_next) {
        int number = 1;
        while (number < 9 && !fake_addr_is(name->ai_addr, number - 1))
            number++;
        digits = 10 * digits + number;
        assert_int_equal(name->ai_flags, flags);
        assert_int_equal(name->ai_family, name->ai_addr->sa_family);
        assert_int_equal(name->ai_socktype, SOCK_STREAM);
        assert_int_equal(name->ai_protocol, IPPROTO_TCP);
    }
    FAKE_HOOK(freeaddrinfo)(names);
    return digits;
}

// IBACM knows two routes to the address, which come before it.
static int look_up_routes(void) {
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = 1};
    const struct rdma_addrinfo hints = {.ai_family = AF_INET,
                                        .ai_dst_addr = addr,
                                        .ai_dst_len = sizeof(address),
                                        .ai_src_addr = (struct sockaddr *)&from,
                                        .ai_src_len = sizeof(from)};
    struct rdma_addrinfo *found = NULL;
    address.sin_addr.s_addr = htonl(0x7f000001);
    fake_device()->routes = 2;
    assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &found), 0);
    address.sin_addr.s_addr = 0;
    const struct rdma_addrinfo *second = found->ai_next, *last = second->ai_next;
    return fake_addr_is(found->ai_src_addr, FAKE_FIRST_ROUTE) &&
           fake_addr_is(found->ai_dst_addr, FAKE_ROUTE_TO(0)) && found->ai_family == AF_IB &&
           fake_addr_is(second->ai_src_addr, FAKE_FIRST_ROUTE + 1) &&
           fake_addr_is(second->ai_dst_addr, FAKE_ROUTE_TO(0)) &&
           found->ai_src_len == sizeof(struct sockaddr_ib) &&
           found->ai_dst_len == sizeof(struct sockaddr_ib) && !last->ai_next &&
           fake_addr_is(last->ai_dst_addr, 0) && last->ai_dst_len == sizeof(address) &&
           last->ai_family == AF_INET && last->ai_src_len == sizeof(from) &&
           memcmp(last->ai_src_addr, &from, sizeof(from)) == 0;
}

// What a block has before it is written, what is counted of it, and what is recorded.
static int allocate(void) {
    unsigned char *block = FAKE_HOOK(malloc)(24), *clear = FAKE_HOOK(calloc)(3, 8);
    const int ret = block[0] == 0xa5 && block[23] == 0xa5 && clear[0] + clear[23] == 0 &&
                    fake_bytes_held() == 48 && fake_nth("malloc", 1)->bytes == 24 &&
                    fake_nth("malloc", 2)->bytes == 24 && !*fake_calls();
    FAKE_HOOK(free)(block);
    FAKE_HOOK(free)(clear);
    return ret;
}

// The calls of a library that was compiled with -D_FORTIFY_SOURCE.
static int syslog_fortified(void) {
    void (*hooked)(int, int, const char *, ...);
    int priority;
    *(void **)&hooked = fake_hook("__syslog_chk");
    hooked(LOG_ERR, 1, "%d", 5);
    return strcmp(fake_syslog(&priority), "5") || priority != LOG_ERR;
}

static int format_fortified(size_t size, const char *format, ...) {
    int (*hooked)(char *, size_t, int, size_t, const char *, va_list);
    const unsigned before = fake_formatted();
    char text[8] = "";
    va_list args;
    *(void **)&hooked = fake_hook("__vsnprintf_chk");
    va_start(args, format);
    const int ret = hooked(text, size, 1, sizeof(text), format, args);
    va_end(args);
    return ret != 2 || strcmp(text, "1") || fake_formatted() != before + 1;
}

// Objects that were released before.
static struct rdma_cm_id *gone(void) {
    struct rdma_cm_id *id = unbound();
    assert_int_equal(rdma_destroy_id(id), 0);
    return id;
}
static struct ibv_comp_channel *gone_comp_channel(void) {
    struct ibv_comp_channel *channel = ibv_create_comp_channel(s.context);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    return channel;
}
static struct ibv_cq *gone_cq(void) {
    return ibv_destroy_cq(s.small) ? NULL : s.small;
}
static struct ibv_srq *gone_srq(void) {
    return ibv_destroy_srq(s.srq) ? NULL : s.srq;
}
static struct ibv_pd *gone_pd(void) {
    return ibv_dereg_mr(s.other) || ibv_dealloc_pd(s.other_pd) ? NULL : s.other_pd;
}
static struct rdma_event_channel *gone_channel(void) {
    struct rdma_event_channel *channel = rdma_create_event_channel();
    rdma_destroy_event_channel(channel);
    return channel;
}

static void *map(void) {
    return FAKE_HOOK(mmap)(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int send_many(int count) {
    return REPEATED(count, SEND(IBV_WR_RDMA_WRITE, s.mr, 0, 0, 0));
}

#endif // FAKES_STAND_H
