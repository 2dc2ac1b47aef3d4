// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- receives messages and compares their content with their immediate data

#include "common.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define MESSAGES 2

static const struct program program = {
    .example = 10,
    .purpose = "Receives two messages with a checksum as immediate data.",
};

static void check_message(const char *content, const struct ibv_wc *wc) {
    if (wc->opcode != IBV_WC_RECV || !(wc->wc_flags & IBV_WC_WITH_IMM))
        fail("a message arrived without immediate data");
    // The sender passed the number in its own byte order; the receiver has to convert it.
    uint32_t imm = ntohl(wc->imm_data);
    if (imm != checksum(content, wc->byte_len))
        fail("the immediate data does not match the message of %u bytes", wc->byte_len);
    printf("server: %u bytes with immediate data 0x%08x, all right\n", wc->byte_len, imm);
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, MESSAGES * BLOCK_SIZE, RPMA_MR_USAGE_RECV);
    // op_context identifies the receive in its completion.
    const struct rpma_receive receives[MESSAGES] = {
        {.local = {side.mr, 0, BLOCK_SIZE}, .op_context = side.memory.ptr},
        {.local = {side.mr, BLOCK_SIZE, BLOCK_SIZE},
         .op_context = side.memory.ptr + BLOCK_SIZE},
    };
    struct rpma_cq *cq;
    unsigned total = 0;

    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = NULL;
    while (!conn) {
        struct rpma_conn_req *req = next_request(ep, NULL);
        CALL(rpma_conn_req_recv_many(req, receives, MESSAGES, NULL));
        conn = try_accept(&req, NULL);
    }
    CALL(rpma_conn_get_cq(conn, &cq));

    for (int i = 0; i < MESSAGES; i++) {
        struct ibv_wc wc = await_completion(cq);
        const char *content = (const char *)(uintptr_t)wc.wr_id;
        check_message(content, &wc);
        if (wc.byte_len)
            check_block(content, BLOCK_SIZE, 10);
        total += wc.byte_len;
    }
    if (total != BLOCK_SIZE)
        fail("%u bytes arrived instead of %zu", total, BLOCK_SIZE);
    await_disconnect(&conn);

    CALL(rpma_ep_shutdown(&ep));
    close_side(&side);
    return EXIT_SUCCESS;
}
