// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- sends several messages at once; the replies arrive in a separate receive CQ

#include "sum.h"

#include <endian.h>
#include <stdlib.h>

static const struct program program = {
    .example = 12,
    .purpose = "Sends eight numbers to the server, which replies with sums of them.",
    .variant = "--shared-channel",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, sizeof(struct content), USAGE);
    struct content *content = (void *)side.memory.ptr;
    struct rpma_conn_cfg *cfg = make_conn_cfg(2, args.variant);
    const struct rpma_receive receives[] = {
        {.local = {side.mr, offsetof(struct content, sums[0]), sizeof(uint64_t)}},
        {.local = {side.mr, offsetof(struct content, sums[1]), sizeof(uint64_t)}},
    };
    struct rpma_work work[NUMBERS];
    struct rpma_conn_req *req;
    uint64_t sums[2] = {0};

    CALL(rpma_conn_req_new(side.peer, args.addr, args.port, cfg, &req));
    CALL(rpma_conn_req_recv_many(req, receives, 2, NULL));
    struct rpma_conn *conn = establish(&req, NULL);
    struct completions completions = completions_of(conn, NULL, args.variant);

    for (size_t i = 0; i < NUMBERS; i++) {
        uint64_t number = (i + 1) * (i + 1);
        sums[0] += i < NUMBERS / 2 ? number : 0;
        sums[1] += number;
        content->numbers[i] = htobe64(number);
        // Only the last send has a completion; the others have completed by then.
        work[i] = (struct rpma_work){
            .type = RPMA_WORK_SEND,
            .local = {side.mr, i * sizeof(uint64_t), sizeof(uint64_t)},
            .flags = i < NUMBERS - 1 ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS,
        };
    }
    CALL(rpma_post(conn, work, NUMBERS, NULL));
    await_operation(&completions);
    for (size_t half = 0; half < 2; half++) {
        await_receive(&completions);
        if (be64toh(content->sums[half]) != sums[half])
            fail("the server's sum is wrong");
    }
    printf("client: the server's sum is %d, all right\n", (int)sums[1]);

    disconnect(&conn);
    CALL(rpma_conn_cfg_delete(&cfg));
    close_side(&side);
    return EXIT_SUCCESS;
}
