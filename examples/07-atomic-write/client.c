// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- appends to a log in the server's memory; the atomic write publishes each entry

#include "log.h"

#include <stdlib.h>

#define ENTRIES 5

static const struct program program = {
    .example = 7,
    .purpose = "Appends five entries to the log in the server's memory.",
};

struct content {
    char entry[BLOCK_SIZE];
    struct log_header header;
};

enum { WRITE_ENTRY, FLUSH_ENTRY, WRITE_TAIL, FLUSH_TAIL, OPERATIONS };

/*
 * The entry must be flushed before the new tail is visible. The client need not wait for the
 * flush: the atomic write takes effect after the flush that was posted before it. README.md
 * names the one device that is an exception.
 */
static struct rpma_work work[OPERATIONS] = {
    [WRITE_ENTRY] = {.type = RPMA_WORK_WRITE,
                     .local = {.len = BLOCK_SIZE},
                     .flags = RPMA_F_COMPLETION_ON_ERROR},
    [FLUSH_ENTRY] = {.type = RPMA_WORK_FLUSH,
                     .flush_len = BLOCK_SIZE,
                     .flags = RPMA_F_COMPLETION_ON_ERROR},
    [WRITE_TAIL] = {.type = RPMA_WORK_ATOMIC_WRITE,
                    .remote_offset = offsetof(struct log_header, tail),
                    .flags = RPMA_F_COMPLETION_ON_ERROR},
    [FLUSH_TAIL] = {.type = RPMA_WORK_FLUSH,
                    .remote_offset = offsetof(struct log_header, tail),
                    .flush_len = sizeof(uint64_t),
                    .flags = RPMA_F_COMPLETION_ALWAYS},
};

static struct rpma_batch *prepare(struct rpma_conn *conn, struct rpma_mr_local *mr,
                                  const struct rpma_mr_remote *remote,
                                  enum rpma_flush_type flush_type) {
    struct rpma_batch *batch;
    CALL(rpma_batch_new(conn, OPERATIONS, &batch));
    work[WRITE_ENTRY].local.mr = mr;
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        work[i].remote = remote;
        work[i].flush_type = flush_type;
        CALL(rpma_batch_add(batch, &work[i]));
    }
    return batch;
}

// The last operation is the same for each entry, and is not replaced.
static void append(struct rpma_batch *batch, char *entry, uint64_t tail) {
    if (tail >= LOG_ENTRIES)
        fail("the log is full: start the server with another file");
    fill_block(entry, BLOCK_SIZE, entry_content(tail));
    work[WRITE_ENTRY].remote_offset = entry_offset(tail);
    work[FLUSH_ENTRY].remote_offset = entry_offset(tail);
    work[WRITE_TAIL].value = htole64(tail + 1);
    for (uint32_t i = 0; i < FLUSH_TAIL; i++)
        CALL(rpma_batch_set(batch, i, &work[i]));
    CALL(rpma_batch_post(batch, NULL));
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, sizeof(struct content),
                                        RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC);
    struct content *content = (void *)side.memory.ptr;
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, NULL);
    bool direct_write;
    struct rpma_mr_remote *remote = offered_memory(conn, &direct_write);
    struct rpma_batch *batch =
        prepare(conn, side.mr, remote,
                direct_write ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY);
    struct rpma_cq *cq;

    CALL(rpma_conn_get_cq(conn, &cq));
    CALL(rpma_read(conn, side.mr, offsetof(struct content, header), remote, 0,
                   sizeof(struct log_header), RPMA_F_COMPLETION_ALWAYS, NULL));
    await_completion(cq);
    if (!log_is_valid(&content->header))
        fail("the server's memory has no log");
    uint64_t tail = le64toh(content->header.tail);
    for (int i = 0; i < ENTRIES; i++) {
        append(batch, content->entry, tail++);
        await_completion(cq);
    }
    printf("client: appended %d entries, the log has %zu now: they are %s\n", ENTRIES,
           (size_t)tail, describe_persistence(direct_write));

    CALL(rpma_batch_delete(&batch));
    CALL(rpma_mr_remote_delete(&remote));
    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
