// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- offers persistent memory, which it never initialises or persists, and reports the
// messages of a client, for which it posts receives in each possible way

#define LIBRPMA_NO_DEPRECATED // of rpma_cq_get_completion()
#include "common.h"
#include "operations.h"
#include "random.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { EARLY = MESSAGES / 2 }; // receives before the connection is established
enum {
    USAGE = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_ATOMIC |
            RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
            RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
};

static const struct program program = {
    .purpose = "Offers memory, which a client changes by every operation.",
    .direct_write_option = true,
};

static struct arguments args;
static struct side side;
static struct rpma_mr_local *second_region;
static char volatile_memory[VOLATILE_SIZE];
static struct rpma_mr_local *volatile_region, *limited_region;
static unsigned limited_usage;
static bool direct_write;
static struct rpma_srq *srq; // or NULL
static struct rpma_receive receives[MESSAGES];
static struct rpma_sge sges[MESSAGES][2];

static void prepare_receives(void) {
    for (size_t i = 0; i < MESSAGES; i++) {
        const size_t begin = AREAS * AREA + i * MESSAGE_SIZE, first = 8 * below(9);
        receives[i] = (struct rpma_receive){.local = {side.mr, begin, MESSAGE_SIZE},
                                            .op_context = &receives[i]};
        sges[i][0] = (struct rpma_sge){side.mr, begin, first};
        sges[i][1] = (struct rpma_sge){side.mr, begin + first, MESSAGE_SIZE - first};
    }
}

// Posts receives to the shared queue, if there is one, to the request or to the connection. At
// times the array ends with an invalid one.
static void post_receives(struct rpma_conn_req *req, struct rpma_conn *conn, size_t first,
                          uint32_t count) {
    struct rpma_receive list[2 * MESSAGES]; // receives after the last one must not be posted
    uint32_t single = below(3), posted = 0;
    for (; single > 0 && count > 0; single--, first++, count--) {
        struct rpma_receive *const one = &receives[first];
        CALL(srq   ? rpma_srq_recv(srq, side.mr, one->local.offset, MESSAGE_SIZE, one)
             : req ? rpma_conn_req_recv(req, side.mr, one->local.offset, MESSAGE_SIZE, one)
                   : rpma_recv(conn, side.mr, one->local.offset, MESSAGE_SIZE, one));
    }
    for (uint32_t i = 0; i < count; i++) {
        list[i] = receives[first + i];
        if (below(2)) {
            list[i].sgl = sges[first + i];
            list[i].nsge = 2;
        }
    }
    const bool is_invalid = below(3) == 0;
    const uint32_t all = count + is_invalid;
    for (uint32_t i = count; i < 2 * MESSAGES; i++)
        list[i] = (struct rpma_receive){.reserved = is_invalid && i == count};
    // If the device refuses a receive, the server continues with it.
    for (uint32_t done = 0, refusals = 0;; refusals++) {
        const struct rpma_receive *const rest = list + done;
        const int ret = srq   ? rpma_srq_recv_many(srq, rest, all - done, &posted)
                        : req ? rpma_conn_req_recv_many(req, rest, all - done, &posted)
                              : rpma_recv_many(conn, rest, all - done, &posted);
        done += posted;
        if ((ret == RPMA_E_PROVIDER || ret == RPMA_E_AGAIN) && refusals < REFUSALS_MAX)
            continue;
        if (ret != (is_invalid ? RPMA_E_INVAL : 0) || done != count)
            fail("%u of %u receives were posted: %s", done, count, rpma_err_2str(ret));
        return;
    }
}

static void open_srq(void) {
    struct rpma_srq_cfg *cfg;
    CALL(rpma_srq_cfg_new(&cfg));
    CALL(rpma_srq_cfg_set_max_sge(cfg, 2));
    if (below(2))
        CALL(rpma_srq_cfg_set_rcq_size(cfg, 0));
    CALL(rpma_srq_new(side.peer, cfg, &srq));
    CALL(rpma_srq_cfg_delete(&cfg));
    post_receives(NULL, NULL, 0, MESSAGES);
}

// Replies to requests with other private data before. A request has its queues at once at
// times.
static struct rpma_conn_req *await_offer(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg) {
    const bool is_set_up = below(2);
    for (;;) {
        struct rpma_conn_private_data pdata;
        struct rpma_conn_req *req;
        const int ret =
            is_set_up ? rpma_ep_next_conn_req(ep, cfg, &req) : rpma_ep_next_incoming(ep, &req);
        if (ret == RPMA_E_NO_EVENT)
            continue;
        check_call(ret, "taking a request");
        CALL(rpma_conn_req_get_private_data(req, &pdata));
        if (!is_offer(&pdata, NULL))
            reply_private_data(req, is_set_up);
        else if (is_set_up || rpma_conn_req_setup(req, cfg) == 0)
            return req;
        else
            refuse_request(req, "it has gone");
    }
}

// Receives complete in the receive CQ of a shared queue, if it has one, whatever the
// configuration of the connection.
static void check_receive_cq(const struct rpma_conn *conn) {
    struct rpma_cq *own, *shared;
    CALL(rpma_conn_get_rcq(conn, &own));
    CALL(rpma_srq_get_rcq(srq, &shared));
    if (own && shared)
        report_broken("a connection has a receive CQ besides that of its shared queue");
}

static struct rpma_conn *accept_with_receives(struct rpma_ep *ep) {
    struct rpma_conn_cfg *cfg = make_conn_cfg(below(2) ? 0 : MESSAGES, false);
    const struct offer offer = {.peer = side.peer, .mr = side.mr, .direct_write = direct_write};
    CALL(rpma_conn_cfg_set_max_sge(cfg, 2));
    CALL(rpma_conn_cfg_set_sq_size(cfg, 1));
    if (srq) // whose receives determine the size of the main CQ
        CALL(rpma_conn_cfg_set_srq(cfg, srq));
    else
        CALL(rpma_conn_cfg_set_rq_size(cfg, MESSAGES));
    struct rpma_conn_req *req = await_offer(ep, cfg);
    CALL(rpma_conn_cfg_delete(&cfg));
    if (!srq)
        post_receives(req, NULL, 0, EARLY);
    struct rpma_conn *const conn = try_accept(&req, &offer);
    if (!conn)
        fail("the client has gone");
    if (!srq)
        post_receives(NULL, conn, EARLY, MESSAGES - EARLY);
    else
        check_receive_cq(conn);
    return conn;
}

// Takes the completion of a receive, at times by the function of older releases. Returns false
// if there is none.
static bool take_receive(struct rpma_cq *cq, const void **context, enum ibv_wc_status *status) {
    struct rpma_completion old;
    struct ibv_wc wc;
    const bool by_old = below(2);
    const int ret =
        by_old ? rpma_cq_get_completion(cq, &old) : rpma_cq_get_wc(cq, 1, &wc, NULL);
    if (ret == RPMA_E_NO_COMPLETION)
        return false;
    check_call(ret, "taking a completion");
    *context = by_old ? old.op_context : (const void *)(uintptr_t)wc.wr_id;
    *status = by_old ? old.op_status : wc.status;
    return true;
}

// The receives that are left when the connection ends fail in their order. Those of a shared
// queue are left for other connections.
static void await_failed_receives(const struct completions *completions, unsigned received) {
    struct rpma_cq *const cq = completions->cq[RECEIVE];
    const void *context;
    enum ibv_wc_status status;
    unsigned completed = received;
    int fd;
    if (srq || received == MESSAGES)
        return;
    CALL(rpma_cq_get_fd(cq, &fd));
    CALL(rpma_cq_arm(cq, false)); // on soft-RoCE a failed receive is not solicited
    for (;;) {
        if (take_receive(cq, &context, &status)) {
            if (!context) // that of send_regions()
                continue;
            if (status == IBV_WC_SUCCESS || context != &receives[completed])
                report_broken("a receive that fails is reported as another one");
            completed++;
        } else if (completed == received) {
            const int ret = (await_readable(fd), rpma_cq_wait(cq));
            if (ret != RPMA_E_NO_COMPLETION)
                check_call(ret, "rpma_cq_wait");
        } else {
            break;
        }
    }
    report_receives(MESSAGES, completed);
}

static struct ibv_wc message_of(const struct rpma_completion *old) {
    if (old->op_status != IBV_WC_SUCCESS)
        fail("an operation failed: %s", ibv_wc_status_str(old->op_status));
    return (struct ibv_wc){.wr_id = (uintptr_t)old->op_context,
                           .opcode = old->op == RPMA_OP_RECV ? IBV_WC_RECV
                                                             : IBV_WC_RECV_RDMA_WITH_IMM,
                           .byte_len = old->byte_len,
                           .imm_data = htonl(old->imm),
                           .wc_flags = old->flags};
}

// Waits for the event of a message, which is solicited.
static void await_message(const struct completions *completions) {
    struct rpma_cq *const cq = completions->cq[RECEIVE];
    int fd, ret;
    CALL(rpma_cq_get_fd(cq, &fd));
    await_readable(fd);
    ret = rpma_cq_take_event(cq);
    if (ret == 0)
        ret = rpma_cq_arm(cq, below(2));
    if (ret != RPMA_E_NO_COMPLETION)
        check_call(ret, "waiting for a message");
}

// At times by the function of older releases.
static struct ibv_wc next_message(struct completions *completions) {
    struct rpma_completion old;
    int ret;
    if (!completions->waiting[RECEIVE] && below(2)) {
        while ((ret = rpma_cq_get_completion(completions->cq[RECEIVE], &old)) ==
               RPMA_E_NO_COMPLETION)
            await_message(completions);
        check_call(ret, "rpma_cq_get_completion");
        return message_of(&old);
    }
    return await_receive(completions);
}

// Returns false after the last message.
static bool report_message(const struct ibv_wc *wc) {
    const struct rpma_receive *const receive = (const void *)(uintptr_t)wc->wr_id;
    const bool is_write = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    const bool has_imm = wc->wc_flags & IBV_WC_WITH_IMM;
    const char *const data = side.memory.ptr + receive->local.offset;
    const struct message message = {is_write, wc->byte_len, has_imm ? ntohl(wc->imm_data) : 0,
                                    is_write ? 0 : checksum(data, wc->byte_len)};
    report_received(&message);
    return is_write || wc->byte_len > 0;
}

// Sends the descriptions of its regions: all receives are posted. The client may end before
// this send completes.
static void send_regions(struct rpma_conn *conn) {
    const struct rpma_mr_local *const regions[REGIONS + 2] = {side.mr, second_region,
                                                              volatile_region, limited_region};
    struct rpma_conn_private_data data = {side.memory.ptr + OWN, DESCRIPTION_SIZE};
    unsigned char descriptors[DESCRIPTORS_SIZE];
    for (unsigned i = 0; i < DESCRIPTORS; i++) {
        struct rpma_peer_cfg *pcfg;
        CALL(rpma_peer_cfg_new(&pcfg));
        CALL(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct_write && i % 2));
        if (i / 2)
            CALL(rpma_peer_cfg_set_served_by(pcfg, side.peer));
        CALL(rpma_peer_cfg_get_descriptor(pcfg, &descriptors[i]));
        CALL(rpma_peer_cfg_delete(&pcfg));
    }
    descriptors[DESCRIPTORS] = (unsigned char)limited_usage;
    CALL(rpma_mr_get_descriptor(side.mr, &descriptors[DESCRIPTORS + 1]));
    CALL(rpma_mr_get_descriptor(limited_region,
                                &descriptors[DESCRIPTORS + 1 + MR_DESCRIPTOR_SIZE]));
    CALL(rpma_conn_private_data_pack(regions, REGIONS + 2, NULL, descriptors,
                                     sizeof(descriptors), &data));
    CALL(rpma_send(conn, side.mr, OWN, data.len, RPMA_F_COMPLETION_ON_ERROR, NULL));
}

// Objects that are in use are not deleted.
static void check_deletes(void) {
    struct rpma_peer *peer = side.peer;
    struct rpma_srq *queue = srq;
    if (rpma_peer_delete(&peer) != RPMA_E_PROVIDER || peer != side.peer ||
        (srq && (rpma_srq_delete(&queue) != RPMA_E_PROVIDER || queue != srq)))
        report_broken("an object that is in use is deleted");
}

int main(int argc, char *argv[]) {
    struct rpma_conn_private_data pdata;
    struct ibv_wc wc;
    unsigned number;
    args = read_arguments(argc, argv, &program);
    CALL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED)); // not to syslog
    side = (struct side){.peer = open_peer(args.addr, RPMA_UTIL_IBV_CONTEXT_LOCAL),
                         .memory = server_memory};
    CALL(rpma_mr_reg(side.peer, side.memory.ptr, side.memory.size, USAGE, &side.mr));
    CALL(rpma_mr_reg(side.peer, side.memory.ptr + SECOND_REGION, AREAS * AREA - SECOND_REGION,
                     below(4) ? USAGE : USAGE & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
                     &second_region));
    CALL(rpma_mr_reg(side.peer, volatile_memory, sizeof(volatile_memory), USAGE,
                     &volatile_region));
    limited_usage = RPMA_MR_USAGE_WRITE_DST; // flushes do not need that of reads
    limited_usage |= below(2) ? RPMA_MR_USAGE_READ_SRC : 0;
    limited_usage |= below(2) ? RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY : 0;
    limited_usage |= below(2) ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : 0;
    CALL(rpma_mr_reg(side.peer, volatile_memory, sizeof(volatile_memory), (int)limited_usage,
                     &limited_region));
    direct_write = has_direct_write(&args, &side.memory) && below(16);
    srq = NULL; // that of a program that was killed
    prepare_receives();
    if (below(2))
        open_srq();
    struct rpma_ep *ep = start_listening(side.peer, &args);
    report_listening();
    struct rpma_conn *conn = accept_with_receives(ep);
    CALL(rpma_conn_get_private_data(conn, &pdata));
    if (!is_offer(&pdata, &number))
        fail("the client has another offer");
    report_client(number);

    struct completions completions = completions_of(conn, srq, false);
    send_regions(conn);
    if (below(2)) // all messages may arrive meanwhile
        (void)rdma_sim_advance(1000000000);
    if (below(4) == 0)
        check_deletes();
    unsigned received = 0;
    do {
        wc = next_message(&completions);
        received++;
    } while (report_message(&wc));
    await_failed_receives(&completions, received);
    await_disconnect(&conn);

    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_srq_delete(&srq));
    CALL(rpma_mr_dereg(&second_region));
    CALL(rpma_mr_dereg(&volatile_region));
    CALL(rpma_mr_dereg(&limited_region));
    CALL(rpma_mr_dereg(&side.mr));
    CALL(rpma_peer_delete(&side.peer));
    return EXIT_SUCCESS;
}
