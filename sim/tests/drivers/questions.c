// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// questions.c -- asks the first device of the machine about its queues, and prints a line per
// question: its name, a tab, the result. The device is a user-space driver of rdma-core without
// hardware (stub.c), or a device of rdma-sim.

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "queue_objects.h"

// ---- results -------------------------------------------------------------------------------

static void print_result(const char *name, struct result result) {
    printf("%s\t%s, bad_wr ", name, name_of(result.error));
    if (result.bad > 0)
        printf("request %d\n", result.bad);
    else
        printf("%s\n", result.bad == 0 ? "NULL" : "not set");
}

// ---- how many requests a queue holds -------------------------------------------------------

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
