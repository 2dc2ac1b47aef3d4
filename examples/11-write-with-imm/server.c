// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- receives immediate data as the notification that the client has written

#include "common.h"

#include <arpa/inet.h>
#include <stdlib.h>

static const struct program program = {
    .example = 11,
    .purpose = "Offers a block of memory, and is notified when one client has written it.",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side =
        open_server_side(&args, BLOCK_SIZE, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV);
    struct offer offer = {.peer = side.peer, .mr = side.mr};
    struct rpma_cq *cq;

    // The write consumes a receive, but not its memory: the client selects the destination.
    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = NULL;
    while (!conn) {
        struct rpma_conn_req *req = next_request(ep, NULL);
        CALL(rpma_conn_req_recv(req, side.mr, 0, 1, NULL));
        conn = try_accept(&req, &offer);
    }
    CALL(rpma_conn_get_cq(conn, &cq));

    struct ibv_wc wc = await_completion(cq);
    if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM || !(wc.wc_flags & IBV_WC_WITH_IMM))
        fail("unexpected completion instead of a write with immediate data");
    uint32_t imm = ntohl(wc.imm_data);
    check_block(side.memory.ptr, BLOCK_SIZE, 11);
    if (wc.byte_len != BLOCK_SIZE || imm != checksum(side.memory.ptr, BLOCK_SIZE))
        fail("the immediate data 0x%08x does not match the %u bytes", imm, wc.byte_len);
    printf("server: %u bytes were written, immediate data 0x%08x, all right\n", wc.byte_len,
           imm);
    await_disconnect(&conn);

    CALL(rpma_ep_shutdown(&ep));
    close_side(&side);
    return EXIT_SUCCESS;
}
