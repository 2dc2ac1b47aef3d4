// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- offers persistent memory, which it never initialises or persists, and prints the
// messages of a client, for which it posts receives in each possible way

#include "operations.h"
#include "random.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { EARLY = MESSAGES / 2 }; // receives before the connection is established

static const struct program program = {
    .purpose = "Offers FILE, which a client changes by every operation.",
    .uses_file = true,
    .direct_write_option = true,
};

static struct arguments args;
static struct side side;
static struct rpma_srq *srq; // or NULL
static struct rpma_receive receives[MESSAGES];
static struct rpma_sge sges[MESSAGES][2];

static void prepare_receives(void) {
    for (size_t i = 0; i < MESSAGES; i++) {
        const size_t begin = AREAS * AREA + i * MESSAGE_SIZE, first = 8 * below(8);
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
    struct rpma_receive list[MESSAGES + 1];
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
    list[count] = (struct rpma_receive){.reserved = 1};
    const int ret = srq   ? rpma_srq_recv_many(srq, list, all, &posted)
                    : req ? rpma_conn_req_recv_many(req, list, all, &posted)
                          : rpma_recv_many(conn, list, all, &posted);
    if (ret != (is_invalid ? RPMA_E_INVAL : 0) || posted != count)
        fail("%u of %u receives were posted: %s", posted, count, rpma_err_2str(ret));
}

static void open_srq(void) {
    struct rpma_srq_cfg *cfg;
    CALL(rpma_srq_cfg_new(&cfg));
    CALL(rpma_srq_cfg_set_max_sge(cfg, 2));
    CALL(rpma_srq_new(side.peer, cfg, &srq));
    CALL(rpma_srq_cfg_delete(&cfg));
    post_receives(NULL, NULL, 0, MESSAGES);
}

static struct rpma_conn *accept_with_receives(struct rpma_ep *ep) {
    struct rpma_conn_cfg *cfg = make_conn_cfg(MESSAGES, false);
    const struct offer offer = {.peer = side.peer,
                                .mr = side.mr,
                                .direct_write = has_direct_write(&args, &side.memory)};
    CALL(rpma_conn_cfg_set_max_sge(cfg, 2));
    if (srq)
        CALL(rpma_conn_cfg_set_srq(cfg, srq));
    struct rpma_conn_req *req = next_request(ep, cfg);
    CALL(rpma_conn_cfg_delete(&cfg));
    if (!srq)
        post_receives(req, NULL, 0, EARLY);
    struct rpma_conn *const conn = try_accept(&req, &offer);
    if (!conn)
        fail("the client has gone");
    if (!srq)
        post_receives(NULL, conn, EARLY, MESSAGES - EARLY);
    return conn;
}

// Returns false after the last message.
static bool print_message(const struct ibv_wc *wc) {
    const struct rpma_receive *const receive = (const void *)(uintptr_t)wc->wr_id;
    const bool is_write = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    const bool has_imm = wc->wc_flags & IBV_WC_WITH_IMM;
    const char *const data = side.memory.ptr + receive->local.offset;
    printf("server: receives %s %u %u %u\n", is_write ? "write" : "message", wc->byte_len,
           has_imm ? ntohl(wc->imm_data) : 0, is_write ? 0 : checksum(data, wc->byte_len));
    return is_write || wc->byte_len > 0;
}

int main(int argc, char *argv[]) {
    struct rpma_conn_private_data pdata;
    struct ibv_wc wc;
    unsigned number;
    args = read_arguments(argc, argv, &program);
    side = open_server_side(&args, AREAS * AREA + MESSAGES * MESSAGE_SIZE,
                            RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
                                RPMA_MR_USAGE_ATOMIC | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
                                RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                                RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
    prepare_receives();
    if (below(2))
        open_srq();
    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = accept_with_receives(ep);
    CALL(rpma_conn_get_private_data(conn, &pdata));
    if (!is_offer(&pdata, &number))
        fail("the client has another offer");
    printf("server: serves %u\n", number);

    // The client waits until all receives are posted. It may end before this send completes.
    struct completions completions = completions_of(conn, srq, false);
    CALL(rpma_send(conn, NULL, 0, 0, RPMA_F_COMPLETION_ON_ERROR, NULL));
    do
        wc = await_receive(&completions);
    while (print_message(&wc));
    await_disconnect(&conn);

    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_srq_delete(&srq));
    close_side(&side);
    return EXIT_SUCCESS;
}
