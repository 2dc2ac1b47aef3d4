// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// loopback.c -- executes the remote half of every operation for the fakes

#include "session.h"

#include <dlfcn.h>
#include <string.h>

#include "fake.h"

#define FAKES(use) use(reset) use(cm_event) use(nth) use(complete) use(leaks) use(misuses)
#define MEMBER(name) __typeof__(fake_##name) *name;
#define LOOK_UP(name) *(void **)&fake.name = find("fake_" #name);

static struct { FAKES(MEMBER) } fake;
static bool is_fake;
static unsigned sends, receives; // executed so far

static void *find(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    CHECK(found);
    return found;
}

bool loopback_open(void) {
    is_fake = dlsym(RTLD_DEFAULT, "fake_reset") != NULL;
    if (!is_fake)
        return false;
    FAKES(LOOK_UP)
    fake.reset();
    sends = receives = 0;
    return true;
}

void loopback_event(int fd, enum rdma_cm_event_type type, const void *data, uint8_t len) {
    if (is_fake)
        fake.cm_event(fd, type, data, len);
}

// The other queue pair of the latest two.
static struct ibv_qp *other_end(const void *qp) {
    unsigned made = 0;
    while (fake.nth("rdma_create_qp_ex", made + 1))
        made++;
    for (unsigned i = made; i > 0 && i + 1 >= made; i--) {
        const struct rdma_cm_id *id = fake.nth("rdma_create_qp_ex", i)->object;
        if (id->qp != qp)
            return id->qp;
    }
    CHECK(!"a connection has another side");
    return NULL;
}

static void receive(struct ibv_qp *qp, const struct fake_post *sent, enum ibv_wc_opcode opcode,
                    bool with_imm, bool with_bytes) {
    const struct fake_call *call = fake.nth("ibv_post_recv", ++receives);
    CHECK(call); // fails if a message arrives without a receive
    const uint32_t len = sent->num_sge ? sent->sge.length : 0;
    if (with_bytes && len)
        memcpy((void *)(uintptr_t)call->recv.sge.addr, (void *)(uintptr_t)sent->sge.addr, len);
    const struct ibv_wc wc = {
        .wr_id = call->recv.wr_id,
        .status = IBV_WC_SUCCESS,
        .opcode = opcode,
        .byte_len = len,
        .imm_data = sent->imm,
        .qp_num = qp->qp_num,
        .wc_flags = with_imm ? IBV_WC_WITH_IMM : 0,
    };
    fake.complete(qp->recv_cq, &wc);
}

static void write_bytes(const struct fake_post *post) {
    const void *from =
        post->flags & IBV_SEND_INLINE ? post->inlined : (void *)(uintptr_t)post->sge.addr;
    if (post->num_sge)
        memcpy((void *)(uintptr_t)post->remote_addr, from, post->sge.length);
}

static enum ibv_wc_opcode carry_out(const struct fake_post *post, const void *qp) {
    switch (post->opcode) {
    case IBV_WR_RDMA_READ:
        if (post->num_sge)
            memcpy((void *)(uintptr_t)post->sge.addr, (void *)(uintptr_t)post->remote_addr,
                   post->sge.length);
        return IBV_WC_RDMA_READ;
    case IBV_WR_RDMA_WRITE:
        write_bytes(post);
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        write_bytes(post);
        receive(other_end(qp), post, IBV_WC_RECV_RDMA_WITH_IMM, true, false);
        return IBV_WC_RDMA_WRITE;
    default:
        receive(other_end(qp), post, IBV_WC_RECV, post->opcode == IBV_WR_SEND_WITH_IMM, true);
        return IBV_WC_SEND;
    }
}

void loopback_run(void) {
    const struct fake_call *call;
    while (is_fake && (call = fake.nth("ibv_post_send", sends + 1))) {
        struct ibv_qp *qp = (struct ibv_qp *)call->object;
        const struct fake_post post = call->send;
        const struct ibv_wc wc = {
            .wr_id = post.wr_id,
            .status = IBV_WC_SUCCESS,
            .opcode = carry_out(&post, qp),
            .byte_len = post.num_sge ? post.sge.length : 0,
            .qp_num = qp->qp_num,
        };
        sends++;
        if (post.flags & IBV_SEND_SIGNALED)
            fake.complete(qp->send_cq, &wc);
    }
}

const char *loopback_close(void) {
    if (!is_fake)
        return "";
    return *fake.misuses() ? fake.misuses() : fake.leaks();
}
