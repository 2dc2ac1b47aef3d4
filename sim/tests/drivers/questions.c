// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// questions.c -- asks the first device of the machine about its queues, and prints a line per
// question: its name, a tab, the result. The device is a user-space driver of rdma-core without
// hardware (stub.c), or a device of rdma-sim.

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "stub.h"

enum { MAX_LIST = 4, MAX_SGES = 64, MAX_ENTRIES = 4096 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_device_attr device;
static _Alignas(4096) char memory[65536];

// ---- results -------------------------------------------------------------------------------

static const char *name_of(int error) {
    static char text[40];
    const char *const name = strerrorname_np(error < 0 ? -error : error);
    snprintf(text, sizeof(text), "%s%s", error < 0 ? "-" : "", name ? name : "unknown error");
    return error == 0 ? "0" : text;
}

// The result of a post. `bad` is the request of the list that bad_wr names: its number from 1,
// 0 for NULL, -1 if the call did not set it.
struct result {
    int error, bad;
};

static void print_result(const char *name, struct result result) {
    printf("%s\t%s, bad_wr ", name, name_of(result.error));
    if (result.bad > 0)
        printf("request %d\n", result.bad);
    else
        printf("%s\n", result.bad == 0 ? "NULL" : "not set");
}

static void print_created(const char *name, const void *object) {
    printf("%s\t%s\n", name, object ? "created" : name_of(errno));
}

// Some drivers do not check a request, and the process may end. Returns true in a new process,
// which prints the result. The other one prints the signal that ends the new one.
static bool in_child(const char *name) {
    fflush(stdout);
    const pid_t child = fork();
    must(child >= 0, "fork()");
    if (child == 0)
        return true;
    int status;
    must(waitpid(child, &status, 0) == child, "waitpid()");
    if (WIFSIGNALED(status))
        printf("%s\t%s\n", name, strsignal(WTERMSIG(status)));
    return false;
}

static void exit_child(void) {
    fflush(stdout);
    _exit(0);
}

// ---- objects -------------------------------------------------------------------------------

struct shape { // of a queue pair
    uint32_t sends, receives, sges, receive_sges, inlined;
    uint64_t send_ops; // of the builders; 0: none
    struct ibv_srq *srq;
};

static struct ibv_qp *create_qp(const struct shape *shape, struct ibv_qp_cap *cap) {
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = shape->srq,
        .cap = {shape->sends, shape->receives, shape->sges, shape->receive_sges,
                shape->inlined},
        .qp_type = IBV_QPT_RC,
        .comp_mask =
            IBV_QP_INIT_ATTR_PD | (shape->send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
        .pd = pd,
        .send_ops_flags = shape->send_ops};
    struct ibv_qp_init_attr plain = {.send_cq = cq,
                                     .recv_cq = cq,
                                     .srq = shape->srq,
                                     .cap = attr.cap,
                                     .qp_type = IBV_QPT_RC};
    errno = 0;
    struct ibv_qp *const qp =
        shape->send_ops ? ibv_create_qp_ex(context, &attr) : ibv_create_qp(pd, &plain);
    *cap = shape->send_ops ? attr.cap : plain.cap;
    return qp;
}

// The QP that connected ones send to. Usually there is none: requests stay in the queue.
enum { NO_QP = 0xfffffe };
static uint32_t destination = NO_QP;
// How long connected QPs repeat a request: without a limit, or as briefly as they can.
static bool gives_up;

static bool set_state(struct ibv_qp *qp, enum ibv_qp_state state) {
    struct ibv_qp_attr attr = {.qp_state = state,
                               .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
                                                  IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = destination,
                               .max_dest_rd_atomic = 1,
                               .max_rd_atomic = 1,
                               .min_rnr_timer = gives_up ? 1 : 12,
                               .timeout = gives_up ? 1 : 0,
                               .retry_cnt = gives_up ? 0 : 7,
                               .rnr_retry = gives_up ? 1 : 7,
                               .ah_attr = {.is_global = 1, .port_num = 1}};
    int mask = IBV_QP_STATE;
    ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid);
    if (state == IBV_QPS_INIT)
        mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    else if (state == IBV_QPS_RTR)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    else if (state == IBV_QPS_RTS)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                IBV_QP_MAX_QP_RD_ATOMIC;
    const int error = ibv_modify_qp(qp, &attr, mask);
    errno = error;
    return error == 0;
}

static const struct shape usual = {
    .sends = 4, .receives = 4, .sges = 2, .receive_sges = 1, .inlined = 32};

// On iWARP the connection manager connects QPs; the stub lets ibv_modify_qp() do it.
static bool needs_cm;

// The peer then leaves the connection without a message: requests stay in the queue.
static void connect_to_nothing(struct ibv_qp *qp) {
    struct ibv_qp_cap cap;
    struct ibv_qp *const peer = create_qp(&usual, &cap);
    must(peer, "ibv_create_qp()");
    connect_iwarp(qp->qp_num, peer->qp_num);
    must(set_state(peer, IBV_QPS_RESET), "ibv_modify_qp()");
}

// Moves a QP through the states up to `last`.
static struct ibv_qp *moved(struct ibv_qp *qp, enum ibv_qp_state last) {
    if (needs_cm && last >= IBV_QPS_RTS) {
        connect_to_nothing(qp);
        must(last == IBV_QPS_RTS || set_state(qp, last), "ibv_modify_qp()");
        return qp;
    }
    static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                               IBV_QPS_ERR};
    for (size_t i = 0; i < LENGTH(states) && last != IBV_QPS_RESET; i++) {
        must(set_state(qp, states[i]), "ibv_modify_qp()");
        if (states[i] == last)
            break;
    }
    return qp;
}

static struct ibv_qp *new_qp(enum ibv_qp_state state, struct ibv_qp_cap *cap) {
    struct ibv_qp *const qp = create_qp(&usual, cap);
    must(qp, "ibv_create_qp()");
    return moved(qp, state);
}

static struct ibv_srq *create_srq(uint32_t receives, uint32_t sges, struct ibv_srq_attr *attr) {
    struct ibv_srq_init_attr init = {.attr = {.max_wr = receives, .max_sge = sges}};
    errno = 0;
    struct ibv_srq *const srq = ibv_create_srq(pd, &init);
    *attr = init.attr;
    return srq;
}

// ---- lists of requests ---------------------------------------------------------------------

struct sends {
    struct ibv_send_wr wrs[MAX_LIST];
    struct ibv_sge sges[MAX_SGES];
};

// A list of writes of 8 bytes, without completions.
static void fill_sends(struct sends *list, size_t count) {
    memset(list, 0, sizeof(*list));
    for (size_t i = 0; i < MAX_SGES; i++)
        list->sges[i] = (struct ibv_sge){(uintptr_t)memory, 8, mr->lkey};
    for (size_t i = 0; i < count; i++)
        list->wrs[i] = (struct ibv_send_wr){
            .wr_id = i + 1,
            .next = i + 1 < count ? &list->wrs[i + 1] : NULL,
            .sg_list = list->sges,
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .wr.rdma = {.remote_addr = (uintptr_t)memory, .rkey = mr->rkey}};
}

static int number_of(const void *bad, const void *untouched, const void *first, size_t size) {
    if (bad == untouched || !bad)
        return bad ? -1 : 0;
    return (int)(((const char *)bad - (const char *)first) / (ptrdiff_t)size) + 1;
}

static struct result post_sends(struct ibv_qp *qp, struct sends *list) {
    struct ibv_send_wr untouched, *bad = &untouched;
    const int error = ibv_post_send(qp, list->wrs, &bad);
    return (struct result){error, number_of(bad, &untouched, list->wrs, sizeof(list->wrs[0]))};
}

static struct result post_writes(struct ibv_qp *qp, size_t count) {
    struct sends list;
    fill_sends(&list, count);
    return post_sends(qp, &list);
}

static struct result post_signaled(struct ibv_qp *qp) {
    struct sends list;
    fill_sends(&list, 1);
    list.wrs[0].send_flags = IBV_SEND_SIGNALED;
    return post_sends(qp, &list);
}

// Posts to `qp`, or to `srq` if it is not NULL, `count` receives, of which number `wrong` has
// `sges` SGEs.
static struct result post_receives(struct ibv_qp *qp, struct ibv_srq *srq, size_t count,
                                   size_t wrong, uint32_t sges) {
    struct ibv_sge sge[MAX_SGES];
    struct ibv_recv_wr wrs[MAX_LIST], untouched, *bad = &untouched;
    for (size_t i = 0; i < MAX_SGES; i++)
        sge[i] = (struct ibv_sge){(uintptr_t)memory, 8, mr->lkey};
    for (size_t i = 0; i < count; i++)
        wrs[i] = (struct ibv_recv_wr){.wr_id = i + 1,
                                      .next = i + 1 < count ? &wrs[i + 1] : NULL,
                                      .sg_list = sge,
                                      .num_sge = i + 1 == wrong ? (int)sges : 1};
    const int error = srq ? ibv_post_srq_recv(srq, wrs, &bad) : ibv_post_recv(qp, wrs, &bad);
    return (struct result){error, number_of(bad, &untouched, wrs, sizeof(wrs[0]))};
}

// ---- how many requests a queue holds -------------------------------------------------------

static int fill_queue(struct ibv_qp *qp) {
    int count = 0;
    while (count < MAX_ENTRIES && post_writes(qp, 1).error == 0)
        count++;
    return count;
}

static int fill_receives(struct ibv_qp *qp, struct ibv_srq *srq) {
    int count = 0;
    while (count < MAX_ENTRIES && post_receives(qp, srq, 1, 0, 0).error == 0)
        count++;
    return count;
}

static void ask_sizes(void) {
    static const uint32_t sizes[] = {1, 4, 13, 40, 100};
    static const struct { uint32_t sges, inlined; } forms[] = {{1, 0}, {1, 64}, {4, 0}};
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (size_t j = 0; j < LENGTH(forms); j++) {
            const struct shape shape = {.sends = sizes[i],
                                        .receives = sizes[i],
                                        .sges = forms[j].sges,
                                        .receive_sges = forms[j].sges,
                                        .inlined = forms[j].inlined};
            struct ibv_qp_cap cap;
            char name[80];
            struct ibv_qp *const qp = create_qp(&shape, &cap);
            snprintf(name, sizeof(name), "queues of %u, %u SGEs, %u bytes inline", sizes[i],
                     forms[j].sges, forms[j].inlined);
            if (!qp) {
                print_created(name, qp);
                continue;
            }
            moved(qp, IBV_QPS_RTS);
            printf("%s: reported sends, SGEs, inline\t%u, %u, %u\n", name, cap.max_send_wr,
                   cap.max_send_sge, cap.max_inline_data);
            printf("%s: reported receives, SGEs\t%u, %u\n", name, cap.max_recv_wr,
                   cap.max_recv_sge);
            printf("%s: sends\t%d\n", name, fill_queue(qp));
            printf("%s: receives\t%d\n", name, fill_receives(qp, NULL));
        }
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        struct ibv_cq *const made = ibv_create_cq(context, (int)sizes[i], NULL, NULL, 0);
        printf("CQ of %u: reported\t%d\n", sizes[i], made ? made->cqe : -1);
    }
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (uint32_t sges = 1; sges <= 4; sges += 3) {
            struct ibv_srq_attr attr;
            struct ibv_srq *const srq = create_srq(sizes[i], sges, &attr);
            char name[80];
            snprintf(name, sizeof(name), "SRQ of %u, %u SGEs", sizes[i], sges);
            if (!srq) {
                print_created(name, srq);
                continue;
            }
            printf("%s: reported receives, SGEs\t%u, %u\n", name, attr.max_wr, attr.max_sge);
            printf("%s: receives\t%d\n", name, fill_receives(NULL, srq));
        }
}

static void ask_limits(void) {
    struct ibv_qp_cap cap;
    struct shape shape = usual;
    shape.sends = (uint32_t)device.max_qp_wr + 1;
    print_created("more sends than max_qp_wr", create_qp(&shape, &cap));
    shape = usual;
    shape.receives = (uint32_t)device.max_qp_wr + 1;
    print_created("more receives than max_qp_wr", create_qp(&shape, &cap));
    shape = usual;
    shape.sges = (uint32_t)device.max_sge + 1;
    print_created("more SGEs than max_sge", create_qp(&shape, &cap));
    shape = usual;
    shape.receive_sges = (uint32_t)device.max_sge + 1;
    print_created("more receive SGEs than max_sge", create_qp(&shape, &cap));
    shape = usual;
    shape.inlined = 60000;
    print_created("60000 bytes inline", create_qp(&shape, &cap));
    print_created("CQ of 0", ibv_create_cq(context, 0, NULL, NULL, 0));
    print_created("CQ of more than max_cqe",
                  ibv_create_cq(context, device.max_cqe + 1, NULL, NULL, 0));
}

// ---- refused requests ----------------------------------------------------------------------

static void ask_full(void) {
    struct ibv_qp_cap cap;
    struct ibv_qp *qp = new_qp(IBV_QPS_RTS, &cap);
    print_result("send: accepted", post_writes(qp, 1));
    print_result("receive: accepted", post_receives(qp, NULL, 1, 0, 0));
    const int most = 1 + fill_queue(qp);
    print_result("send: full queue", post_writes(qp, 1));
    print_result("send: full queue, list", post_writes(qp, 3));
    const int most_receives = 1 + fill_receives(qp, NULL);
    print_result("receive: full queue", post_receives(qp, NULL, 1, 0, 0));
    qp = new_qp(IBV_QPS_RTS, &cap);
    for (int i = 0; i + 1 < most; i++)
        must(post_writes(qp, 1).error == 0, "ibv_post_send()");
    print_result("send: list of 3, 1 free entry", post_writes(qp, 3));
    print_result("send: after that list", post_writes(qp, 1));
    for (int i = 0; i + 1 < most_receives; i++)
        must(post_receives(qp, NULL, 1, 0, 0).error == 0, "ibv_post_recv()");
    print_result("receive: list of 3, 1 free entry", post_receives(qp, NULL, 3, 0, 0));
    print_result("receive: after that list", post_receives(qp, NULL, 1, 0, 0));
}

// Posts a list of three, whose second request `change` makes invalid, and counts how many of
// the list the queue accepted.
static void ask_invalid(const char *name, void (*change)(struct sends *, struct ibv_send_wr *,
                                                         const struct ibv_qp_cap *)) {
    struct ibv_qp_cap cap;
    struct sends list;
    char text[80];
    struct ibv_qp *const full = new_qp(IBV_QPS_RTS, &cap);
    const int most = fill_queue(full);
    struct ibv_qp *const qp = new_qp(IBV_QPS_RTS, &cap);
    fill_sends(&list, 3);
    change(&list, &list.wrs[1], &cap);
    print_result(name, post_sends(qp, &list));
    snprintf(text, sizeof(text), "%s: accepted", name);
    printf("%s\t%d\n", text, most - fill_queue(qp));
}

static void too_many_sges(struct sends *list, struct ibv_send_wr *wr,
                          const struct ibv_qp_cap *cap) {
    (void)list;
    wr->num_sge = (int)cap->max_send_sge + 1;
}
static void too_much_inline(struct sends *list, struct ibv_send_wr *wr,
                            const struct ibv_qp_cap *cap) {
    list->sges[MAX_SGES - 1].length = cap->max_inline_data + 1;
    wr->sg_list = &list->sges[MAX_SGES - 1];
    wr->send_flags = IBV_SEND_INLINE;
}
static void most_inline(struct sends *list, struct ibv_send_wr *wr,
                        const struct ibv_qp_cap *cap) {
    list->sges[MAX_SGES - 1].length = cap->max_inline_data;
    wr->sg_list = &list->sges[MAX_SGES - 1];
    wr->send_flags = IBV_SEND_INLINE;
}
static void inline_read(struct sends *list, struct ibv_send_wr *wr,
                        const struct ibv_qp_cap *cap) {
    (void)list, (void)cap;
    wr->opcode = IBV_WR_RDMA_READ;
    wr->send_flags = IBV_SEND_INLINE;
}
static void unknown_opcode(struct sends *list, struct ibv_send_wr *wr,
                           const struct ibv_qp_cap *cap) {
    (void)list, (void)cap;
    wr->opcode = (enum ibv_wr_opcode)99;
}
static void two_sges(struct sends *list, struct ibv_send_wr *wr, const struct ibv_qp_cap *cap) {
    (void)list, (void)cap;
    wr->num_sge = 2;
}
static void read_of_two(struct sends *list, struct ibv_send_wr *wr,
                        const struct ibv_qp_cap *cap) {
    two_sges(list, wr, cap);
    wr->opcode = IBV_WR_RDMA_READ;
}
static void no_sge(struct sends *list, struct ibv_send_wr *wr, const struct ibv_qp_cap *cap) {
    (void)list, (void)cap;
    wr->num_sge = 0;
}
static void send_imm(struct sends *list, struct ibv_send_wr *wr, const struct ibv_qp_cap *cap) {
    (void)list, (void)cap;
    wr->opcode = IBV_WR_SEND_WITH_IMM;
}
static void write_imm(struct sends *list, struct ibv_send_wr *wr,
                      const struct ibv_qp_cap *cap) {
    (void)list, (void)cap;
    wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
}
static void atomic(struct sends *list, struct ibv_send_wr *wr, const struct ibv_qp_cap *cap) {
    (void)list, (void)cap;
    wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr->wr.atomic.remote_addr = (uintptr_t)memory;
    wr->wr.atomic.compare_add = 1;
    wr->wr.atomic.rkey = mr->rkey;
}
static void unaligned_atomic(struct sends *list, struct ibv_send_wr *wr,
                             const struct ibv_qp_cap *cap) {
    atomic(list, wr, cap);
    wr->wr.atomic.remote_addr++;
}
static void atomic_of_4(struct sends *list, struct ibv_send_wr *wr,
                        const struct ibv_qp_cap *cap) {
    atomic(list, wr, cap);
    list->sges[MAX_SGES - 1].length = 4;
    wr->sg_list = &list->sges[MAX_SGES - 1];
}
static void atomic_of_two(struct sends *list, struct ibv_send_wr *wr,
                          const struct ibv_qp_cap *cap) {
    atomic(list, wr, cap);
    wr->num_sge = 2;
}

static void ask_requests(void) {
    ask_invalid("send: too many SGEs", too_many_sges);
    ask_invalid("send: too much inline data", too_much_inline);
    ask_invalid("send: most inline data", most_inline);
    ask_invalid("send: inline read", inline_read);
    ask_invalid("send: unknown opcode", unknown_opcode);
    ask_invalid("send: no SGE", no_sge);
    ask_invalid("send: 2 SGEs", two_sges);
    ask_invalid("read: 2 SGEs", read_of_two);
    ask_invalid("send: with immediate data", send_imm);
    ask_invalid("write: with immediate data", write_imm);
    ask_invalid("atomic", atomic);
    ask_invalid("atomic: unaligned address", unaligned_atomic);
    ask_invalid("atomic: 4 bytes", atomic_of_4);
    ask_invalid("atomic: 2 SGEs", atomic_of_two);
    struct ibv_qp_cap cap;
    struct sends list;
    fill_sends(&list, 1);
    list.wrs[0].num_sge = MAX_SGES;
    struct ibv_qp *qp = new_qp(IBV_QPS_RTS, &cap);
    if (in_child("send: 64 SGEs")) {
        print_result("send: 64 SGEs", post_sends(qp, &list));
        exit_child();
    }
    list.wrs[0].num_sge = 1;
    list.wrs[0].send_flags = IBV_SEND_INLINE;
    list.sges[0].length = 3000;
    if (in_child("send: 3000 bytes inline")) {
        print_result("send: 3000 bytes inline", post_sends(qp, &list));
        exit_child();
    }
    qp = new_qp(IBV_QPS_RTS, &cap);
    print_result("receive: too many SGEs", post_receives(qp, NULL, 3, 2, cap.max_recv_sge + 1));
    print_result("receive: no SGE", post_receives(qp, NULL, 3, 2, 0));
}

static void ask_states(void) {
    static const struct {
        const char *name;
        enum ibv_qp_state state;
    } states[] = {{"RESET", IBV_QPS_RESET},
                  {"INIT", IBV_QPS_INIT},
                  {"RTR", IBV_QPS_RTR},
                  {"ERR", IBV_QPS_ERR}};
    for (size_t i = 0; i < LENGTH(states); i++) {
        struct ibv_qp_cap cap;
        if (needs_cm && states[i].state == IBV_QPS_RTR)
            continue;
        struct ibv_qp *const qp = new_qp(states[i].state, &cap);
        char name[80];
        snprintf(name, sizeof(name), "send: state %s", states[i].name);
        if (in_child(name)) {
            print_result(name, post_writes(qp, 2));
            exit_child();
        }
        snprintf(name, sizeof(name), "receive: state %s", states[i].name);
        print_result(name, post_receives(qp, NULL, 2, 0, 0));
    }
}

static void ask_srq(void) {
    struct ibv_srq_attr attr;
    struct ibv_srq *srq = create_srq(4, 2, &attr);
    struct ibv_qp_cap cap;
    if (!srq)
        return;
    fill_receives(NULL, srq);
    print_result("SRQ: full", post_receives(NULL, srq, 1, 0, 0));
    srq = create_srq(4, 2, &attr);
    print_result("SRQ: too many SGEs", post_receives(NULL, srq, 3, 2, attr.max_sge + 1));
    struct shape shape = usual;
    shape.srq = srq;
    struct ibv_qp *const qp = create_qp(&shape, &cap);
    print_created("SRQ: QP", qp);
    if (!qp)
        return;
    printf("SRQ: reported receives, SGEs of the QP\t%u, %u\n", cap.max_recv_wr,
           cap.max_recv_sge);
    moved(qp, IBV_QPS_RTS);
    if (in_child("SRQ: receive of the QP")) {
        print_result("SRQ: receive of the QP", post_receives(qp, NULL, 1, 0, 0));
        exit_child();
    }
}

// ---- builders ------------------------------------------------------------------------------

static void build_writes(struct ibv_qp_ex *ex, int count, size_t sges, size_t inlined) {
    struct ibv_sge list[MAX_SGES];
    for (size_t i = 0; i < MAX_SGES; i++)
        list[i] = (struct ibv_sge){(uintptr_t)memory, 8, mr->lkey};
    for (int i = 0; i < count; i++) {
        ex->wr_id = (uint64_t)i;
        ex->wr_flags = 0;
        ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory);
        if (inlined)
            ibv_wr_set_inline_data(ex, memory, inlined);
        else
            ibv_wr_set_sge_list(ex, sges, list);
    }
}

static struct ibv_qp *new_extended_qp(enum ibv_qp_state state, struct ibv_qp_cap *cap) {
    struct shape shape = usual;
    shape.send_ops = IBV_QP_EX_WITH_RDMA_WRITE;
    struct ibv_qp *const qp = create_qp(&shape, cap);
    must(qp, "ibv_create_qp_ex()");
    return moved(qp, state);
}

// Builds `count` requests, as many as do not fit (-1), or one and then one that is too large.
static void ask_built(const char *of, enum ibv_qp_state state, int count, uint32_t more_sges,
                      uint32_t more_inlined) {
    struct ibv_qp_cap cap;
    char name[80];
    snprintf(name, sizeof(name), "builder: %s", of);
    if (!in_child(name))
        return;
    const int most = fill_queue(new_extended_qp(IBV_QPS_RTS, &cap));
    struct ibv_qp *const qp = new_extended_qp(state, &cap);
    struct ibv_qp_ex *const ex = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(ex);
    build_writes(ex, count >= 0 ? count : most + 1, 1, 0);
    if (more_sges || more_inlined)
        build_writes(ex, 1, cap.max_send_sge + more_sges,
                     more_inlined ? cap.max_inline_data + more_inlined : 0);
    printf("%s\t%s\n", name, name_of(ibv_wr_complete(ex)));
    fflush(stdout);
    if (state == IBV_QPS_RTS)
        printf("%s: accepted\t%d\n", name, most - fill_queue(qp));
    exit_child();
}

static void ask_builders(void) {
    struct shape shape = usual;
    struct ibv_qp_cap cap;
    shape.send_ops = IBV_QP_EX_WITH_RDMA_WRITE;
    struct ibv_qp *const qp = create_qp(&shape, &cap);
    print_created("builder: QP", qp);
    if (!qp)
        return;
    ask_built("no request", IBV_QPS_RTS, 0, 0, 0);
    ask_built("accepted", IBV_QPS_RTS, 2, 0, 0);
    ask_built("full queue", IBV_QPS_RTS, -1, 0, 0);
    ask_built("too many SGEs", IBV_QPS_RTS, 1, 1, 0);
    ask_built("too much inline data", IBV_QPS_RTS, 1, 0, 1);
    ask_built("state RESET", IBV_QPS_RESET, 1, 0, 0);
    ask_built("state INIT", IBV_QPS_INIT, 1, 0, 0);
    ask_built("state ERR", IBV_QPS_ERR, 1, 0, 0);
}

// ---- processes and threads -----------------------------------------------------------------

static void *fill_in_thread(void *qp) {
    return (void *)(intptr_t)fill_queue(qp);
}

static void ask_threads(void) {
    struct ibv_qp_cap cap;
    struct ibv_qp *const qp = new_qp(IBV_QPS_RTS, &cap), *const other =
                                                             new_qp(IBV_QPS_RTS, &cap);
    pthread_t threads[2];
    void *count[2];
    for (int i = 0; i < 2; i++)
        must(pthread_create(&threads[i], NULL, fill_in_thread, qp) == 0, "pthread_create()");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], &count[i]);
    const int both = (int)((intptr_t)count[0] + (intptr_t)count[1]);
    printf("threads: 2 fill a queue, and 1 fills another\t%s\n",
           both == fill_queue(other) ? "equal" : "different");
}

// Prints how a child that posts ends, and how many entries it leaves to its parent.
static void ask_fork(void) {
    struct ibv_qp_cap cap;
    struct ibv_qp *const qp = new_qp(IBV_QPS_RTS, &cap), *const full =
                                                             new_qp(IBV_QPS_RTS, &cap);
    const int most = fill_queue(full);
    int status;
    fflush(stdout);
    const pid_t child = fork();
    must(child >= 0, "fork()");
    if (child == 0)
        _exit(post_writes(qp, 1).error ? 1 : 0);
    must(waitpid(child, &status, 0) == child, "waitpid()");
    printf("fork: post of the child\t%s\n", WIFSIGNALED(status)        ? "signal"
                                            : WEXITSTATUS(status) == 0 ? "accepted"
                                                                       : "refused");
    printf("fork: entries that the child used\t%d\n", most - fill_queue(qp));
}

// ---- completions ---------------------------------------------------------------------------

// The stub writes a completion as the device would. The fabric executes requests itself.
static bool (*stub_write)(const struct stub_completion *completion);

// Writes the completion of a request: of a send, whose opcode is that of `wr`, or of a receive.
static void complete_request(enum stub_queue queue, uint32_t index, enum ibv_wc_status status,
                             const struct ibv_send_wr *wr) {
    const bool is_write =
        wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    const bool has_imm =
        wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    const struct stub_completion completion = {
        .queue = queue,
        .index = index,
        .status = status,
        .opcode = queue != STUB_SENDS && is_write  ? IBV_WC_RECV_RDMA_WITH_IMM
                  : queue != STUB_SENDS            ? IBV_WC_RECV
                  : is_write                       ? IBV_WC_RDMA_WRITE
                  : wr->opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
                                                   : IBV_WC_SEND,
        .length = status == IBV_WC_SUCCESS ? wr->sg_list->length : 0,
        .has_imm = has_imm};
    if (stub_write)
        stub_write(&completion);
}

enum { OWN = 0x5a }; // the bytes of a completion before the poll

static const char *in_words(uint32_t value, uint32_t requested) {
    static char text[4][40];
    static int last;
    char *const made = text[last++ % 4];
    snprintf(made, sizeof(text[0]), value == requested ? "requested" : "%u", value);
    return value == OWN * 0x01010101U ? "not written" : made;
}

// Polls once, or until the fabric has executed the request.
static int poll_one(struct ibv_wc *wc, bool waits) {
    int got;
    memset(wc, OWN, sizeof(*wc));
    do
        got = ibv_poll_cq(cq, 1, wc);
    while (got == 0 && waits && !stub_write);
    return got;
}

// Polls all completions of the CQ, at least `count` on the fabric, and prints a line for each.
static void print_completions(const char *name, const struct ibv_qp *qp, int count,
                              const enum ibv_wc_opcode *opcodes, uint32_t length) {
    struct ibv_wc wc;
    int i = 1, got;
    for (; (got = poll_one(&wc, i <= count)) == 1; i++)
        printf("completion: %s: %d\trequest %d, %s, opcode %s, byte_len %s, wc_flags %s, "
               "vendor_err %s, qp_num %s\n",
               name, i, (int)wc.wr_id, ibv_wc_status_str(wc.status),
               in_words(wc.opcode, opcodes[(wc.wr_id - 1) % MAX_LIST]),
               in_words(wc.byte_len, length), in_words(wc.wc_flags, UINT32_MAX),
               wc.vendor_err == OWN * 0x01010101U ? "not written" : "written",
               in_words(wc.qp_num, qp->qp_num));
    if (got != 0 || i == 1)
        printf("completion: %s\tibv_poll_cq() returns %d\n", name, got);
}

// A QP with a CQ of its own, which is connected to `peer` unless that is NULL. The CQ of the
// peer is another one, which nothing polls.
static struct ibv_qp *completing_qp(struct ibv_qp *peer, struct ibv_srq *srq,
                                    struct ibv_qp_cap *cap) {
    struct shape shape = usual;
    shape.srq = srq;
    must((cq = ibv_create_cq(context, 100, NULL, NULL, 0)), "ibv_create_cq()");
    struct ibv_qp *const qp = create_qp(&shape, cap);
    must(qp, "ibv_create_qp()");
    if (peer && needs_cm) {
        connect_iwarp(qp->qp_num, peer->qp_num);
        return qp;
    }
    if (peer) {
        destination = qp->qp_num;
        moved(peer, IBV_QPS_RTS);
        destination = peer->qp_num;
    }
    moved(qp, IBV_QPS_RTS);
    destination = NO_QP;
    return qp;
}

static struct ibv_qp *new_peer(void) {
    struct ibv_qp_cap cap;
    struct ibv_qp *const peer = create_qp(&usual, &cap);
    must(peer, "ibv_create_qp()");
    return peer;
}

static const struct ibv_send_wr a_write = {.sg_list = &(struct ibv_sge){.length = 8},
                                           .opcode = IBV_WR_RDMA_WRITE};

// A completion of the last request only, in a full queue.
static void ask_free_entries(void) {
    static const enum ibv_wc_opcode write[MAX_LIST] = {IBV_WC_RDMA_WRITE};
    struct ibv_qp_cap cap;
    const int most = fill_queue(completing_qp(NULL, NULL, &cap));
    struct ibv_qp *const qp = completing_qp(new_peer(), NULL, &cap);
    for (int i = 0; i + 1 < most; i++)
        must(post_writes(qp, 1).error == 0, "ibv_post_send()");
    must(post_signaled(qp).error == 0, "ibv_post_send()");
    complete_request(STUB_SENDS, (uint32_t)most - 1, IBV_WC_SUCCESS, &a_write);
    const int unpolled = fill_queue(qp);
    printf("completion: free entries before the poll\t%s\n", unpolled == 0      ? "none"
                                                             : unpolled >= most ? "all"
                                                                                : "some");
    print_completions("last write", qp, 1, write, 8);
    if (unpolled > 0)
        return; // and the queue is full again
    const int free = fill_queue(qp);
    printf("completion: free entries after the poll\t%s\n", free == most ? "all" : "not all");
}

// One request of each kind, and the receive that a message or immediate data complete on the
// other side.
static void ask_good(void) {
    static const struct {
        const char *name;
        enum ibv_wr_opcode opcode;
        enum ibv_wc_opcode sent, received;
    } kinds[] = {
        {"read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0},
        {"message", IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV},
        {"message with immediate data", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV},
        {"write with immediate data", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
         IBV_WC_RECV_RDMA_WITH_IMM}};
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        char name[80];
        struct ibv_qp_cap cap;
        struct sends list;
        fill_sends(&list, 1);
        list.sges[0].length = 4;
        list.wrs[0].opcode = kinds[i].opcode;
        list.wrs[0].send_flags = IBV_SEND_SIGNALED;
        struct ibv_qp *peer = new_peer();
        struct ibv_qp *qp = completing_qp(peer, NULL, &cap);
        must(post_receives(peer, NULL, 1, 0, 0).error == 0, "ibv_post_recv()");
        if (post_sends(qp, &list).error != 0)
            continue; // the driver has no such requests
        complete_request(STUB_SENDS, 0, IBV_WC_SUCCESS, list.wrs);
        print_completions(kinds[i].name, qp, 1, &kinds[i].sent, 4);
        if (!kinds[i].received)
            continue;
        peer = new_peer();
        qp = completing_qp(peer, NULL, &cap);
        const int most = fill_receives(qp, NULL);
        if (!stub_write)
            must(post_sends(peer, &list).error == 0, "ibv_post_send()");
        complete_request(STUB_RECEIVES, 0, IBV_WC_SUCCESS, list.wrs);
        snprintf(name, sizeof(name), "received %s", kinds[i].name);
        print_completions(name, qp, 1, &kinds[i].received, 4);
        printf("completion: %s: free entries\t%d of %d\n", name, fill_receives(qp, NULL), most);
    }
}

// A message into a receive of an SRQ.
static void ask_shared_receive(void) {
    static const enum ibv_wc_opcode received[MAX_LIST] = {IBV_WC_RECV};
    struct ibv_srq_attr attr;
    struct ibv_qp_cap cap;
    struct sends list;
    fill_sends(&list, 1);
    list.wrs[0].opcode = IBV_WR_SEND;
    list.sges[0].length = 4;
    struct ibv_srq *const srq = create_srq(4, 1, &attr);
    if (!srq)
        return;
    const int most = fill_receives(NULL, srq);
    struct ibv_qp *const peer = new_peer(), *const qp = completing_qp(peer, srq, &cap);
    if (!stub_write)
        must(post_sends(peer, &list).error == 0, "ibv_post_send()");
    complete_request(STUB_SHARED_RECEIVES, 0, IBV_WC_SUCCESS, list.wrs);
    print_completions("received message of the SRQ", qp, 1, received, 4);
    printf("completion: received message of the SRQ: free entries\t%d of %d\n",
           fill_receives(NULL, srq), most);
}

// The first request fails, and the others, which are not signaled, are flushed.
static void ask_failed_sends(void) {
    static const struct {
        const char *name;
        enum ibv_wr_opcode opcode;
        enum ibv_wc_opcode sent;
        enum ibv_wc_status status;
        bool is_signaled;
    } failures[] = {
        {"remote access", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, IBV_WC_REM_ACCESS_ERR, true},
        {"remote access, unsignaled", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE,
         IBV_WC_REM_ACCESS_ERR, false},
        {"local protection", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_LOC_PROT_ERR, true},
        {"too long message", IBV_WR_SEND, IBV_WC_SEND, IBV_WC_REM_INV_REQ_ERR, true},
        {"no receive", IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RNR_RETRY_EXC_ERR, true},
        {"no response", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR, true}};
    for (size_t i = 0; i < LENGTH(failures); i++) {
        const enum ibv_wc_opcode opcodes[MAX_LIST] = {failures[i].sent, IBV_WC_RDMA_WRITE,
                                                      IBV_WC_RDMA_WRITE};
        const bool is_lost = failures[i].status == IBV_WC_RETRY_EXC_ERR;
        struct ibv_qp_cap cap;
        struct sends list;
        fill_sends(&list, 3);
        struct ibv_sge *const sge = &list.sges[MAX_SGES - 1];
        list.wrs[0].sg_list = sge;
        list.wrs[0].opcode = failures[i].opcode;
        list.wrs[0].send_flags = failures[i].is_signaled ? IBV_SEND_SIGNALED : 0;
        if (failures[i].status == IBV_WC_REM_ACCESS_ERR)
            list.wrs[0].wr.rdma.rkey = 0;
        if (failures[i].status == IBV_WC_LOC_PROT_ERR)
            sge->lkey = 0;
        if (failures[i].status == IBV_WC_REM_INV_REQ_ERR)
            sge->length = 16;
        gives_up = true;
        struct ibv_qp *const peer = is_lost ? NULL : new_peer(), *const qp = completing_qp(
                                                                     peer, NULL, &cap);
        gives_up = false;
        if (failures[i].status == IBV_WC_REM_INV_REQ_ERR)
            must(post_receives(peer, NULL, 1, 0, 0).error == 0, "ibv_post_recv()");
        must(post_sends(qp, &list).error == 0, "ibv_post_send()");
        for (uint32_t j = 0; j < 3; j++)
            complete_request(STUB_SENDS, j, j == 0 ? failures[i].status : IBV_WC_WR_FLUSH_ERR,
                             &list.wrs[j]);
        print_completions(failures[i].name, qp, 3, opcodes, sge->length);
    }
}

// A receive that is too short or of an unknown key, and the flush of the next one.
static void ask_failed_receives(void) {
    static const enum ibv_wc_opcode received[MAX_LIST] = {IBV_WC_RECV, IBV_WC_RECV};
    static const struct {
        const char *name;
        enum ibv_wc_status status;
    } failures[] = {{"received too long message", IBV_WC_LOC_LEN_ERR},
                    {"receive with an unknown key", IBV_WC_LOC_PROT_ERR}};
    for (size_t i = 0; i < LENGTH(failures); i++) {
        struct ibv_qp_cap cap;
        struct sends list;
        fill_sends(&list, 1);
        list.wrs[0].opcode = IBV_WR_SEND;
        struct ibv_qp *const peer = new_peer(), *const qp = completing_qp(peer, NULL, &cap);
        const uint32_t key = mr->lkey;
        if (failures[i].status == IBV_WC_LOC_PROT_ERR)
            mr->lkey = 0;
        must(post_receives(qp, NULL, 2, 0, 0).error == 0, "ibv_post_recv()");
        mr->lkey = key;
        if (failures[i].status == IBV_WC_LOC_LEN_ERR)
            list.sges[0].length = 16;
        if (!stub_write)
            must(post_sends(peer, &list).error == 0, "ibv_post_send()");
        for (uint32_t j = 0; j < 2; j++)
            complete_request(STUB_RECEIVES, j,
                             j == 0 ? failures[i].status : IBV_WC_WR_FLUSH_ERR, list.wrs);
        print_completions(failures[i].name, qp, 2, received, 8);
    }
}

// A completion with an opcode or type that no request has.
static void ask_unknown_opcode(void) {
    static const enum ibv_wc_opcode write[MAX_LIST] = {IBV_WC_RDMA_WRITE};
    struct ibv_qp_cap cap;
    struct ibv_qp *const qp = completing_qp(NULL, NULL, &cap);
    must(post_signaled(qp).error == 0, "ibv_post_send()");
    if (!stub_write || !in_child("completion: unknown opcode"))
        return;
    alarm(1); // for a driver that does not pass it
    stub_write(&(struct stub_completion){.opcode = STUB_UNKNOWN_OPCODE});
    print_completions("unknown opcode", qp, 1, write, 8);
    exit_child();
}

// The third of four requests fails; the first and the last are signaled.
static void ask_order(void) {
    static const enum ibv_wc_opcode sends[MAX_LIST] = {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
                                                       IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ};
    struct ibv_qp_cap cap;
    struct sends list;
    fill_sends(&list, 4);
    list.wrs[0].send_flags = list.wrs[3].send_flags = IBV_SEND_SIGNALED;
    list.wrs[1].opcode = list.wrs[3].opcode = IBV_WR_RDMA_READ;
    list.wrs[2].wr.rdma.rkey = 0;
    struct ibv_qp *const qp = completing_qp(new_peer(), NULL, &cap);
    must(post_sends(qp, &list).error == 0, "ibv_post_send()");
    complete_request(STUB_SENDS, 0, IBV_WC_SUCCESS, &list.wrs[0]);
    complete_request(STUB_SENDS, 2, IBV_WC_REM_ACCESS_ERR, &list.wrs[2]);
    complete_request(STUB_SENDS, 3, IBV_WC_WR_FLUSH_ERR, &list.wrs[3]);
    print_completions("third of four", qp, 3, sends, 8);
}

// Moving to the state ERR flushes all.
static void ask_flushed(void) {
    static const enum ibv_wc_opcode sends[MAX_LIST] = {IBV_WC_RDMA_READ, IBV_WC_RDMA_WRITE,
                                                       IBV_WC_RDMA_WRITE},
                                    receives[MAX_LIST] = {IBV_WC_RECV, IBV_WC_RECV};
    struct ibv_qp_cap cap;
    struct sends list;
    fill_sends(&list, 3);
    list.wrs[0].opcode = IBV_WR_RDMA_READ;
    list.wrs[0].send_flags = IBV_SEND_SIGNALED;
    const int most = fill_queue(completing_qp(NULL, NULL, &cap));
    struct ibv_qp *qp = completing_qp(NULL, NULL, &cap);
    must(post_sends(qp, &list).error == 0, "ibv_post_send()");
    must(set_state(qp, IBV_QPS_ERR), "ibv_modify_qp()");
    for (uint32_t i = 0; i < 3; i++)
        complete_request(STUB_SENDS, i, IBV_WC_WR_FLUSH_ERR, &list.wrs[i]);
    print_completions("flush", qp, 3, sends, 8);
    const int free = fill_queue(qp);
    printf("completion: free entries after flushes\t%s\n", free >= most ? "all" : "not all");
    qp = completing_qp(NULL, NULL, &cap);
    must(post_receives(qp, NULL, 2, 0, 0).error == 0, "ibv_post_recv()");
    must(set_state(qp, IBV_QPS_ERR), "ibv_modify_qp()");
    list.wrs[0].opcode = IBV_WR_SEND;
    for (uint32_t i = 0; i < 2; i++)
        complete_request(STUB_RECEIVES, i, IBV_WC_WR_FLUSH_ERR, &list.wrs[0]);
    print_completions("flushed receive", qp, 2, receives, 8);
}

// The same through ibv_start_poll().
static void ask_extended_cq(void) {
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 100, .wc_flags = IBV_WC_STANDARD_FLAGS & ~IBV_WC_EX_WITH_DLID_PATH_BITS};
    struct ibv_poll_cq_attr poll = {0};
    struct ibv_qp_cap cap;
    struct ibv_cq_ex *const ex = ibv_create_cq_ex(context, &attr);
    print_created("completion: extended CQ", ex);
    if (!ex)
        return;
    cq = ibv_cq_ex_to_cq(ex);
    struct ibv_qp *const qp = new_qp(IBV_QPS_RTS, &cap);
    must(post_signaled(qp).error == 0, "ibv_post_send()");
    must(set_state(qp, IBV_QPS_ERR), "ibv_modify_qp()");
    complete_request(STUB_SENDS, 0, IBV_WC_WR_FLUSH_ERR, &a_write);
    must(ibv_start_poll(ex, &poll) == 0, "ibv_start_poll()");
    printf("completion: extended CQ: flush\trequest %d, %s\n", (int)ex->wr_id,
           ibv_wc_status_str(ex->status));
    if (in_child("completion: extended CQ: opcode")) {
        printf("completion: extended CQ: opcode\t%s\n",
               in_words(ibv_wc_read_opcode(ex), IBV_WC_RDMA_WRITE));
        exit_child();
    }
    printf("completion: extended CQ: next\t%s\n", name_of(ibv_next_poll(ex)));
    ibv_end_poll(ex);
}

// Over iWARP the fabric, not the driver, ends a connection after a failure:
// sim/tests/conformance.
static void ask_completions(void) {
    if (needs_cm)
        return;
    struct ibv_cq *const shared = cq;
    if (stub_write && !stub_write(NULL)) {
        printf("completions\tnot known\n");
        return;
    }
    ask_free_entries();
    ask_good();
    ask_shared_receive();
    ask_failed_sends();
    ask_failed_receives();
    ask_order();
    ask_flushed();
    ask_unknown_opcode();
    ask_extended_cq();
    cq = shared;
}

// libmana has these QPs, and CQs for them, since rdma-core 53.
static bool has_rc_qps(void) {
    struct ibv_qp_cap cap;
    errno = 0;
    const bool has =
        (cq = ibv_create_cq(context, 1000, NULL, NULL, 0)) && create_qp(&usual, &cap);
    if (!has)
        print_created("RC QP", NULL);
    return has;
}

int main(int argc, char **argv) {
    int count = 0;
    print_library();
    if (argc == 2 && strcmp(argv[1], "--library") == 0)
        return 0;
    struct ibv_device **const list = ibv_get_device_list(&count);
    if (!list || count == 0) {
        fprintf(stderr, "questions: there is no device\n");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    must((context = ibv_open_device(list[0])), "ibv_open_device()");
    must(ibv_query_device(context, &device) == 0, "ibv_query_device()");
    *(void **)&stub_write = dlsym(RTLD_DEFAULT, "stub_complete");
    needs_cm = !stub_write && list[0]->transport_type == IBV_TRANSPORT_IWARP;
    must((pd = ibv_alloc_pd(context)), "ibv_alloc_pd()");
    must((mr = ibv_reg_mr(pd, memory, sizeof(memory),
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)),
         "ibv_reg_mr()");
    if (!has_rc_qps())
        return 0;
    ask_sizes();
    ask_limits();
    ask_full();
    ask_requests();
    ask_states();
    ask_srq();
    ask_builders();
    ask_completions();
    ask_threads();
    ask_fork();
    return 0;
}
