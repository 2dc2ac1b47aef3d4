// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- invalid clients. Forms 1 to 4 send a server of example 15 a wrong number of the
// client, too little memory, or a request for a block or slot that does not exist. Forms 5 to 9
// request that a server of example 09 persists memory that it has not offered.

#include "common.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

// Defined in mover.h of example 15 and in messages.h of example 09.
enum { STORE_BLOCKS = 32, DEPTH = 8, BLOCKS = 4 };

static const struct {
    unsigned number; // the number of the client
    size_t offered;  // bytes of its memory
    uint32_t block, slot;
} forms[] = {
    {0, DEPTH *BLOCK_SIZE, 0, 0},
    {1, DEPTH *BLOCK_SIZE - 1, 0, 0},
    {1, DEPTH *BLOCK_SIZE, STORE_BLOCKS, 0},
    {1, DEPTH *BLOCK_SIZE, 0, DEPTH},
};

// The end of the first three ranges exceeds 64 bits.
static const struct {
    uint64_t offset, size;
} ranges[] = {
    {UINT64_MAX - BLOCK_SIZE + 1, BLOCK_SIZE},
    {BLOCK_SIZE, UINT64_MAX - BLOCK_SIZE + 1},
    {UINT64_MAX, UINT64_MAX},
    {BLOCKS * BLOCK_SIZE, 1},
    {0, BLOCKS *BLOCK_SIZE + 1},
};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static struct program program = {
    .purpose = "Sends an invalid request to a server.",
    .number = "FORM",
};

// Returns the size of the request.
static size_t make_request(unsigned form, void *message) {
    if (form < FORMS) {
        const uint32_t request[] = {0, htonl(forms[form].block), htonl(forms[form].slot)};
        memcpy(message, request, sizeof(request));
        return sizeof(request);
    }
    const uint64_t request[] = {htobe64(ranges[form - FORMS].offset),
                                htobe64(ranges[form - FORMS].size)};
    memcpy(message, request, sizeof(request));
    return sizeof(request);
}

int main(int argc, char *argv[]) {
    program.example = argc > 3 && atoi(argv[3]) > FORMS ? 9 : 15;
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, DEPTH * BLOCK_SIZE, RPMA_MR_USAGE_SEND);
    const unsigned form = args.number - 1, offer_form = form < FORMS ? form : FORMS - 1;
    struct rpma_mr_local *mr;
    CALL(rpma_mr_reg(side.peer, side.memory.ptr, forms[offer_form].offered,
                     RPMA_MR_USAGE_WRITE_DST, &mr));
    const struct offer offer = {
        .peer = side.peer, .mr = mr, .number = forms[offer_form].number};
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, &offer);
    CALL(rpma_send(conn, side.mr, 0, make_request(form, side.memory.ptr),
                   RPMA_F_COMPLETION_ON_ERROR, NULL));
    await_disconnect(&conn); // the server disconnects
    CALL(rpma_mr_dereg(&mr));
    close_side(&side);
    return EXIT_SUCCESS;
}
