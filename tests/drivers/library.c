// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// library.c -- posts through librpma over a user-space driver of rdma-core without hardware
// (stub.c), and compares the driver's memory with that after the same requests by hand
//
// Each case runs in two new processes of this one. In one of them librpma posts, in the other
// ibv_post_send() posts the requests that the manual pages describe. Both have the same
// addresses and object numbers, so the queues and doorbells of the driver must have the same
// bytes, and the results of librpma must be those that the manual pages assign to the results
// of the driver. The program prints a line per capacity, which ask.py compares with the
// recorded one, and a line per wrong case.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../sim/tests/drivers/program.h"
#include "../../sim/tests/drivers/stub.h"
#include "../unit/harness/operation_plain.h"

enum { MAX_LIST = 16, MAX_SGES = 4, MEMORY_BYTES = 1 << 24, MAX_ENTRIES = 4096 };

static _Alignas(4096) char memory[8192];

#define MUST(call) must((call) == 0, #call)

// ---- objects -------------------------------------------------------------------------------

struct shape { // of a connection
    uint32_t entries, sges, inlined;
    bool has_srq;
};
// The limits of a driver, which a first process finds.
static struct limits {
    struct shape shape; // of the connections of the cases
    uint32_t sends, receives, shared_receives, read_sges;
    bool has_atomics;
    bool has_native;      // flush and atomic write
    bool has_completions; // of the stub
} * limits;

// stub_complete() of the stub.
static bool (*complete_request)(const struct stub_completion *completion);

static struct rpma_peer *peer;
static struct rpma_conn *conn;
static struct rpma_srq *srq;
static struct rpma_mr_local *mr;
static struct rpma_mr_remote *remote;
static struct ibv_qp *qp;
static struct ibv_context *context;
static struct ibv_device_attr device;
static uint64_t remote_addr;
static uint32_t key; // local and remote, which are equal in the stub
static struct ibv_sge flush_target;
static struct rpma_peer_cfg *pcfg; // of the other side

static void no_log(enum rpma_log_level level, const char *file, const int line,
                   const char *function, const char *format, ...) {
    (void)level, (void)file, (void)line, (void)function, (void)format;
}

// Opens the device, and registers the memory, which is also that of the other side.
static void make_peer(void) {
    struct rpma_peer_cfg *sent;
    unsigned char packed[64];
    struct rpma_conn_private_data data = {packed, sizeof(packed)};
    uint32_t regions = 1;
    rpma_log_set_function(no_log);
    MUST(rpma_utils_get_ibv_context("192.168.0.1", RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
    MUST(ibv_query_device(context, &device));
    MUST(rpma_peer_new(context, &peer));
    MUST(rpma_mr_reg(peer, memory, sizeof(memory),
                     device.atomic_cap == IBV_ATOMIC_NONE ? 0xff : 0xff | RPMA_MR_USAGE_ATOMIC,
                     &mr));
    MUST(rpma_peer_cfg_new(&sent));
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(sent, true));
    MUST(rpma_conn_private_data_pack((const struct rpma_mr_local *const *)&mr, 1, sent, NULL, 0,
                                     &data));
    MUST(rpma_conn_private_data_unpack(&data, &remote, &regions, &pcfg, NULL, NULL));
    MUST(rpma_mr_remote_get_key(remote, &remote_addr, &key));
}

// Returns false, and errno is set, if the driver refuses the QP.
static bool connects(const struct shape *shape) {
    struct rpma_conn_cfg *cfg;
    struct rpma_conn_req *req;
    MUST(rpma_conn_cfg_new(&cfg));
    MUST(rpma_conn_cfg_set_sq_size(cfg, shape->entries));
    MUST(rpma_conn_cfg_set_rq_size(cfg, shape->entries));
    MUST(rpma_conn_cfg_set_cq_size(cfg, 1000));
    MUST(rpma_conn_cfg_set_max_sge(cfg, shape->sges));
    MUST(rpma_conn_cfg_set_inline_size(cfg, shape->inlined));
    if (shape->has_srq) {
        struct rpma_srq_cfg *srq_cfg;
        MUST(rpma_srq_cfg_new(&srq_cfg));
        MUST(rpma_srq_cfg_set_rq_size(srq_cfg, shape->entries));
        MUST(rpma_srq_cfg_set_max_sge(srq_cfg, shape->sges));
        if (rpma_srq_new(peer, srq_cfg, &srq) != 0)
            return false;
        MUST(rpma_conn_cfg_set_srq(cfg, srq));
    }
    errno = 0;
    if (rpma_conn_req_new(peer, "192.168.0.1", "7204", cfg, &req) != 0)
        return false;
    MUST(rpma_conn_req_connect(&req, NULL, &conn));
    MUST(rpma_conn_get_ibv_qp(conn, &qp));
    return true;
}

static void establish(void) {
    enum rpma_conn_event event;
    MUST(rpma_conn_next_event(conn, &event));
    must(event == RPMA_CONN_ESTABLISHED, "RPMA_CONN_ESTABLISHED");
    MUST(rpma_conn_apply_remote_peer_cfg(conn, pcfg));
}

// ---- stack of the driver -------------------------------------------------------------------

// cxgb4 copies a request from its stack to the queue, with bytes that it has not set
// (providers/cxgb4/qp.c, c4iw_post_send()). So that they are the same for both callers, the
// stack is cleared before.
static struct ibv_context_ops driver_ops;

static __attribute__((noinline)) void clear_stack(void) {
    volatile char bytes[4096];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = 0;
}

static int post_send(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    clear_stack();
    return driver_ops.post_send(to, wr, bad);
}

static int post_recv(struct ibv_qp *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    clear_stack();
    return driver_ops.post_recv(to, wr, bad);
}

static int post_srq_recv(struct ibv_srq *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    clear_stack();
    return driver_ops.post_srq_recv(to, wr, bad);
}

static void wrap_posts(void) {
    driver_ops = context->ops;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.post_srq_recv = post_srq_recv;
}

// ---- requests by hand ----------------------------------------------------------------------

// The memory that emulated flushes read into belongs to librpma.
static int capture_target(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    (void)of, (void)bad;
    flush_target = wr->sg_list[0];
    return 0;
}

static void find_flush_target(void) {
    if (limits->has_native)
        return;
    context->ops.post_send = capture_target;
    MUST(rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
                    NULL));
    context->ops.post_send = post_send;
    must(flush_target.length == 8, "the read of a flush");
}

static bool is_message(const struct rpma_work *work) {
    return work->type == RPMA_WORK_SEND || work->type == RPMA_WORK_SEND_WITH_IMM;
}

struct sends {
    struct ibv_send_wr wrs[MAX_LIST];
    struct ibv_sge sges[MAX_LIST][MAX_SGES];
    uint64_t values[MAX_LIST];
};

static void add_sge(struct ibv_send_wr *wr, const struct rpma_sge *sge) {
    if (sge->len > 0) // an empty SGE is left out: rpma_post(3)
        wr->sg_list[wr->num_sge++] =
            (struct ibv_sge){(uintptr_t)memory + sge->offset, (uint32_t)sge->len, key};
}

// The request of an operation according to the manual pages.
static void fill_send(struct sends *list, size_t i, const struct rpma_work *work) {
    struct ibv_send_wr *const wr = &list->wrs[i];
    *wr = (struct ibv_send_wr){.wr_id = (uintptr_t)work->op_context,
                               .sg_list = list->sges[i],
                               .opcode = operation_opcodes[work->type]};
    if (i > 0)
        list->wrs[i - 1].next = wr;
    if (work->flags & RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR)
        wr->send_flags |= IBV_SEND_SIGNALED;
    if (work->flags & RPMA_F_SOLICITED)
        wr->send_flags |= IBV_SEND_SOLICITED;
    if (work->flags & RPMA_F_INLINE)
        wr->send_flags |= IBV_SEND_INLINE;
    if (work->type == RPMA_WORK_SEND_WITH_IMM || work->type == RPMA_WORK_WRITE_WITH_IMM)
        wr->imm_data = htonl(work->imm);
    if (work->type == RPMA_WORK_FETCH_ADD || work->type == RPMA_WORK_COMPARE_SWAP) {
        const bool swaps = work->type == RPMA_WORK_COMPARE_SWAP;
        wr->send_flags |= IBV_SEND_FENCE;
        wr->wr.atomic.remote_addr = remote_addr + work->remote_offset;
        wr->wr.atomic.rkey = key;
        wr->wr.atomic.compare_add = swaps ? work->compare : work->value;
        wr->wr.atomic.swap = work->value;
    } else if (!is_message(work)) {
        wr->wr.rdma.remote_addr = remote_addr + work->remote_offset;
        wr->wr.rdma.rkey = key;
    }
    if (work->type == RPMA_WORK_FLUSH) {
        wr->sg_list[wr->num_sge++] = flush_target;
    } else if (work->type == RPMA_WORK_ATOMIC_WRITE) {
        list->values[i] = work->value;
        wr->send_flags |= IBV_SEND_INLINE | IBV_SEND_FENCE;
        wr->sg_list[wr->num_sge++] =
            (struct ibv_sge){(uintptr_t)&list->values[i], sizeof(list->values[i]), 0};
    } else if (work->nsge == 0) {
        add_sge(wr, &work->local);
    } else {
        for (uint32_t j = 0; j < work->nsge; j++)
            add_sge(wr, &work->sgl[j]);
    }
}

// ---- cases ---------------------------------------------------------------------------------

enum method { PLAIN, POST, ADDED, SET, REPEATED, METHODS };
static const char *const methods[METHODS] = {"plain calls", "rpma_post()", "rpma_batch_add()",
                                             "rpma_batch_set()", "rpma_batch_post() twice"};
enum moment { ESTABLISHED, BEFORE, AFTER };

struct scenario {
    char name[120];
    struct shape shape;
    enum moment moment;
    enum method method;
    enum queue { SENDS, RECEIVES, SHARED_RECEIVES } queue;
    uint32_t queued; // requests in the queue before, of `most` that it holds
    uint32_t most;   // 0: the queue has room for the operations
    struct rpma_work works[MAX_LIST];
    struct rpma_sge sges[MAX_LIST][MAX_SGES];
    uint32_t count;
    int refused;    // the code with which librpma refuses the last operation, which it does not
                    // post
    bool continues; // after a failure, with an operation that the driver accepts
    // The stub completes the operations, the first one with this status, and they are polled.
    bool is_completed;
    enum ibv_wc_status status;
};

// What a process leaves. Both processes of a case must leave the same.
struct outcome {
    int result; // of librpma; by hand, the documented one
    uint32_t posted;
    bool is_done;
    int signal; // with which the driver has ended the process, or 0
    size_t size;
    char memory[MEMORY_BYTES];
};
static struct outcome *outcome;

static int post_batch(const struct scenario *s) {
    const struct rpma_work other = {.type = RPMA_WORK_SEND, .flags = RPMA_F_COMPLETION_ALWAYS};
    struct rpma_batch *batch;
    uint32_t size, posted;
    int ret = 0;
    MUST(rpma_batch_new(conn, MAX_LIST, &batch));
    for (uint32_t i = 0; i < s->count && ret == 0; i++)
        ret = rpma_batch_add(batch, s->method == SET ? &other : &s->works[i]);
    for (uint32_t i = 0; i < s->count && ret == 0 && s->method == SET; i++)
        ret = rpma_batch_set(batch, i, &s->works[i]);
    if (ret) { // what the batch has is posted
        MUST(rpma_batch_get_size(batch, &size, NULL));
        MUST(rpma_batch_post(batch, &outcome->posted));
        must(size == outcome->posted, "rpma_batch_get_size()");
        return ret;
    }
    for (int i = 0; i < (s->method == REPEATED ? 2 : 1) && ret == 0; i++) {
        ret = rpma_batch_post(batch, &posted);
        outcome->posted += posted;
    }
    return ret;
}

static int receive(struct scenario *s) {
    struct rpma_receive list[MAX_LIST];
    for (uint32_t i = 0; i < s->count; i++)
        list[i] = (struct rpma_receive){s->works[i].local, s->works[i].sgl, s->works[i].nsge, 0,
                                        s->works[i].op_context};
    if (s->method == POST)
        return s->queue == RECEIVES ? rpma_recv_many(conn, list, s->count, &outcome->posted)
                                    : rpma_srq_recv_many(srq, list, s->count, &outcome->posted);
    int ret = 0;
    for (uint32_t i = 0; i < s->count && ret == 0; i++) {
        const struct rpma_sge *const at = &list[i].local;
        ret = s->queue == RECEIVES
                  ? rpma_recv(conn, mr, at->offset, at->len, list[i].op_context)
                  : rpma_srq_recv(srq, mr, at->offset, at->len, list[i].op_context);
        outcome->posted += ret == 0;
    }
    return ret;
}

static void post_by_library(struct scenario *s) {
    if (s->queue != SENDS) {
        outcome->result = receive(s);
    } else if (s->method == POST) {
        outcome->result = rpma_post(conn, s->works, s->count, &outcome->posted);
        if (s->continues && outcome->result) {
            uint32_t posted = outcome->posted;
            s->works[posted].flags &= ~RPMA_F_INLINE;
            MUST(rpma_post(conn, &s->works[posted], s->count - posted, &posted));
        }
    } else if (s->method == PLAIN) {
        for (uint32_t i = 0; i < s->count && outcome->result == 0; i++) {
            outcome->result = operation_plain(&s->works[i], conn);
            outcome->posted += outcome->result == 0;
        }
    } else {
        outcome->result = post_batch(s);
    }
}

static int post_receives(const struct scenario *s, uint32_t first, uint32_t end) {
    static struct sends list; // its SGEs are those of receives
    struct ibv_recv_wr wrs[MAX_LIST], *bad = NULL;
    for (uint32_t i = first; i < end; i++) {
        fill_send(&list, i - first, &s->works[i]);
        wrs[i - first] = (struct ibv_recv_wr){.wr_id = (uintptr_t)s->works[i].op_context,
                                              .next = i + 1 < end ? &wrs[i - first + 1] : NULL,
                                              .sg_list = list.wrs[i - first].sg_list,
                                              .num_sge = list.wrs[i - first].num_sge};
    }
    const int error = s->queue == RECEIVES ? ibv_post_recv(qp, wrs, &bad)
                                           : ibv_post_srq_recv(qp->srq, wrs, &bad);
    outcome->posted += error ? (uint32_t)(bad - wrs) : end - first;
    return error;
}

#ifdef DRIVERS_NATIVE
static bool is_native(const struct rpma_work *work) {
    return limits->has_native &&
           (work->type == RPMA_WORK_FLUSH || work->type == RPMA_WORK_ATOMIC_WRITE);
}

static void build_request(struct ibv_qp_ex *ex, const struct rpma_work *work,
                          const struct ibv_send_wr *wr) {
    const uint64_t addr = wr->wr.rdma.remote_addr;
    ex->wr_id = wr->wr_id;
    ex->wr_flags = wr->send_flags;
    if (work->type == RPMA_WORK_FLUSH) {
        ibv_wr_flush(ex, key, addr, work->flush_len, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
    } else if (work->type == RPMA_WORK_ATOMIC_WRITE) {
        ex->wr_flags &= ~(unsigned)IBV_SEND_INLINE;
        ibv_wr_atomic_write(ex, key, addr, &work->value);
    } else {
        if (work->type == RPMA_WORK_WRITE)
            ibv_wr_rdma_write(ex, key, addr);
        else
            ibv_wr_send(ex);
        ibv_wr_set_sge_list(ex, (size_t)wr->num_sge, wr->sg_list);
    }
}

// A list with a native operation uses the builders, which accept all of it or nothing: returns
// false if it has none.
static bool posts_native(const struct scenario *s, const struct sends *list, uint32_t first,
                         uint32_t end, int *error) {
    bool has_native = false;
    for (uint32_t i = first; i < end; i++)
        has_native |= is_native(&s->works[i]);
    if (!has_native)
        return false;
    struct ibv_qp_ex *const ex = ibv_qp_to_qp_ex(qp);
    must(ex != NULL, "ibv_qp_to_qp_ex()");
    ibv_wr_start(ex);
    for (uint32_t i = first; i < end; i++)
        build_request(ex, &s->works[i], &list->wrs[i - first]);
    *error = ibv_wr_complete(ex);
    outcome->posted += *error ? 0 : end - first;
    return true;
}
#endif

// Posts the operations from `first` to `end` as one list. Returns the driver's result.
static int post_list(const struct scenario *s, uint32_t first, uint32_t end) {
    static struct sends list;
    struct ibv_send_wr *bad = NULL;
    if (first == end)
        return 0;
    if (s->queue != SENDS)
        return post_receives(s, first, end);
    for (uint32_t i = first; i < end; i++)
        fill_send(&list, i - first, &s->works[i]);
    int error;
#ifdef DRIVERS_NATIVE
    if (posts_native(s, &list, first, end, &error))
        return error;
#endif
    error = ibv_post_send(qp, list.wrs, &bad);
    // Without bad_wr, the doorbell has failed, and all are in the queue. libsiw returns 0 for a
    // refused request if it accepted another one.
    if (bad)
        outcome->posted += (uint32_t)(bad - list.wrs);
    else if (!error || s->method != PLAIN)
        outcome->posted += end - first;
    return bad && !error ? EINVAL : error;
}

static void post_by_hand(struct scenario *s) {
    const uint32_t count = s->refused ? s->count - 1 : s->count;
    int error = 0;
    if (s->method == PLAIN)
        for (uint32_t i = 0; i < count && error == 0; i++)
            error = post_list(s, i, i + 1);
    else
        for (int i = 0; i < (s->method == REPEATED ? 2 : 1) && error == 0; i++)
            error = post_list(s, 0, count);
    outcome->result = !error                              ? s->refused
                      : s->most > 0 && s->method != PLAIN ? RPMA_E_AGAIN
                                                          : RPMA_E_PROVIDER;
    if (s->continues && error) {
        const uint32_t posted = outcome->posted;
        s->works[posted].flags &= ~RPMA_F_INLINE;
        must(post_list(s, posted, s->count) == 0, "ibv_post_send()");
        outcome->posted = posted;
    }
}

// The objects of the operations exist only in this process.
static void complete_requests(struct scenario *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        struct rpma_work *const work = &s->works[i];
        if (!is_message(work))
            work->remote = remote;
        work->local.mr = mr;
        work->sgl = work->nsge > 0 ? s->sges[i] : NULL;
        for (uint32_t j = 0; j < MAX_SGES; j++)
            s->sges[i][j].mr = s->sges[i][j].len > 0 ? mr : NULL;
    }
}

static int flags_of_one = RPMA_F_COMPLETION_ALWAYS;

static int post_one(enum queue queue) {
    return queue == SENDS      ? rpma_write(conn, remote, 0, mr, 0, 8, flags_of_one, NULL)
           : queue == RECEIVES ? rpma_recv(conn, mr, 0, 8, NULL)
                               : rpma_srq_recv(srq, mr, 0, 8, NULL);
}

static void check_empty_cq(void) {
    struct rpma_cq *cq;
    struct ibv_wc wc;
    MUST(rpma_conn_get_cq(conn, &cq));
    must(rpma_cq_get_wc(cq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION, "rpma_cq_get_wc()");
}

// Completes all operations, and leaves the completions that a poll returns.
static void poll(const struct scenario *s, bool by_hand) {
    static const enum stub_queue queues[] = {[SENDS] = STUB_SENDS,
                                             [RECEIVES] = STUB_RECEIVES,
                                             [SHARED_RECEIVES] = STUB_SHARED_RECEIVES};
    struct ibv_wc *const wcs = (struct ibv_wc *)outcome->memory;
    const bool is_good = s->status == IBV_WC_SUCCESS;
    const int most = (int)s->count + 1;
    struct rpma_cq *cq;
    for (uint32_t i = 0; i < s->count; i++)
        complete_request(&(struct stub_completion){
            .queue = queues[s->queue],
            .index = i,
            .status = i == 0 || is_good ? s->status : IBV_WC_WR_FLUSH_ERR,
            .opcode = s->queue != SENDS                    ? IBV_WC_RECV
                      : s->works[i].type == RPMA_WORK_READ ? IBV_WC_RDMA_READ
                                                           : IBV_WC_SEND,
            .length = is_good ? 8 : 0});
    MUST(rpma_conn_get_cq(conn, &cq));
    outcome->size = (size_t)most * sizeof(*wcs);
    memset(wcs, 0x5a, outcome->size); // the driver leaves some members
    int got = by_hand ? ibv_poll_cq(qp->send_cq, most, wcs) : 0;
    if (!by_hand)
        MUST(rpma_cq_get_wc(cq, most, wcs, &got));
    must(got == (int)s->count, "a completion for each operation");
    check_empty_cq();
}

static void run_scenario(struct scenario *s, bool by_hand) {
    size_t (*copy)(void *, size_t);
    *(void **)&copy = dlsym(RTLD_DEFAULT, "stub_memory");
    must(copy != NULL, "stub_memory() of the stub");
    make_peer();
    wrap_posts();
    must(connects(&s->shape), "rpma_conn_req_new()");
    if (s->moment != BEFORE) {
        establish();
        find_flush_target();
    }
    if (s->moment == AFTER)
        MUST(rpma_conn_disconnect(conn));
    complete_requests(s);
    for (uint32_t i = 0; i < s->queued; i++)
        MUST(post_one(s->queue));
    (by_hand ? post_by_hand : post_by_library)(s);
    if (s->is_completed) {
        poll(s, by_hand);
    } else {
        outcome->size = copy(outcome->memory, MEMORY_BYTES);
        check_empty_cq();
    }
    outcome->is_done = true;
}

static void *shared_memory(size_t size) {
    void *const made =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(made != MAP_FAILED, "mmap()");
    return made;
}

// Returns 0 in a new process. The other one waits for the end of the new one.
static pid_t new_process(int *status) {
    fflush(stdout);
    const pid_t child = fork();
    must(child >= 0, "fork()");
    if (child > 0)
        must(waitpid(child, status, 0) == child, "waitpid()");
    return child;
}

static struct outcome *outcomes[2];

static const struct outcome *in_process(struct scenario *s, bool by_hand) {
    outcome = outcomes[by_hand];
    outcome->result = 0;
    outcome->posted = 0;
    outcome->is_done = false;
    int status;
    if (new_process(&status) == 0) {
        run_scenario(s, by_hand);
        _exit(0);
    }
    outcome->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return outcome;
}

// Prints a line: the case, a tab, and "equal" or the difference.
static void check_scenario(struct scenario *s) {
    const struct outcome *const got = in_process(s, false), *const expected =
                                                                in_process(s, true);
    size_t same = 0;
    while (same < got->size && got->memory[same] == expected->memory[same])
        same++;
    printf("%s\t", s->name);
    // bnxt_re 56 divides by the MTU, which is 0 before the connection (known.tsv).
    if (s->moment == BEFORE && got->signal != 0 && got->signal == expected->signal)
        printf("equal\n");
    else if (!got->is_done || !expected->is_done)
        printf("the process that posts by %s does not end\n",
               got->is_done ? "hand" : "librpma");
    else if (got->result != expected->result || got->posted != expected->posted)
        printf("librpma returns %d and posts %u, expected %d and %u\n", got->result,
               got->posted, expected->result, expected->posted);
    else if (got->size == 0 || got->size != expected->size || same < got->size)
        printf("of %zu and %zu bytes of the driver, the first %zu are equal\n", got->size,
               expected->size, same);
    else
        printf("equal\n");
}

// ---- operations ----------------------------------------------------------------------------

enum { LAST_TYPE = RPMA_WORK_COMPARE_SWAP };
static const char *const types[] = {
    [RPMA_WORK_READ] = "read",
    [RPMA_WORK_WRITE] = "write",
    [RPMA_WORK_WRITE_WITH_IMM] = "write with immediate data",
    [RPMA_WORK_ATOMIC_WRITE] = "atomic write",
    [RPMA_WORK_FLUSH] = "flush",
    [RPMA_WORK_SEND] = "send",
    [RPMA_WORK_SEND_WITH_IMM] = "send with immediate data",
    [RPMA_WORK_FETCH_ADD] = "fetch and add",
    [RPMA_WORK_COMPARE_SWAP] = "compare and swap",
};

static struct rpma_work *add_work(struct scenario *s, enum rpma_work_type type) {
    struct rpma_work *const work = &s->works[s->count];
    for (size_t j = 0; j < MAX_SGES; j++) // the second one is empty
        s->sges[s->count][j] = (struct rpma_sge){NULL, 100 * j, j == 1 ? 0 : 5 + j};
    s->sges[s->count][1].offset = 0;
    *work = (struct rpma_work){.type = type,
                               .imm = 0x12345678,
                               .remote_offset = 16,
                               .local = {NULL, 24, 8},
                               .flush_len = 8,
                               .compare = 0x1122334455667788,
                               .flags = RPMA_F_COMPLETION_ALWAYS,
                               .op_context = (void *)(uintptr_t)(0x100 + s->count)};
    memcpy(&work->value, "8 bytes", sizeof(work->value));
    s->count++;
    return work;
}

// A list of three with the type in its middle, or only one operation for a plain function.
static struct rpma_work *add_three(struct scenario *s, enum rpma_work_type type) {
    if (s->method != PLAIN)
        add_work(s, RPMA_WORK_WRITE);
    struct rpma_work *const work = add_work(s, type);
    if (s->method != PLAIN && !s->refused)
        add_work(s, RPMA_WORK_SEND);
    return work;
}

#define NAME(s, ...) snprintf((s)->name, sizeof((s)->name), __VA_ARGS__)

static void check_operation(enum method method, enum rpma_work_type type, int more_flags) {
    const bool is_atomic = type == RPMA_WORK_FETCH_ADD || type == RPMA_WORK_COMPARE_SWAP;
    struct scenario s = {.shape = limits->shape,
                         .method = method,
                         .refused = is_atomic && !limits->has_atomics ? RPMA_E_NOSUPP : 0};
    // libmana posts the address of inline data, which is one of librpma or of this program.
    const bool copies_inline = strcmp(getenv("STUB_DRIVER"), "mana") != 0;
    if ((is_atomic && method == PLAIN) || (s.refused && method > ADDED) ||
        (type == RPMA_WORK_ATOMIC_WRITE && !copies_inline))
        return;
    add_three(&s, type)->flags = RPMA_F_COMPLETION_ON_ERROR | more_flags;
    NAME(&s, "%s, flags 0x%x, %s", types[type], (unsigned)s.works[s.count / 2].flags,
         methods[method]);
    check_scenario(&s);
}

static void check_operations(void) {
    for (enum method method = PLAIN; method < METHODS; method++)
        for (enum rpma_work_type type = RPMA_WORK_READ; (int)type <= LAST_TYPE; type++) {
            const bool is_signalling = type == RPMA_WORK_SEND ||
                                       type == RPMA_WORK_SEND_WITH_IMM ||
                                       type == RPMA_WORK_WRITE_WITH_IMM;
            check_operation(method, type, 0);
            check_operation(method, type, RPMA_F_COMPLETION_ALWAYS);
            if (is_signalling)
                check_operation(method, type, RPMA_F_COMPLETION_ALWAYS | RPMA_F_SOLICITED);
            if (is_signalling || type == RPMA_WORK_WRITE)
                check_operation(method, type, RPMA_F_COMPLETION_ALWAYS | RPMA_F_INLINE);
        }
}

static void check_sges(enum method method, enum rpma_work_type type) {
    for (uint32_t sges = 1; sges <= limits->shape.sges + 1; sges++) {
        const uint32_t most = type == RPMA_WORK_READ && limits->read_sges < limits->shape.sges
                                  ? limits->read_sges
                                  : limits->shape.sges;
        struct scenario s = {.shape = limits->shape,
                             .method = method,
                             .refused = sges > most ? RPMA_E_INVAL : 0};
        add_three(&s, type)->nsge = sges;
        NAME(&s, "%s, %u SGEs, %s", types[type], sges, methods[method]);
        if (!s.refused || method <= ADDED)
            check_scenario(&s);
    }
}

static void check_lists(void) {
    static const enum rpma_work_type with_lists[] = {RPMA_WORK_READ, RPMA_WORK_WRITE,
                                                     RPMA_WORK_WRITE_WITH_IMM, RPMA_WORK_SEND,
                                                     RPMA_WORK_SEND_WITH_IMM};
    for (enum method method = POST; method < METHODS; method++)
        for (size_t i = 0; i < LENGTH(with_lists); i++)
            check_sges(method, with_lists[i]);
}

static void check_receives(enum queue queue) {
    static const char *const names[] = {
        [RECEIVES] = "receive", [SHARED_RECEIVES] = "receive of the SRQ"};
    const uint32_t most = queue == RECEIVES ? limits->receives : limits->shared_receives;
    for (enum method method = PLAIN; method <= POST; method++)
        for (uint32_t sges = 0; sges <= (method == POST ? limits->shape.sges + 1 : 0); sges++) {
            struct scenario s = {.shape = limits->shape,
                                 .method = method,
                                 .queue = queue,
                                 .refused = sges > limits->shape.sges ? RPMA_E_INVAL : 0};
            s.shape.has_srq = queue == SHARED_RECEIVES;
            add_work(&s, RPMA_WORK_SEND);
            add_work(&s, RPMA_WORK_SEND)->nsge = sges;
            NAME(&s, "%s, %u SGEs, %s", names[queue], sges,
                 method == POST ? "list" : "plain calls");
            check_scenario(&s);
            s.queued = most - 1;
            s.most = most;
            NAME(&s, "%s, %u SGEs, 1 free entry, %s", names[queue], sges,
                 method == POST ? "list" : "plain calls");
            if (!s.refused)
                check_scenario(&s);
        }
}

// The middle one of the three operations may be native.
static void check_full(enum method method, enum rpma_work_type type) {
    for (uint32_t room = 0; room <= 1; room++) {
        struct scenario s = {.shape = limits->shape,
                             .method = method,
                             .queued = limits->sends - room,
                             .most = limits->sends};
        add_work(&s, RPMA_WORK_WRITE);
        add_work(&s, type);
        add_work(&s, RPMA_WORK_WRITE);
        NAME(&s, "write, %s, write, %u free entries, %s", types[type], room, methods[method]);
        check_scenario(&s);
    }
}

// Fills the queue, gets completions of the stub, and continues a batch that was refused in
// part.
static void complete_some(void) {
    struct scenario s = {.shape = limits->shape, .method = POST};
    struct rpma_batch *batch;
    struct rpma_cq *cq;
    struct ibv_wc wc[4];
    uint32_t posted;
    int got;
    for (uint32_t i = 0; i < 3; i++)
        add_work(&s, RPMA_WORK_WRITE);
    complete_requests(&s);
    MUST(rpma_batch_new(conn, s.count, &batch));
    for (uint32_t i = 0; i < s.count; i++)
        MUST(rpma_batch_add(batch, &s.works[i]));
    for (uint32_t i = 0; i + 1 < limits->sends; i++)
        MUST(rpma_write(conn, remote, 0, mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, &wc[i % 4]));
    must(rpma_batch_post(batch, &posted) == RPMA_E_AGAIN && posted == 1, "the full queue");
    for (uint32_t i = 0; i < 4; i++)
        complete_request(
            &(struct stub_completion){.index = i, .opcode = IBV_WC_RDMA_WRITE, .length = 8});
    MUST(rpma_conn_get_cq(conn, &cq));
    MUST(rpma_cq_get_wc(cq, 1, &wc[0], NULL));
    must(rpma_cq_get_wc(cq, 4, &wc[1], &got) == 0 && got == 3, "3 completions");
    for (uint32_t i = 0; i < 4; i++)
        must(wc[i].wr_id == (uintptr_t)&wc[i] && wc[i].status == IBV_WC_SUCCESS &&
                 wc[i].opcode == IBV_WC_RDMA_WRITE && wc[i].qp_num == qp->qp_num,
             "the completion of a write");
    must(rpma_cq_get_wc(cq, 1, wc, NULL) == RPMA_E_NO_COMPLETION, "an empty CQ");
    must(rpma_batch_post(batch, &posted) == 0 && posted == 2, "the rest of the batch");
    must(rpma_batch_post(batch, &posted) == RPMA_E_AGAIN && posted == 2, "4 free entries");
}

// Two operations, of which the first one has each status: rpma_cq_get_wc() returns what the
// driver does.
static void check_statuses(void) {
    static const struct {
        enum queue queue;
        enum ibv_wc_status status;
    } all[] = {{SENDS, IBV_WC_SUCCESS},           {SENDS, IBV_WC_REM_ACCESS_ERR},
               {SENDS, IBV_WC_LOC_PROT_ERR},      {SENDS, IBV_WC_REM_INV_REQ_ERR},
               {SENDS, IBV_WC_RNR_RETRY_EXC_ERR}, {SENDS, IBV_WC_RETRY_EXC_ERR},
               {SENDS, IBV_WC_WR_FLUSH_ERR},      {RECEIVES, IBV_WC_SUCCESS},
               {RECEIVES, IBV_WC_LOC_LEN_ERR},    {RECEIVES, IBV_WC_LOC_PROT_ERR},
               {RECEIVES, IBV_WC_WR_FLUSH_ERR},   {SHARED_RECEIVES, IBV_WC_SUCCESS}};
    static const char *const names[] = {"reads", "receives", "receives of the SRQ"};
    for (size_t i = 0; i < LENGTH(all); i++) {
        struct scenario s = {.shape = limits->shape,
                             .method = POST,
                             .queue = all[i].queue,
                             .is_completed = true,
                             .status = all[i].status};
        s.shape.has_srq = s.queue == SHARED_RECEIVES;
        add_work(&s, s.queue == SENDS ? RPMA_WORK_READ : RPMA_WORK_SEND);
        add_work(&s, RPMA_WORK_SEND);
        NAME(&s, "completions of %s: %s", names[s.queue], ibv_wc_status_str(s.status));
        if (!s.shape.has_srq || limits->shared_receives > 0)
            check_scenario(&s);
    }
}

static void check_completions(const char *name, void (*run_case)(void)) {
    if (new_process(NULL) != 0)
        return;
    make_peer();
    must(connects(&limits->shape), "rpma_conn_req_new()");
    establish();
    if (limits->has_completions) {
        printf("%s\t", name);
        run_case();
        printf("equal\n");
    }
    exit(0);
}

static void check_failures(void) {
    for (enum method method = PLAIN; method < METHODS; method++) {
        check_full(method, RPMA_WORK_WRITE);
        check_full(method, RPMA_WORK_FLUSH);
        for (enum moment moment = BEFORE; moment <= AFTER; moment++) {
            struct scenario s = {.shape = limits->shape, .moment = moment, .method = method};
            add_work(&s, RPMA_WORK_WRITE);
            NAME(&s, "write %s the connection, %s", moment == BEFORE ? "before" : "after",
                 methods[method]);
            check_scenario(&s);
        }
    }
    struct scenario s = {.shape = limits->shape, .method = POST, .continues = true};
    struct rpma_work *const work = add_three(&s, RPMA_WORK_WRITE);
    work->flags |= RPMA_F_INLINE;
    work->local.len = 3000;
    NAME(&s, "3000 bytes inline, then the rest without, rpma_post()");
    check_scenario(&s);
}

// ---- limits of the driver ------------------------------------------------------------------

static int fill_queue(enum queue queue) {
    int count = 0;
    while (count < MAX_ENTRIES && post_one(queue) == 0)
        count++;
    return count;
}

// Prints how many requests librpma posts to queues of several sizes. libmana 56 has room for
// more without completions, of which questions.c has none.
static void ask_sizes(void) {
    flags_of_one = RPMA_F_COMPLETION_ON_ERROR;
    static const uint32_t sizes[] = {1, 4, 13, 40, 100}; // those of questions.c
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        const struct shape shape = {.entries = sizes[i], .sges = 1, .inlined = 64};
        char name[80];
        snprintf(name, sizeof(name), "queues of %u, 1 SGEs, 64 bytes inline", sizes[i]);
        if (!connects(&shape)) {
            printf("%s\t%s\n", name, strerrorname_np(errno));
            continue;
        }
        establish();
        printf("%s: sends\t%d\n", name, fill_queue(SENDS));
        printf("%s: receives\t%d\n", name, fill_queue(RECEIVES));
    }
    flags_of_one = RPMA_F_COMPLETION_ALWAYS;
}

static void ask_limits(void) {
    struct shape shape = {.entries = 8, .sges = 3, .inlined = 32};
    make_peer();
    while (!connects(&shape)) { // erdma has one SGE for a receive
        if (--shape.sges == 0) {
            printf("RC QP\t%s\n", strerrorname_np(errno));
            return;
        }
    }
    establish();
#ifdef DRIVERS_NATIVE
    struct ibv_device_attr_ex attr;
    MUST(ibv_query_device_ex(context, NULL, &attr));
    const bool has_native = (attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_PERSISTENT) != 0;
#else
    const bool has_native = false;
#endif
    *limits = (struct limits){.shape = shape,
                              .sends = (uint32_t)fill_queue(SENDS),
                              .receives = (uint32_t)fill_queue(RECEIVES),
                              .read_sges = (uint32_t)device.max_sge_rd,
                              .has_atomics = device.atomic_cap != IBV_ATOMIC_NONE,
                              .has_native = has_native,
                              .has_completions = complete_request(NULL)};
    ask_sizes();
    shape.has_srq = true;
    if (device.max_srq > 0 && connects(&shape))
        limits->shared_receives = (uint32_t)fill_queue(SHARED_RECEIVES);
}

int main(int argc, char **argv) {
    print_library();
    if (argc == 2 && strcmp(argv[1], "--library") == 0)
        return 0;
    ibv_free_device_list(ibv_get_device_list(NULL)); // loads the drivers, once
    *(void **)&complete_request = dlsym(RTLD_DEFAULT, "stub_complete");
    must(complete_request != NULL, "stub_complete() of the stub");
    limits = shared_memory(sizeof(*limits));
    for (size_t i = 0; i < LENGTH(outcomes); i++)
        outcomes[i] = shared_memory(sizeof(*outcomes[i]));
    if (new_process(NULL) == 0) {
        ask_limits();
        exit(0);
    }
    if (limits->sends == 0) // the driver refuses each QP, with the error number that it prints
        return 0;
    check_operations();
    check_lists();
    check_receives(RECEIVES);
    if (limits->shared_receives > 0)
        check_receives(SHARED_RECEIVES);
    check_failures();
    check_completions("completions, and the rest of a batch", complete_some);
    if (limits->has_completions)
        check_statuses();
    return 0;
}
