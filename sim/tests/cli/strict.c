// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// strict.c -- one misuse for each check of --strict: strict CHECK. "freed-event" reads
// the private data of an event after its acknowledgement. Without one, it uses the
// same functions as their manual pages require.

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST(x)                                                 \
    do {                                                        \
        if (!(x)) {                                             \
            fprintf(stderr, "strict.c:%d: %s\n", __LINE__, #x); \
            exit(1);                                            \
        }                                                       \
    } while (0)

#define GREETING "the private data of the client"

static const char *check;
static char memory[4096];

static int is(const char *name) {
    return strcmp(check, name) == 0;
}

struct side {
    struct ibv_pd *pd, *other_pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_srq *srq;
    struct ibv_mr *mr, *constant;
};

static void modify(struct ibv_qp *qp, struct ibv_qp *peer, const union ibv_gid *gid) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = 0};
    MUST(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer->qp_num;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = *gid;
    attr.ah_attr.grh.sgid_index = 1;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    MUST(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = is("values") ? 9 : 7;
    attr.max_rd_atomic = !is("depth");
    const int error =
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    MUST(is("values") || !error);
}

static int post_one(const struct side *side, struct ibv_mr *mr, uint64_t address,
                    uint32_t length, unsigned flags) {
    struct ibv_sge sges[3] = {{address, length, mr->lkey}};
    struct ibv_send_wr wr = {.sg_list = sges}, *bad;
    sges[1] = sges[2] = sges[0];
    wr.num_sge = is("sges") ? 3 : 1;
    wr.opcode = is("depth") ? IBV_WR_RDMA_READ : IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED | flags;
    return ibv_post_send(side->qp, &wr, &bad);
}

static int receive(const struct side *side, struct ibv_mr *mr) {
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    if (side->srq && !is("shared"))
        return ibv_post_srq_recv(side->srq, &wr, &bad);
    return ibv_post_recv(side->qp, &wr, &bad);
}

static void poll_all(struct ibv_cq *cq, int count) {
    struct ibv_wc wc;
    while (count > 0)
        count -= ibv_poll_cq(cq, 1, &wc);
}

static void verbs(void) {
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_context *context = ibv_open_device(list[0]);
    struct side one = {0};
    union ibv_gid gid;
    ibv_free_device_list(list);
    MUST(context && !ibv_query_gid(context, 1, 1, &gid));
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    one.pd = ibv_alloc_pd(context);
    one.other_pd = ibv_alloc_pd(context);
    one.cq = ibv_create_cq(context, is("overflow") ? 1 : 16, NULL,
                           is("channel") ? NULL : channel, 0);
    one.mr = ibv_reg_mr(is("key") ? one.other_pd : one.pd, memory, sizeof(memory),
                        IBV_ACCESS_LOCAL_WRITE | (is("flags") ? 1 << 15 : 0));
    if (is("flags"))
        one.mr = one.mr ? one.mr
                        : ibv_reg_mr(one.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    one.constant = ibv_reg_mr(one.pd, memory, sizeof(memory), 0);
    struct ibv_srq_init_attr of_srq = {.attr = {4, 1, 0}};
    one.srq = is("shared") ? ibv_create_srq(one.pd, &of_srq) : NULL;
    struct ibv_qp_init_attr attr = {.send_cq = one.cq,
                                    .recv_cq = one.cq,
                                    .srq = one.srq,
                                    .cap = {8, 8, 1, 1, 16},
                                    .qp_type = IBV_QPT_RC};
    one.qp = ibv_create_qp(one.pd, &attr);
    MUST(one.qp && one.mr && one.constant);
    if (is("early"))
        (void)post_one(&one, one.mr, (uintptr_t)memory, 8, 0);
    modify(one.qp, one.qp, &gid); // it sends to itself
    MUST(!ibv_req_notify_cq(one.cq, 0));
    (void)receive(&one, is("access") ? one.constant : one.mr);
    (void)post_one(&one, one.mr, (uintptr_t)memory + (is("range") ? sizeof(memory) - 4 : 0),
                   is("inline") ? 4000 : 8,
                   (is("inline") ? IBV_SEND_INLINE : 0) | (is("flags") ? 1 << 9 : 0));
    if (!is("channel")) {
        struct ibv_cq *cq;
        void *cookie;
        const int is_sent =
            !is("shared") && !is("sges") && !is("inline") && !is("overflow") && !is("depth");
        if (is_sent)
            MUST(!ibv_get_cq_event(channel, &cq, &cookie));
        if (is_sent)
            ibv_ack_cq_events(one.cq, is("acknowledged") ? 2 : 1);
    }
    if (strcmp(check, "none") == 0)
        poll_all(one.cq, 2);
    if (is("posted")) {
        (void)receive(&one, one.mr);
        MUST(!ibv_dereg_mr(one.mr));
    }
    if (is("in-use"))
        MUST(ibv_dealloc_pd(one.pd));
    if (is("leak"))
        exit(0);
    MUST(!ibv_destroy_qp(one.qp));
    if (one.srq)
        MUST(!ibv_destroy_srq(one.srq));
    MUST(is("posted") || !ibv_dereg_mr(one.mr));
    MUST(!ibv_dereg_mr(one.constant));
    if (is("acknowledged"))
        exit(0); // the device waits for an event that cannot be acknowledged
    MUST(!ibv_destroy_cq(one.cq));
    MUST(!ibv_dealloc_pd(one.pd) && !ibv_dealloc_pd(one.other_pd));
    if (is("destroyed"))
        MUST(ibv_dealloc_pd(one.pd));
    MUST(!ibv_destroy_comp_channel(channel) && !ibv_close_device(context));
}

static void connections(void) {
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *listener, *id, *accepted = NULL;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7471)};
    struct rdma_conn_param param = {.retry_count = is("values-of-connection") ? 255 : 7,
                                    .rnr_retry_count = 7,
                                    .private_data = GREETING,
                                    .private_data_len = sizeof(GREETING)};
    struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    inet_pton(AF_INET, getenv("RDMA_SIM_ADDR"), &address.sin_addr);
    MUST(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) &&
         !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    if (!is("unbound"))
        MUST(!rdma_bind_addr(listener, (struct sockaddr *)&address));
    MUST(!rdma_listen(listener, 1));
    address.sin_port = rdma_get_src_port(listener);
    MUST(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000));
    for (int established = 0; established < 2;) {
        struct rdma_cm_event *event;
        MUST(!rdma_get_cm_event(channel, &event));
        const enum rdma_cm_event_type type = event->event;
        struct rdma_cm_id *const of = event->id;
        const char *const data = event->param.conn.private_data;
        char copied[sizeof(GREETING)] = GREETING;
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST && !is("freed-event"))
            memcpy(copied, data, sizeof(copied));
        if (!is("events") || type != RDMA_CM_EVENT_ROUTE_RESOLVED)
            MUST(!rdma_ack_cm_event(event));
        if (is("acknowledged-event"))
            (void)rdma_ack_cm_event(event);
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST && is("freed-event"))
            memcpy(copied, data, sizeof(copied));
        MUST(memcmp(copied, GREETING, sizeof(copied)) == 0);
        if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
            MUST(!rdma_resolve_route(id, 1000));
        } else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
            if (is("events"))
                alarm(1); // the next call blocks
            if (is("events"))
                rdma_destroy_id(id);
            if (!is("no-qp"))
                MUST(!rdma_create_qp(id, NULL, &attr));
            const int error = rdma_connect(id, &param);
            if (error)
                exit(0);
        } else if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
            accepted = of;
            if (is("no-qp"))
                exit(0);
            MUST(!rdma_create_qp(accepted, NULL, &attr) && !rdma_accept(accepted, &param));
        } else {
            MUST(type == RDMA_CM_EVENT_ESTABLISHED);
            established++;
        }
    }
    if (!is("in-use-of-id"))
        rdma_destroy_qp(id);
    MUST(!rdma_destroy_id(id));
    rdma_destroy_qp(accepted);
    MUST(!rdma_destroy_id(accepted));
    if (!is("in-use-of-channel"))
        MUST(!rdma_destroy_id(listener));
    rdma_destroy_event_channel(channel);
}

int main(int argc, char **argv) {
    static const char *const OF_CONNECTIONS[] = {"unbound",
                                                 "no-qp",
                                                 "events",
                                                 "acknowledged-event",
                                                 "values-of-connection",
                                                 "freed-event",
                                                 "in-use-of-id",
                                                 "in-use-of-channel"};
    check = argc > 1 ? argv[1] : "none";
    int is_of_connections = is("none");
    for (unsigned i = 0; i < sizeof(OF_CONNECTIONS) / sizeof(*OF_CONNECTIONS); i++)
        is_of_connections |= is(OF_CONNECTIONS[i]);
    if (is("none") || !is_of_connections)
        verbs();
    if (is_of_connections)
        connections();
    return 0;
}
