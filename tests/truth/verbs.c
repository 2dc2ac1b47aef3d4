// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// verbs.c -- questions to libibverbs.

#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FLUSH_GLOBAL = 1 << 8, FLUSH_PERSISTENT = 1 << 9 }; // access bits of rdma-core 45
enum { SEND_FLUSH = 1 << 11, SEND_ATOMIC_WRITE = 1 << 12 };

struct stand stand_up(void) {
    struct stand s = {.id = bound_id()};
    s.context = s.id->verbs;
    must((s.pd = ibv_alloc_pd(s.context)) != NULL, "ibv_alloc_pd()");
    must((s.channel = ibv_create_comp_channel(s.context)) != NULL, "ibv_create_comp_channel()");
    must((s.cq = ibv_create_cq(s.context, 10, NULL, s.channel, 0)) != NULL, "ibv_create_cq()");
    return s;
}

void take_down(struct stand *s) {
    must(ibv_destroy_cq(s->cq) == 0, "ibv_destroy_cq()");
    must(ibv_destroy_comp_channel(s->channel) == 0, "ibv_destroy_comp_channel()");
    must(ibv_dealloc_pd(s->pd) == 0, "ibv_dealloc_pd()");
    must(rdma_destroy_id(s->id) == 0, "rdma_destroy_id()");
}

struct ibv_qp_init_attr_ex qp_attr(const struct stand *s) {
    return (struct ibv_qp_init_attr_ex){.send_cq = s->cq,
                                        .recv_cq = s->cq,
                                        .cap = {.max_send_wr = 10,
                                                .max_recv_wr = 10,
                                                .max_send_sge = 1,
                                                .max_recv_sge = 1,
                                                .max_inline_data = 8},
                                        .qp_type = IBV_QPT_RC,
                                        .comp_mask = IBV_QP_INIT_ATTR_PD,
                                        .pd = s->pd};
}

void ask_device(void) {
    struct stand s = stand_up();
    struct ibv_device_attr_ex attr = {0};
    returns("device: query", ibv_query_device_ex(s.context, NULL, &attr));
    is("device: max_qp_wr", attr.orig_attr.max_qp_wr);
    is("device: max_cqe", attr.orig_attr.max_cqe);
    is("device: max_sge", attr.orig_attr.max_sge);
    is("device: max_srq_wr", attr.orig_attr.max_srq_wr);
    is("device: max_srq_sge", attr.orig_attr.max_srq_sge);
    is("device: global flush", (long long)(attr.device_cap_flags_ex >> 38) & 1);
    is("device: persistent flush", (long long)(attr.device_cap_flags_ex >> 39) & 1);
    is("device: atomic write", (long long)(attr.device_cap_flags_ex >> 40) & 1);
    is("device: on-demand paging", attr.odp_caps.general_caps & IBV_ODP_SUPPORT);
    is("device: transport", s.context->device->transport_type);
    take_down(&s);
}

// A region needs some local memory, and its allowed access depends on device and memory. This
// is plain memory.
void ask_mr(void) {
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
    struct stand s = stand_up();
    char *memory = aligned_alloc(4096, 8192);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ibv_mr *mr = ibv_reg_mr(s.pd, memory, 8192, (int)cases[i].access);
        makes(cases[i].name, mr);
        if (mr)
            must(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr()");
    }
    struct ibv_mr *mr = ibv_reg_mr(s.pd, memory + 100, 16, IBV_ACCESS_LOCAL_WRITE);
    is("mr: address kept", mr && mr->addr == memory + 100 && mr->length == 16);
    returns("mr: domain in use", ibv_dealloc_pd(s.pd));
    returns("mr: deregister", ibv_dereg_mr(mr));
    free(memory);
    take_down(&s);
}

static void create_cq(const char *question, const struct stand *s, int cqe, int vector) {
    struct ibv_cq *cq = ibv_create_cq(s->context, cqe, NULL, s->channel, vector);
    char text[64];
    makes(question, cq);
    snprintf(text, sizeof(text), "%s, entries", question);
    if (!cq)
        return;
    is(text, cq->cqe);
    must(ibv_destroy_cq(cq) == 0, "ibv_destroy_cq()");
}

void ask_cq(void) {
    struct stand s = stand_up();
    struct ibv_device_attr_ex attr = {0};
    struct ibv_cq *cq = NULL;
    struct ibv_wc wc;
    void *context = NULL;
    must(ibv_query_device_ex(s.context, NULL, &attr) == 0, "ibv_query_device_ex()");
    create_cq("cq: 0", &s, 0, 0);
    create_cq("cq: -1", &s, -1, 0);
    create_cq("cq: 1", &s, 1, 0);
    create_cq("cq: 10", &s, 10, 0);
    create_cq("cq: 16", &s, 16, 0);
    create_cq("cq: all", &s, attr.orig_attr.max_cqe, 0);
    create_cq("cq: one too many", &s, attr.orig_attr.max_cqe + 1, 0);
    create_cq("cq: INT32_MAX", &s, INT32_MAX, 0);
    create_cq("cq: unknown vector", &s, 1, 12345);
    is("cq: poll nothing", ibv_poll_cq(s.cq, 1, &wc));
    returns("cq: arm", ibv_req_notify_cq(s.cq, 0));
    returns("cq: arm again", ibv_req_notify_cq(s.cq, 0));
    fcntl(s.channel->fd, F_SETFL, O_NONBLOCK);
    says("cq: no event", ibv_get_cq_event(s.channel, &cq, &context));
    returns("cq: channel in use", ibv_destroy_comp_channel(s.channel));
    take_down(&s);
}

static void create_srq(const char *question, const struct stand *s, uint32_t wr, uint32_t sge) {
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = wr, .max_sge = sge}};
    struct ibv_srq *srq = ibv_create_srq(s->pd, &attr);
    char text[64];
    makes(question, srq);
    snprintf(text, sizeof(text), "%s, entries", question);
    if (!srq)
        return;
    is(text, attr.attr.max_wr);
    must(ibv_destroy_srq(srq) == 0, "ibv_destroy_srq()");
}

void ask_srq(void) {
    struct stand s = stand_up();
    struct ibv_device_attr_ex attr = {0};
    must(ibv_query_device_ex(s.context, NULL, &attr) == 0, "ibv_query_device_ex()");
    create_srq("srq: 0", &s, 0, 1);
    create_srq("srq: 10", &s, 10, 1);
    create_srq("srq: one too many", &s, (uint32_t)attr.orig_attr.max_srq_wr + 1, 1);
    create_srq("srq: too many elements", &s, 1, (uint32_t)attr.orig_attr.max_srq_sge + 1);
    take_down(&s);
}

static void create_qp(const char *question, const struct stand *s,
                      struct ibv_qp_init_attr_ex attr) {
    says(question, rdma_create_qp_ex(s->id, &attr));
    if (s->id->qp)
        rdma_destroy_qp(s->id);
}

static void ask_capabilities(const struct stand *s) {
    struct ibv_device_attr_ex device = {0};
    must(ibv_query_device_ex(s->context, NULL, &device) == 0, "ibv_query_device_ex()");
    const uint32_t wr = (uint32_t)device.orig_attr.max_qp_wr + 1;
    const uint32_t sge = (uint32_t)device.orig_attr.max_sge + 1;
    struct ibv_qp_init_attr_ex attr = qp_attr(s);
    attr.cap.max_send_wr = wr;
    create_qp("qp: send queue too long", s, attr);
    attr = qp_attr(s);
    attr.cap.max_recv_wr = wr;
    create_qp("qp: receive queue too long", s, attr);
    attr = qp_attr(s);
    attr.cap.max_send_sge = sge;
    create_qp("qp: too many elements to send", s, attr);
    attr = qp_attr(s);
    attr.cap.max_recv_sge = sge;
    create_qp("qp: too many elements to receive", s, attr);
    attr = qp_attr(s);
    attr.cap.max_inline_data = 100000;
    create_qp("qp: too much inline data", s, attr);
    attr = qp_attr(s);
    attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | SEND_FLUSH | SEND_ATOMIC_WRITE;
    create_qp("qp: native operations", s, attr);
    attr.send_ops_flags = IBV_QP_EX_WITH_TSO;
    create_qp("qp: operations that no RC queue pair has", s, attr);
}

void ask_qp(void) {
    struct stand s = stand_up();
    struct ibv_qp_init_attr_ex attr = qp_attr(&s);
    ask_capabilities(&s);
    says("qp: create", rdma_create_qp_ex(s.id, &attr));
    is("qp: send entries", attr.cap.max_send_wr);
    is("qp: receive entries", attr.cap.max_recv_wr);
    is("qp: send elements", attr.cap.max_send_sge);
    is("qp: receive elements", attr.cap.max_recv_sge);
    is("qp: inline bytes", attr.cap.max_inline_data);
    is("qp: number", s.id->qp->qp_num > 0);
    is("qp: domain of the ID", s.id->pd == s.pd);
    is("qp: no extended queue pair", ibv_qp_to_qp_ex(s.id->qp) == NULL);
    struct ibv_qp_init_attr_ex second = qp_attr(&s);
    says("qp: create again", rdma_create_qp_ex(s.id, &second));
    struct ibv_recv_wr receive = {.wr_id = 1}, *bad = NULL;
    returns("qp: post a receive", ibv_post_recv(s.id->qp, &receive, &bad));
    receive.num_sge = 0;
    int posted = 1, ret;
    while (posted < 100 && (ret = ibv_post_recv(s.id->qp, &receive, &bad)) == 0)
        posted++;
    returns("qp: receive queue full", posted < 100 ? ret : 0);
    is("qp: receives posted", posted);
    // Before the connection the doorbell fails, but the requests are in the queue.
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
    returns("qp: post a send", ibv_post_send(s.id->qp, &send, &bad_send));
    for (posted = 0; posted < 100 && !bad_send; posted++)
        ret = ibv_post_send(s.id->qp, &send, &bad_send);
    returns("qp: send queue full", ret);
    is("qp: sends posted", posted);
    rdma_destroy_qp(s.id);
    is("qp: none after its destruction", s.id->qp == NULL);
    take_down(&s);
}

void ask_order(void) {
    struct stand s = stand_up();
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(s.pd, &srq_attr);
    struct ibv_qp_init_attr_ex attr = qp_attr(&s);
    must(srq != NULL, "ibv_create_srq()");
    attr.srq = srq;
    must(rdma_create_qp_ex(s.id, &attr) == 0, "rdma_create_qp_ex()");
    struct ibv_recv_wr receive = {.wr_id = 1}, *bad = NULL;
    // Such a queue pair of siw has no receive queue, and siw_post_recv() reads it all the same
    // (rdma-core 56, providers/siw/siw.c): the process dies of SIGSEGV. The kernel is well.
    if (s.context->device->transport_type == IBV_TRANSPORT_IWARP) {
        is_not_asked("order: post to the queue pair of an SRQ");
        is_not_asked("order: refused request named");
    } else {
        returns("order: post to the queue pair of an SRQ",
                ibv_post_recv(s.id->qp, &receive, &bad));
        is("order: refused request named", bad == &receive);
    }
    returns("order: post to the SRQ", ibv_post_srq_recv(srq, &receive, &bad));
    returns("order: SRQ in use", ibv_destroy_srq(srq));
    returns("order: CQ in use", ibv_destroy_cq(s.cq));
    returns("order: domain in use", ibv_dealloc_pd(s.pd));
    rdma_destroy_qp(s.id);
    returns("order: SRQ", ibv_destroy_srq(srq));
    take_down(&s);
}
