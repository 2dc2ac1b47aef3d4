// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// queue_objects.c -- the objects and the lists of requests of the questions

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "queue_objects.h"

struct ibv_context *context;
struct ibv_pd *pd;
struct ibv_cq *cq;
struct ibv_mr *mr;
struct ibv_device_attr device;
_Alignas(4096) char memory[65536];
const struct shape usual = {
    .sends = 4, .receives = 4, .sges = 2, .receive_sges = 1, .inlined = 32};
bool needs_cm;
bool (*stub_write)(const struct stub_completion *completion);
uint32_t destination = NO_QP;
bool gives_up;

const char *name_of(int error) {
    static char text[40];
    const char *const name = strerrorname_np(error < 0 ? -error : error);
    snprintf(text, sizeof(text), "%s%s", error < 0 ? "-" : "", name ? name : "unknown error");
    return error == 0 ? "0" : text;
}

void print_created(const char *name, const void *object) {
    printf("%s\t%s\n", name, object ? "created" : name_of(errno));
}

bool in_child(const char *name) {
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

void exit_child(void) {
    fflush(stdout);
    _exit(0);
}

struct ibv_qp *create_qp(const struct shape *shape, struct ibv_qp_cap *cap) {
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

bool set_state(struct ibv_qp *qp, enum ibv_qp_state state) {
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

void connect_to_nothing(struct ibv_qp *qp) {
    struct ibv_qp_cap cap;
    struct ibv_qp *const peer = create_qp(&usual, &cap);
    must(peer, "ibv_create_qp()");
    connect_iwarp(qp->qp_num, peer->qp_num);
    must(set_state(peer, IBV_QPS_RESET), "ibv_modify_qp()");
}

struct ibv_qp *moved(struct ibv_qp *qp, enum ibv_qp_state last) {
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

struct ibv_qp *new_qp(enum ibv_qp_state state, struct ibv_qp_cap *cap) {
    struct ibv_qp *const qp = create_qp(&usual, cap);
    must(qp, "ibv_create_qp()");
    return moved(qp, state);
}

struct ibv_srq *create_srq(uint32_t receives, uint32_t sges, struct ibv_srq_attr *attr) {
    struct ibv_srq_init_attr init = {.attr = {.max_wr = receives, .max_sge = sges}};
    errno = 0;
    struct ibv_srq *const srq = ibv_create_srq(pd, &init);
    *attr = init.attr;
    return srq;
}

void fill_sends(struct sends *list, size_t count) {
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

int number_of(const void *bad, const void *untouched, const void *first, size_t size) {
    if (bad == untouched || !bad)
        return bad ? -1 : 0;
    return (int)(((const char *)bad - (const char *)first) / (ptrdiff_t)size) + 1;
}

struct result post_sends(struct ibv_qp *qp, struct sends *list) {
    struct ibv_send_wr untouched, *bad = &untouched;
    const int error = ibv_post_send(qp, list->wrs, &bad);
    return (struct result){error, number_of(bad, &untouched, list->wrs, sizeof(list->wrs[0]))};
}

struct result post_writes(struct ibv_qp *qp, size_t count) {
    struct sends list;
    fill_sends(&list, count);
    return post_sends(qp, &list);
}

struct result post_receives(struct ibv_qp *qp, struct ibv_srq *srq, size_t count, size_t wrong,
                            uint32_t sges) {
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

int fill_queue(struct ibv_qp *qp) {
    int count = 0;
    while (count < MAX_ENTRIES && post_writes(qp, 1).error == 0)
        count++;
    return count;
}

int fill_receives(struct ibv_qp *qp, struct ibv_srq *srq) {
    int count = 0;
    while (count < MAX_ENTRIES && post_receives(qp, srq, 1, 0, 0).error == 0)
        count++;
    return count;
}
