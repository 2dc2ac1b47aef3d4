// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- offers the memory for the client's record. With --wrong it makes the mistakes of
// entries 1, 7 and 10 of rpma_pitfalls(7).

#include "common.h"
#include "pitfalls.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define USAGE                                                                                 \
    (RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | \
     RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static const struct program program = {
    .purpose = "Offers memory, into which one client writes a record.",
    .variant = "--wrong",
    .number = "ENTRY",
    .direct_write_option = true,
};

static bool states_direct_write(const struct arguments *args, const struct memory *memory) {
    const bool wrong = args->variant, operator_confirms = args->direct_write;
    const bool is_pmem = memory->is_pmem;
    bool direct_write = operator_confirms && is_pmem;
    if (args->number == 1) { // 1.
        if (wrong)
            direct_write = is_pmem;
        else
            direct_write = operator_confirms && is_pmem;
    } else if (args->number == 10) { // 10.
        if (wrong)
            direct_write = operator_confirms;
        else
            direct_write = operator_confirms && is_pmem;
    }
    return direct_write;
}

// 7.
static void store_record(const struct memory *memory, bool wrong) {
    char *record = memset(memory->ptr + RECORD, RECORD_BYTE, LEN);
    if (!wrong)
        memory->persist(record, LEN);
}

// Waits until the client requests persistence, or the connection ends.
static void handle_request(const struct memory *memory, struct rpma_conn *conn) {
    uint64_t *request = (uint64_t *)(memory->ptr + REQUEST);
    struct pollfd event = {.events = POLLIN};
    CALL(rpma_conn_get_event_fd(conn, &event.fd));
    while (!poll(&event, 1, 10))
        if (__atomic_load_n(request, __ATOMIC_ACQUIRE)) {
            memory->persist(memory->ptr + RECORD, LEN);
            __atomic_store_n((uint64_t *)(memory->ptr + REPLY), 1, __ATOMIC_RELEASE);
            return;
        }
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    const struct memory memory = server_memory;
    struct rpma_peer *peer = open_peer(args.addr, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    struct offer offer = {.peer = peer, .direct_write = states_direct_write(&args, &memory)};
    struct rpma_mr_local *mr;
    CALL(rpma_mr_reg(peer, memory.ptr, BLOCK_SIZE, USAGE, &mr));
    offer.mr = mr;
    memset(memory.ptr + REQUEST, 0, REPLY + 8 - REQUEST);
    if (args.number == 7)
        store_record(&memory, args.variant);

    struct rpma_ep *ep = start_listening(peer, &args);
    struct rpma_conn *conn = accept_client(ep, NULL, &offer);
    if (!offer.direct_write)
        handle_request(&memory, conn);
    await_disconnect(&conn);

    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_mr_dereg(&mr));
    CALL(rpma_peer_delete(&peer));
    return EXIT_SUCCESS;
}
