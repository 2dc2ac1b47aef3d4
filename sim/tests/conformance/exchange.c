// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// exchange.c -- posts requests between two connected QPs, and prints the completions, data and
// events of both sides. The output has the format of conformance.c.

#include "conformance.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <time.h>

// LIMIT: seconds until a step fails; others: until a possible result is none
enum { BYTES = 4096, SHOWN = 10, LIMIT = 30, RETRY_LIMIT = 5, SHORT_LIMIT = 1 };
enum {
    ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
          IBV_ACCESS_REMOTE_ATOMIC
};

enum { OTHERS = 6 }; // functions that are no row of a table
enum { NO_WC = -1 }; // the status of a missing completion

struct side {
    struct rdma_cm_id *id;
    struct rdma_event_channel *events;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_mr *mr, *read_only; // both of `memory`
    bool is_disconnected;
    _Alignas(8) char memory[BYTES];
};

struct setup {
    int send_entries, recv_entries; // sizes of the CQs; 0: default
    bool has_srq;
    uint64_t send_ops;
};

static struct side a, b; // a connects and sends
static struct rdma_cm_id *listener;
static bool is_iwarp, has_native, has_srqs;

// ---- waiting -------------------------------------------------------------------------------

static bool is_past(const struct timespec *since, int seconds) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - since->tv_sec > seconds;
}

static struct ibv_wc next_wc(struct ibv_cq *cq, const char *what) {
    struct timespec since;
    struct ibv_wc wc = {0};
    clock_gettime(CLOCK_MONOTONIC, &since);
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
        errno = ETIMEDOUT;
        must(!is_past(&since, LIMIT), what);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return wc;
}

// A completion that some devices do not report.
static struct ibv_wc possible_wc(struct ibv_cq *cq, int seconds) {
    struct timespec since;
    struct ibv_wc wc = {.status = (enum ibv_wc_status)NO_WC};
    clock_gettime(CLOCK_MONOTONIC, &since);
    while (ibv_poll_cq(cq, 1, &wc) == 0 && !is_past(&since, seconds))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return wc;
}

// The last completion of a queue, after disconnect(). siw flushes queues before the connection
// ends, or not at all.
static struct ibv_wc last_wc(struct ibv_cq *cq, const char *what) {
    struct ibv_wc wc = {.status = (enum ibv_wc_status)NO_WC};
    if (!is_iwarp)
        return next_wc(cq, what);
    ibv_poll_cq(cq, 1, &wc);
    return wc;
}

static bool is_readable(int fd, int seconds) {
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, seconds * 1000) == 1;
}

static struct rdma_cm_event *next_event(struct side *side, enum rdma_cm_event_type type) {
    struct rdma_cm_event *event;
    for (;;) {
        errno = ETIMEDOUT;
        must(is_readable(side->events->fd, LIMIT), rdma_event_str(type));
        MUST(rdma_get_cm_event(side->events, &event));
        if (event->event == type)
            return event;
        side->is_disconnected |= event->event == RDMA_CM_EVENT_DISCONNECTED;
        rdma_ack_cm_event(event);
    }
}

static void await_end(struct side *side) {
    if (!side->is_disconnected)
        rdma_ack_cm_event(next_event(side, RDMA_CM_EVENT_DISCONNECTED));
    side->is_disconnected = true;
}

// ---- two connected sides -------------------------------------------------------------------

static void create_objects(struct side *side, const struct setup *setup, char filler) {
    struct ibv_context *const context = side->id->verbs;
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
    memset(side->memory, filler, BYTES);
    must((side->pd = ibv_alloc_pd(context)), "ibv_alloc_pd()");
    must((side->channel = ibv_create_comp_channel(context)), "ibv_create_comp_channel()");
    fcntl(side->channel->fd, F_SETFL, O_NONBLOCK);
    const int send_entries = setup->send_entries ? setup->send_entries : 16;
    const int recv_entries = setup->recv_entries ? setup->recv_entries : 16;
    side->send_cq = ibv_create_cq(context, send_entries, NULL, side->channel, 0);
    side->recv_cq = ibv_create_cq(context, recv_entries, NULL, side->channel, 0);
    must(side->send_cq && side->recv_cq, "ibv_create_cq()");
    must((side->mr = ibv_reg_mr(side->pd, side->memory, BYTES, ALL)), "ibv_reg_mr()");
    must((side->read_only = ibv_reg_mr(side->pd, side->memory, BYTES, 0)), "ibv_reg_mr()");
    if (setup->has_srq)
        must((side->srq = ibv_create_srq(side->pd, &srq)), "ibv_create_srq()");
    struct ibv_qp_init_attr_ex qp = {
        .send_cq = side->send_cq,
        .recv_cq = side->recv_cq,
        .srq = side->srq,
        .cap = {8, 8, 1, 1, 32},
        .qp_type = IBV_QPT_RC,
        .comp_mask =
            IBV_QP_INIT_ATTR_PD | (setup->send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
        .pd = side->pd,
        .send_ops_flags = setup->send_ops};
    MUST(rdma_create_qp_ex(side->id, &qp));
}

// Connects without RNR retries and with one retry of a request.
static void establish(const struct setup *setup) {
    struct rdma_conn_param param = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = 1, .rnr_retry_count = 0};
    struct rdma_cm_event *event;
    union address to = own;
    a = b = (struct side){.events = NULL};
    a.events = rdma_create_event_channel();
    b.events = rdma_create_event_channel();
    listener = bound_id();
    MUST(rdma_migrate_id(listener, b.events));
    MUST(rdma_listen(listener, 1));
    to.in.sin_port = listener->route.addr.src_sin.sin_port;
    a.id = new_id();
    MUST(rdma_resolve_addr(a.id, NULL, &to.any, 1000));
    MUST(rdma_resolve_route(a.id, 1000));
    create_objects(&a, setup, 'a');
    MUST(rdma_migrate_id(a.id, a.events));
    MUST(rdma_connect(a.id, &param));
    event = next_event(&b, RDMA_CM_EVENT_CONNECT_REQUEST);
    b.id = event->id;
    rdma_ack_cm_event(event);
    create_objects(&b, setup, 'b');
    MUST(rdma_accept(b.id, &param));
    rdma_ack_cm_event(next_event(&a, RDMA_CM_EVENT_ESTABLISHED));
    rdma_ack_cm_event(next_event(&b, RDMA_CM_EVENT_ESTABLISHED));
    fcntl(a.id->verbs->async_fd, F_SETFL, O_NONBLOCK);
}

static void disconnect(void) {
    rdma_disconnect(a.id);
    await_end(&b);
    rdma_disconnect(b.id);
    await_end(&a);
}

// Keeps the domain, because a case may have left regions in it.
static void release(struct side *side) {
    if (side->id->qp)
        rdma_destroy_qp(side->id);
    MUST(ibv_destroy_cq(side->send_cq));
    MUST(ibv_destroy_cq(side->recv_cq));
    MUST(ibv_destroy_comp_channel(side->channel));
    if (side->srq)
        MUST(ibv_destroy_srq(side->srq));
    MUST(ibv_dereg_mr(side->mr));
    MUST(ibv_dereg_mr(side->read_only));
    MUST(rdma_destroy_id(side->id));
    rdma_destroy_event_channel(side->events);
}

static void finish(void) {
    release(&a);
    MUST(rdma_destroy_id(listener));
    release(&b);
}

// ---- results -------------------------------------------------------------------------------

// Prints the result of a case whose name has two parts.
static void print_part(const char *name, const char *part, const char *format, ...) {
    va_list list;
    va_start(list, format);
    printf("%s%s\t", name, part);
    vprintf(format, list);
    putchar('\n');
    va_end(list);
}

static void show_wc(const char *name, const char *part, const struct ibv_wc *wc) {
    const bool is_receive = wc->opcode & IBV_WC_RECV;
    if ((int)wc->status == NO_WC)
        print_part(name, part, "none");
    else if (wc->status != IBV_WC_SUCCESS)
        print_part(name, part, "%s", ibv_wc_status_str(wc->status));
    else if (is_receive && wc->wc_flags & IBV_WC_WITH_IMM)
        print_part(name, part, "opcode %d, %u bytes, data %x", wc->opcode, wc->byte_len,
                   ntohl(wc->imm_data));
    else if (is_receive)
        print_part(name, part, "opcode %d, %u bytes", wc->opcode, wc->byte_len);
    else
        print_part(name, part, "opcode %d", wc->opcode);
}

// Prints the asynchronous events: first those of a, then those of b.
static void show_events(const char *name) {
    static const char *const names[] = {
        [IBV_EVENT_CQ_ERR] = "CQ_ERR",
        [IBV_EVENT_QP_FATAL] = "QP_FATAL",
        [IBV_EVENT_QP_REQ_ERR] = "QP_REQ_ERR",
        [IBV_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR",
        [IBV_EVENT_COMM_EST] = "COMM_EST",
        [IBV_EVENT_SQ_DRAINED] = "SQ_DRAINED",
        [IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ_LIMIT_REACHED",
        [IBV_EVENT_QP_LAST_WQE_REACHED] = "QP_LAST_WQE_REACHED",
    };
    unsigned seen[2][LENGTH(names)] = {0}, sum = 0;
    struct ibv_async_event event;
    while (ibv_get_async_event(a.id->verbs, &event) == 0) {
        const void *const about = event.element.qp;
        const bool is_of_b =
            about == b.id->qp || about == b.send_cq || about == b.recv_cq || about == b.srq;
        const unsigned type = event.event_type;
        must(type < LENGTH(names) && names[type], ibv_event_type_str(event.event_type));
        seen[is_of_b][type]++;
        ibv_ack_async_event(&event);
    }
    printf("%s: events\t", name);
    for (unsigned i = 0; i < 2 * LENGTH(names); i++)
        if (seen[i / LENGTH(names)][i % LENGTH(names)] > 0)
            printf("%s%s of %s", sum++ > 0 ? ", " : "", names[i % LENGTH(names)],
                   i < LENGTH(names) ? "a" : "b");
    puts(sum > 0 ? "" : "none");
}

static unsigned take_notifications(const struct side *side) {
    struct ibv_cq *cq;
    void *context;
    unsigned taken = 0;
    for (; ibv_get_cq_event(side->channel, &cq, &context) == 0; taken++)
        ibv_ack_cq_events(cq, 1);
    return taken;
}

// ---- requests ------------------------------------------------------------------------------

enum mistake {
    NONE,
    LOCAL_KEY,
    LOCAL_RANGE,
    LOCAL_ACCESS,
    REMOTE_KEY,
    REMOTE_RANGE,
    REMOTE_ACCESS,
    NO_RECEIVE,
    SHORT_RECEIVE,
    RECEIVE_KEY,
    RECEIVE_ACCESS
};

static int post_receive(enum mistake mistake) {
    struct ibv_sge sge = {(uintptr_t)b.memory, mistake == SHORT_RECEIVE ? 4 : 64, b.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;
    if (mistake == RECEIVE_KEY)
        sge.lkey ^= 0xff00;
    if (mistake == RECEIVE_ACCESS)
        sge.lkey = b.read_only->lkey;
    return b.srq ? ibv_post_srq_recv(b.srq, &wr, &bad) : ibv_post_recv(b.id->qp, &wr, &bad);
}

static int post_send(enum ibv_wr_opcode opcode, uint32_t length, enum mistake mistake,
                     unsigned flags) {
    struct ibv_sge sge = {(uintptr_t)a.memory, length, a.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = flags,
                             .imm_data = htonl(0x12345678)},
                       *bad;
    uint64_t address = (uintptr_t)b.memory;
    uint32_t rkey = b.mr->rkey;
    if (mistake == LOCAL_KEY)
        sge.lkey ^= 0xff00;
    if (mistake == LOCAL_RANGE)
        sge.addr += BYTES - 7;
    if (mistake == LOCAL_ACCESS)
        sge.lkey = a.read_only->lkey;
    if (mistake == REMOTE_KEY)
        rkey ^= 0xff00;
    if (mistake == REMOTE_RANGE)
        address += BYTES;
    if (mistake == REMOTE_ACCESS)
        rkey = b.read_only->rkey;
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = address;
        wr.wr.rdma.rkey = rkey;
    }
    return ibv_post_send(a.id->qp, &wr, &bad);
}

static int post_write(unsigned flags) {
    return post_send(IBV_WR_RDMA_WRITE, 8, NONE, flags);
}

// Posts a request and a receive of the other side; after a mistake also another request.
static void test_request(const char *name, enum ibv_wr_opcode opcode, uint32_t length,
                         enum mistake mistake, unsigned flags) {
    const bool is_harmless = mistake == NONE || length == 0 || flags & IBV_SEND_INLINE;
    struct ibv_wc wc = {0};
    establish(&(struct setup){0});
    if (mistake != NO_RECEIVE)
        MUST(post_receive(mistake));
    const int ret = post_send(opcode, length, mistake, flags | IBV_SEND_SIGNALED);
    print_part(name, ": post", "%s", result_of(ret));
    if (ret == 0) {
        wc = next_wc(a.send_cq, name);
        show_wc(name, ": completion", &wc);
    } else {
        print_part(name, ": completion", "not asked");
    }
    // Linux 7.3, siw_qp_sq_proc_tx(): does not check the access of a read.
    const bool is_read = wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_READ;
    const bool has_next = ret == 0 && !is_harmless && !is_read;
    if (has_next && is_iwarp)
        await_end(&a);
    const int next = has_next ? post_write(IBV_SEND_SIGNALED) : 0;
    const bool is_posted = has_next && next == 0;
    if (is_posted && !is_iwarp)
        wc = next_wc(a.send_cq, name);
    disconnect();
    if (is_posted && is_iwarp)
        wc = last_wc(a.send_cq, name);
    if (is_posted)
        show_wc(name, ": next", &wc);
    else if (has_next)
        print_part(name, ": next", "refused: %s", result_of(next));
    else if (!is_harmless)
        print_part(name, ": next", "not asked");
    if (mistake != NO_RECEIVE) {
        wc = last_wc(b.recv_cq, name);
        show_wc(name, ": receive", &wc);
    }
    print_part(name, ": data", "%.*s %.*s", SHOWN, a.memory, SHOWN, b.memory);
    show_events(name);
    finish();
}

static const struct {
    const char *name;
    enum ibv_wr_opcode opcode;
    uint32_t length;
    enum mistake mistake;
    unsigned flags;
} requests[] = {
    {"write", IBV_WR_RDMA_WRITE, 8, NONE, 0},
    {"write, inline", IBV_WR_RDMA_WRITE, 8, LOCAL_KEY, IBV_SEND_INLINE},
    {"write of nothing, remote key", IBV_WR_RDMA_WRITE, 0, REMOTE_KEY, 0},
    {"write with data", IBV_WR_RDMA_WRITE_WITH_IMM, 8, NONE, 0},
    {"read", IBV_WR_RDMA_READ, 8, NONE, 0},
    {"send", IBV_WR_SEND, 8, NONE, 0},
    {"send with data", IBV_WR_SEND_WITH_IMM, 8, NONE, 0},
    {"send of nothing", IBV_WR_SEND, 0, NONE, 0},
    {"add", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, NONE, 0},
    {"compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP, 8, NONE, 0},
    {"write, local key", IBV_WR_RDMA_WRITE, 8, LOCAL_KEY, 0},
    {"write, local range", IBV_WR_RDMA_WRITE, 8, LOCAL_RANGE, 0},
    {"send, local range", IBV_WR_SEND, 8, LOCAL_RANGE, 0},
    {"read, local range", IBV_WR_RDMA_READ, 8, LOCAL_RANGE, 0},
    {"read, local access", IBV_WR_RDMA_READ, 8, LOCAL_ACCESS, 0},
    {"add, local access", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, LOCAL_ACCESS, 0},
    {"write, remote key", IBV_WR_RDMA_WRITE, 8, REMOTE_KEY, 0},
    {"write, remote range", IBV_WR_RDMA_WRITE, 8, REMOTE_RANGE, 0},
    {"write, remote access", IBV_WR_RDMA_WRITE, 8, REMOTE_ACCESS, 0},
    {"write with data, remote key", IBV_WR_RDMA_WRITE_WITH_IMM, 8, REMOTE_KEY, 0},
    {"read, remote key", IBV_WR_RDMA_READ, 8, REMOTE_KEY, 0},
    {"read, remote range", IBV_WR_RDMA_READ, 8, REMOTE_RANGE, 0},
    {"read, remote access", IBV_WR_RDMA_READ, 8, REMOTE_ACCESS, 0},
    {"add, remote key", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, REMOTE_KEY, 0},
    {"add, remote access", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, REMOTE_ACCESS, 0},
    {"send, no receive", IBV_WR_SEND, 8, NO_RECEIVE, 0},
    {"send, short receive", IBV_WR_SEND, 8, SHORT_RECEIVE, 0},
    {"send, key of the receive", IBV_WR_SEND, 8, RECEIVE_KEY, 0},
    {"send, access of the receive", IBV_WR_SEND, 8, RECEIVE_ACCESS, 0},
    {"write with data, no receive", IBV_WR_RDMA_WRITE_WITH_IMM, 8, NO_RECEIVE, 0},
};

// ---- native operations ---------------------------------------------------------------------

#ifdef HEADERS_HAVE_FLUSH
#define FLUSH(qp) ((qp)->wr_flush)
#else // in headers before rdma-core 45, ibv_qp_ex ends before wr_flush
typedef void flush_fn(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);
#define FLUSH(qp) (*(flush_fn **)((qp) + 1))
#endif
enum { GLOBAL = 1, RANGE = 0, REGION = 1 }; // GLOBAL: type of a flush; others: its levels

static void test_native(const char *name, unsigned access, int level, uint64_t offset,
                        bool is_flush) {
    static const uint64_t word = 0x7878787878787878; // "xxxxxxxx"
    if (!has_native) {
        print_part(name, ": completion", "not asked");
        print_part(name, ": data", "not asked");
        print_part(name, ": events", "not asked");
        return;
    }
    establish(&(struct setup){.send_ops = SEND_FLUSH | SEND_ATOMIC_WRITE});
    struct ibv_qp_ex *const qp = ibv_qp_to_qp_ex(a.id->qp);
    const uint64_t address = (uintptr_t)b.memory;
    struct ibv_mr *const mr = ibv_reg_mr_iova2(b.pd, b.memory, BYTES, address, access);
    must(mr, "ibv_reg_mr_iova2()");
    ibv_wr_start(qp);
    qp->wr_id = 1;
    qp->wr_flags = IBV_SEND_SIGNALED;
    if (is_flush)
        FLUSH(qp)(qp, mr->rkey, address + offset, 8, GLOBAL, (uint8_t)level);
    else
        ibv_wr_atomic_write(qp, mr->rkey, address + offset, &word);
    MUST(ibv_wr_complete(qp));
    const struct ibv_wc wc = next_wc(a.send_cq, name);
    show_wc(name, ": completion", &wc);
    disconnect();
    print_part(name, ": data", "%.*s", SHOWN, b.memory);
    show_events(name);
    finish();
}

static const struct {
    const char *name;
    unsigned access;
    int level;
    uint64_t offset;
    bool is_flush;
} natives[] = {
    {"flush", FLUSH_GLOBAL, RANGE, 0, true},
    {"flush, remote access", ALL, RANGE, 0, true},
    {"flush, remote range", FLUSH_GLOBAL, RANGE, BYTES, true},
    {"flush of a region, remote range", FLUSH_GLOBAL, REGION, BYTES, true},
    {"atomic write", ALL, 0, 0, false},
    {"atomic write, remote access", FLUSH_GLOBAL, 0, 0, false},
    {"atomic write, remote range", ALL, 0, BYTES, false},
    {"atomic write, unaligned", ALL, 0, 4, false},
};

// ---- queues --------------------------------------------------------------------------------

static void test_unsignaled(void) {
    establish(&(struct setup){0});
    MUST(post_write(0));
    MUST(post_write(IBV_SEND_SIGNALED));
    next_wc(a.send_cq, "the signaled write");
    struct ibv_wc wc;
    print_value("unsignaled: more completions", ibv_poll_cq(a.send_cq, 1, &wc));
    disconnect();
    const int ret = post_write(0);
    print_result("unsignaled: post after the connection", ret);
    wc.status = (enum ibv_wc_status)NO_WC;
    if (ret == 0)
        wc = last_wc(a.send_cq, "the flushed write");
    show_wc("unsignaled: after the connection", "", &wc);
    finish();
}

// Fills all entries of a CQ, which can be more than requested, and adds a completion.
static void test_overrun(const char *name, bool is_receive) {
    establish(&(struct setup){.send_entries = is_receive ? 0 : 1,
                              .recv_entries = is_receive ? 1 : 0});
    struct ibv_cq *const cq = is_receive ? b.recv_cq : a.send_cq;
    const int posts = cq->cqe + 1;
    struct ibv_wc wc;
    int ret = 0;
    for (int i = 0; i < posts && ret == 0; i++) {
        if (is_receive)
            ret = post_receive(NONE);
        if (ret == 0)
            ret = post_send(is_receive ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, 8, NONE,
                            IBV_SEND_SIGNALED);
        if (ret == 0 && is_receive && i + 1 < posts) // the receive of b has completed
            next_wc(a.send_cq, name);
    }
    if (ret != 0) { // the queue of requests is shorter than the CQ
        print_part(name, ": completions", "not asked");
        disconnect();
        finish();
        return;
    }
    is_readable(a.id->verbs->async_fd, 2 * SHORT_LIMIT); // show_events() prints the event
    if (is_receive) {
        wc = possible_wc(a.send_cq, RETRY_LIMIT);
        show_wc(name, ": completion of a", &wc);
    }
    int completions = 0;
    for (; ibv_poll_cq(cq, 1, &wc) == 1; completions++)
        show_wc(name, ": completion", &wc);
    print_part(name, ": completions", "%d", completions);
    if (!is_receive) {
        ret = post_write(IBV_SEND_SIGNALED);
        wc = ret == 0 ? possible_wc(cq, SHORT_LIMIT)
                      : (struct ibv_wc){.status = (enum ibv_wc_status)NO_WC};
        show_wc(name, ": next", &wc);
    }
    disconnect();
    show_events(name);
    finish();
}

// Takes the events after the disconnection, so that a wrong one would have arrived.
static void test_notification(const char *name, int solicited_only, unsigned flags,
                              enum mistake mistake) {
    establish(&(struct setup){0});
    MUST(ibv_req_notify_cq(a.send_cq, solicited_only));
    MUST(ibv_req_notify_cq(b.recv_cq, solicited_only));
    for (int i = 0; i < 2; i++) {
        MUST(post_receive(mistake));
        MUST(post_send(IBV_WR_SEND, 8, mistake, flags | IBV_SEND_SIGNALED));
        next_wc(a.send_cq, name);
        next_wc(b.recv_cq, name);
        if (mistake != NONE)
            break;
    }
    print_part(name, ": of a", "%u", take_notifications(&a));
    print_part(name, ": of b", "%u", take_notifications(&b));
    disconnect();
    finish();
}

static void test_notifications(void) {
    test_notification("notify of any", 0, 0, NONE);
    test_notification("notify of solicited", 1, 0, NONE);
    test_notification("notify of solicited, solicited", 1, IBV_SEND_SOLICITED, NONE);
    test_notification("notify of solicited, errors", 1, 0, SHORT_RECEIVE);
    establish(&(struct setup){0});
    MUST(ibv_req_notify_cq(b.recv_cq, 1));
    MUST(post_receive(NONE));
    disconnect();
    last_wc(b.recv_cq, "the flushed receive");
    print_value("notify of solicited, flushed receive", take_notifications(&b));
    finish();
}

static void test_srq(void) {
    struct ibv_srq_attr attr = {.srq_limit = 2};
    struct ibv_wc wc;
    if (!has_srqs) {
        puts("srq: limit\tnot asked");
        return;
    }
    establish(&(struct setup){.has_srq = true});
    for (int i = 0; i < 3; i++)
        MUST(post_receive(NONE));
    print_result("srq: limit", ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT));
    for (int i = 0; i < 2; i++) {
        MUST(post_send(IBV_WR_SEND, 8, NONE, IBV_SEND_SIGNALED));
        next_wc(b.recv_cq, "a message");
    }
    print_result("srq: query", ibv_query_srq(b.srq, &attr));
    print_value("srq: limit after its event", attr.srq_limit);
    disconnect();
    print_value("srq: receives flushed", ibv_poll_cq(b.recv_cq, 1, &wc));
    show_events("srq");
    finish();
}

static void test_destroyed(void) {
    struct ibv_wc wc;
    establish(&(struct setup){0});
    MUST(ibv_req_notify_cq(a.send_cq, 0));
    MUST(post_write(IBV_SEND_SIGNALED));
    errno = ETIMEDOUT;
    must(is_readable(a.channel->fd, LIMIT), "the completion");
    disconnect();
    rdma_destroy_qp(a.id);
    print_value("destroyed QP: completions left", ibv_poll_cq(a.send_cq, 1, &wc));
    finish();
}

// ---- the table -----------------------------------------------------------------------------

static void test_send_overrun(void) {
    test_overrun("send CQ overrun", false);
}

static void test_receive_overrun(void) {
    test_overrun("receive CQ overrun", true);
}

// Each row of the two tables, and each function, is one entry.
static void run_case(size_t index) {
    static void (*const tests[])(void) = {
        test_unsignaled,    test_send_overrun, test_receive_overrun,
        test_notifications, test_srq,          test_destroyed};
    _Static_assert(LENGTH(tests) == OTHERS, "the number of functions");
    if (index < LENGTH(requests))
        test_request(requests[index].name, requests[index].opcode, requests[index].length,
                     requests[index].mistake, requests[index].flags);
    else if ((index -= LENGTH(requests)) < LENGTH(natives))
        test_native(natives[index].name, natives[index].access, natives[index].level,
                    natives[index].offset, natives[index].is_flush);
    else
        tests[index - LENGTH(natives)]();
}

static bool prepare(const char *address) {
    if (!set_address(address))
        return false;
    struct ibv_context *const context = bound_id()->verbs;
    struct ibv_device_attr_ex device;
    MUST(ibv_query_device_ex(context, NULL, &device));
    is_iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
    has_native = device.device_cap_flags_ex >> 38 & 7; // flushes and atomic writes
    has_srqs = device.orig_attr.max_srq > 0;
    return true;
}

const struct cases exchange_cases = {"exchange", prepare,
                                     LENGTH(requests) + LENGTH(natives) + OTHERS, run_case};
