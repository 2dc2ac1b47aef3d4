// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// completion_questions.c -- the questions about completions: what they contain, and when they
// arrive

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "queue_objects.h"

// ---- objects -------------------------------------------------------------------------------

// ---- lists of requests ---------------------------------------------------------------------

static struct result post_signaled(struct ibv_qp *qp) {
    struct sends list;
    fill_sends(&list, 1);
    list.wrs[0].send_flags = IBV_SEND_SIGNALED;
    return post_sends(qp, &list);
}

// ---- completions ---------------------------------------------------------------------------

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
void ask_completions(void) {
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
