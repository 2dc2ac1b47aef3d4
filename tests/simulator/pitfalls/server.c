// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- offers the memory for the client's record. With --wrong it makes the mistakes of
// entries 1, 7 and 10 of rpma_pitfalls(7).

#include "common.h"
#include "pitfalls.h"

#include <fcntl.h>
#include <libpmem2.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USAGE                                                                                 \
    (RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | \
     RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static const struct program program = {
    .purpose = "Offers FILE, into which one client writes a record.",
    .variant = "--wrong",
    .number = "ENTRY",
    .uses_file = true,
    .direct_write_option = true,
};

// Maps any file: libpmem2 reports if it is PMem, and how stores to it become persistent.
static struct memory map_any_file(const char *name) {
    const int fd = open(name, O_RDWR);
    struct pmem2_source *source;
    struct pmem2_config *config;
    struct pmem2_map *map;
    if (fd < 0 || pmem2_source_from_fd(&source, fd) || pmem2_config_new(&config) ||
        pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_PAGE) ||
        pmem2_map_new(&map, config, source))
        fail("cannot map %s", name);
    pmem2_config_delete(&config);
    pmem2_source_delete(&source);
    return (struct memory){.ptr = pmem2_map_get_address(map),
                           .is_pmem =
                               pmem2_map_get_store_granularity(map) != PMEM2_GRANULARITY_PAGE,
                           .persist = pmem2_get_persist_fn(map),
                           .map = map,
                           .fd = fd};
}

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

// Waits up to one second. A client whose request arrives later gets no reply, and does not
// report its record as safe.
static void handle_request(const struct memory *memory, struct rpma_conn *conn) {
    uint64_t *request = (uint64_t *)(memory->ptr + REQUEST);
    struct pollfd event = {.events = POLLIN};
    CALL(rpma_conn_get_event_fd(conn, &event.fd));
    for (int tries = 0; tries < 100 && !poll(&event, 1, 10); tries++)
        if (__atomic_load_n(request, __ATOMIC_ACQUIRE)) {
            memory->persist(memory->ptr + RECORD, LEN);
            __atomic_store_n((uint64_t *)(memory->ptr + REPLY), 1, __ATOMIC_RELEASE);
            return;
        }
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct memory memory = map_any_file(args.file);
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
    close_memory(&memory);
    return EXIT_SUCCESS;
}
