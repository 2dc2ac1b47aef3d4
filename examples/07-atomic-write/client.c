// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- appends to a log in the server's memory; the atomic write publishes each entry

#include "log.h"

#include <stdlib.h>

#define ENTRIES 5

static const struct program program = {
    .does = "Appends five entries to the log in the server's memory.",
};

struct content {
    char entry[BLOCK_SIZE];
    struct log_header header;
};

static struct rpma_conn *conn;
static struct rpma_cq *cq;
static struct rpma_mr_remote *remote;
static enum rpma_flush_type flush_type;

/*
 * The entry must be flushed before the tail says that it is there. Nothing has to wait for
 * that: the atomic write takes effect after the flush that was posted before it. README.md
 * names the one device where that is not so.
 */
static void append(struct side *side, uint64_t tail) {
    size_t offset = entry_offset(tail);
    size_t tail_offset = offsetof(struct log_header, tail);
    const struct rpma_work work[] = {
        {.type = RPMA_WORK_WRITE,
         .remote = remote,
         .remote_offset = offset,
         .local = {.mr = side->mr, .len = BLOCK_SIZE},
         .flags = RPMA_F_COMPLETION_ON_ERROR},
        {.type = RPMA_WORK_FLUSH,
         .remote = remote,
         .remote_offset = offset,
         .flush_type = flush_type,
         .flush_len = BLOCK_SIZE,
         .flags = RPMA_F_COMPLETION_ON_ERROR},
        {.type = RPMA_WORK_ATOMIC_WRITE,
         .remote = remote,
         .remote_offset = tail_offset,
         .value = htole64(tail + 1),
         .flags = RPMA_F_COMPLETION_ON_ERROR},
        {.type = RPMA_WORK_FLUSH,
         .remote = remote,
         .remote_offset = tail_offset,
         .flush_type = flush_type,
         .flush_len = sizeof(uint64_t),
         .flags = RPMA_F_COMPLETION_ALWAYS},
    };

    if (tail >= LOG_ENTRIES)
        fail("the log is full: let the server begin with another file");
    fill_block(side->memory.ptr, BLOCK_SIZE, entry_content(tail));
    CALL(rpma_post(conn, work, 4, NULL));
    await_completion(cq);
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, sizeof(struct content),
                                        RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC);
    struct content *content = (void *)side.memory.ptr;
    bool direct_write;

    conn = connect_to_server(side.peer, &args, NULL, NULL);
    remote = offered_memory(conn, &direct_write);
    flush_type = direct_write ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY;
    CALL(rpma_conn_get_cq(conn, &cq));

    CALL(rpma_read(conn, side.mr, offsetof(struct content, header), remote, 0,
                   sizeof(struct log_header), RPMA_F_COMPLETION_ALWAYS, NULL));
    await_completion(cq);
    if (!log_is_valid(&content->header))
        fail("the server's memory holds no log");
    uint64_t tail = le64toh(content->header.tail);
    for (int i = 0; i < ENTRIES; i++)
        append(&side, tail++);
    printf("client: appended %d entries, the log has %zu now: they are %s\n", ENTRIES,
           (size_t)tail, what_flushed_data_is(direct_write));

    CALL(rpma_mr_remote_delete(&remote));
    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
