// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- has a log to which a client appends, and checks it afterwards

#include "log.h"

#include <stdlib.h>

#define USAGE                                                                                 \
    (RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | \
     RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static const struct program program = {
    .example = 7,
    .purpose = "Offers a log in the persistent memory FILE, to which one client appends.",
    .uses_file = true,
    .direct_write_option = true,
};

static size_t check_log(const struct memory *memory) {
    const struct log_header *header = (const void *)memory->ptr;
    if (!log_is_valid(header))
        fail("the log is damaged");
    size_t count = (size_t)le64toh(header->tail);
    for (size_t i = 0; i < count; i++)
        check_block(memory->ptr + entry_offset(i), BLOCK_SIZE, entry_content(i));
    return count;
}

// Continues an existing log, and does not replace a damaged one. The signature is written last;
// after a server was killed, the signature may not be persistent.
static size_t open_log(const struct memory *memory) {
    struct log_header *header = (void *)memory->ptr;
    if (!has_signature(header)) {
        memset(memory->ptr, 0, LOG_SIZE);
        memory->persist(memory->ptr, LOG_SIZE);
        memcpy(header->signature, LOG_SIGNATURE, sizeof(header->signature));
    }
    memory->persist(header, sizeof(*header));
    return check_log(memory);
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, LOG_SIZE, USAGE);
    struct offer offer = {.peer = side.peer,
                          .mr = side.mr,
                          .direct_write = has_direct_write(&args, &side.memory)};
    size_t before = open_log(&side.memory);

    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = accept_client(ep, NULL, &offer);
    await_disconnect(&conn);

    size_t after = check_log(&side.memory);
    if (after <= before)
        fail("the client has appended nothing");
    printf("server: the log in %s had %zu entries and has %zu, all right\n",
           memory_kind(&side.memory), before, after);

    CALL(rpma_ep_shutdown(&ep));
    close_side(&side);
    return EXIT_SUCCESS;
}
