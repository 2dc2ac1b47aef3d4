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
    struct log_header header;
    char entry[ENTRY_SIZE];
};

static struct rpma_conn *conn;
static struct rpma_cq *cq;
static struct rpma_mr_remote *remote;
static enum rpma_flush_type flush_type;

/*
 * The entry must be persistent before the tail says that it is there. Nothing waits in between:
 * the atomic write comes after the flush that was posted before it.
 */
static void append(struct side *side, uint64_t tail) {
    struct content *content = (void *)side->memory.ptr;
    size_t position = sizeof(struct log_header) + tail;
    size_t tail_position = offsetof(struct log_header, tail);
    uint64_t new_tail = htole64(tail + ENTRY_SIZE);

    if (position + ENTRY_SIZE > LOG_SIZE)
        fail("the log is full: let the server begin with another file");
    make_entry(content->entry, tail / ENTRY_SIZE + 1);
    CALL(rpma_write(conn, remote, position, side->mr, offsetof(struct content, entry),
                    ENTRY_SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL));
    CALL(rpma_flush(conn, remote, position, ENTRY_SIZE, flush_type, RPMA_F_COMPLETION_ON_ERROR,
                    NULL));
    CALL(rpma_atomic_write(conn, remote, tail_position, (const char *)&new_tail,
                           RPMA_F_COMPLETION_ON_ERROR, NULL));
    CALL(rpma_flush(conn, remote, tail_position, sizeof(new_tail), flush_type,
                    RPMA_F_COMPLETION_ALWAYS, NULL));
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

    CALL(rpma_read(conn, side.mr, 0, remote, 0, sizeof(struct log_header),
                   RPMA_F_COMPLETION_ALWAYS, NULL));
    await_completion(cq);
    if (!log_is_valid(&content->header))
        fail("the server's memory holds no log");
    uint64_t tail = le64toh(content->header.tail);
    for (int i = 0; i < ENTRIES; i++, tail += ENTRY_SIZE)
        append(&side, tail);
    printf("client: appended %d entries, the log has %zu now\n", ENTRIES,
           (size_t)(tail / ENTRY_SIZE));

    CALL(rpma_mr_remote_delete(&remote));
    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
