// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- the ten entries of rpma_pitfalls(7). With --wrong the program loses data,
// otherwise not. The page shows the lines after "if (wrong)", "if (!wrong)" and "else".

#include "common.h"
#include "pitfalls.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

static const struct program program = {
    .purpose = "Writes a record into the server's memory and reports when it is safe.",
    .variant = "--wrong",
    .number = "ENTRY",
};

static const enum rpma_flush_type persistent = RPMA_FLUSH_TYPE_PERSISTENT;
static const enum rpma_flush_type visible = RPMA_FLUSH_TYPE_VISIBILITY;
static const int always = RPMA_F_COMPLETION_ALWAYS, quiet = RPMA_F_COMPLETION_ON_ERROR;

static bool wrong, direct_write;
static struct rpma_conn *conn;
static struct rpma_cq *cq;
static struct rpma_mr_local *mr; // of `buffer`, which begins with the record
static struct rpma_mr_remote *dst;
static char *buffer;

static void write_record(int flags) {
    CALL(rpma_write(conn, dst, RECORD, mr, 0, LEN, flags, NULL));
}

static void flush_record(enum rpma_flush_type type) {
    CALL(rpma_flush(conn, dst, RECORD, LEN, type, always, NULL));
    await_completion(cq);
}

static const uint64_t *read_word(size_t place) {
    const size_t offset = BLOCK_SIZE - sizeof(uint64_t);
    CALL(rpma_read(conn, mr, offset, dst, place, sizeof(uint64_t), always, NULL));
    await_completion(cq);
    return (const uint64_t *)(buffer + offset);
}

// A message would also do: see example 09.
static void request_persistence(void) {
    const uint64_t yes = 1;
    flush_record(visible);
    CALL(rpma_atomic_write(conn, dst, REQUEST, (const char *)&yes, quiet, NULL));
    for (int tries = 0; !*read_word(REPLY); tries++)
        if (tries == 6000)
            fail("the server does not reply");
        else
            poll(NULL, 0, 10);
}

// 1. and 10.: the server decides if it advertises direct write.
static void write_for_server(void) {
    write_record(quiet);
    if (direct_write)
        flush_record(persistent);
    else
        request_persistence();
}

// 2.: the mistake is a test that does not cut the power.
static void write_without_flush(void) {
    write_record(always);
    await_completion(cq);
}

// 3.
static void flush_range(void) {
    write_record(quiet);
    if (wrong)
        CALL(rpma_flush(conn, dst, 0, LEN, persistent, always, NULL));
    else
        CALL(rpma_flush(conn, dst, RECORD, LEN, persistent, always, NULL));
    await_completion(cq);
}

// 4.
static void wait_for_arrival(void) {
    if (wrong) {
        CALL(rpma_write(conn, dst, RECORD, mr, 0, LEN, always, NULL));
    } else {
        CALL(rpma_write(conn, dst, RECORD, mr, 0, LEN, quiet, NULL));
        CALL(rpma_flush(conn, dst, RECORD, LEN, visible, always, NULL));
    }
    await_completion(cq);
}

// 5.
static void publish(void) {
    const uint64_t one = 1;
    const char *pointer = memcpy(buffer + LEN, &one, sizeof(one));
    write_record(quiet);
    if (wrong) {
        CALL(rpma_write(conn, dst, POINTER, mr, LEN, 8, quiet, NULL));
        CALL(rpma_flush(conn, dst, RECORD, LEN, persistent, quiet, NULL));
    } else {
        CALL(rpma_flush(conn, dst, RECORD, LEN, persistent, quiet, NULL));
        CALL(rpma_atomic_write(conn, dst, POINTER, pointer, quiet, NULL));
    }
    CALL(rpma_flush(conn, dst, POINTER, 8, persistent, always, NULL));
    await_completion(cq);
}

// All 8 bytes of a number have the same value, which replaces a checksum.
static unsigned read_number(size_t place) {
    const uint64_t number = *read_word(place);
    return number == (number & 0xff) * 0x0101010101010101 ? number & 0xff : 0;
}

// 6.
static void change_number(void) {
    const unsigned one = read_number(POINTER), other = read_number(POINTER_2);
    size_t place;
    char bytes[8];
    for (unsigned i = 1; i <= 2; i++) {
        const unsigned number = (one > other ? one : other) + i;
        if (wrong)
            place = POINTER;
        else
            place = number % 2 == 0 ? POINTER : POINTER_2;
        memset(bytes, (int)number, sizeof(bytes));
        CALL(rpma_atomic_write(conn, dst, place, bytes, quiet, NULL));
        CALL(rpma_flush(conn, dst, place, 8, persistent, always, NULL));
        await_completion(cq);
        report_safe(number);
    }
}

// 7.: the server has stored the record.
static void flush_what_the_server_stored(void) {
    flush_record(persistent);
}

// 8.
static void take_completion_of_flush(void) {
    struct ibv_wc wc;
    int ret;
    write_record(quiet);
    CALL(rpma_flush(conn, dst, RECORD, LEN, persistent, always, NULL));
    while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
        rpma_cq_wait(cq);
    CALL(ret);
    if (!wrong) {
        if (wc.status != IBV_WC_SUCCESS)
            fail("the record may be lost: %s", ibv_wc_status_str(wc.status));
    }
}

// 9.
static void use_buffer_again(void) {
    write_record(always);
    if (wrong) {
        memset(buffer, 's', LEN);
        await_completion(cq);
    } else {
        await_completion(cq);
        memset(buffer, 's', LEN);
    }
    CALL(rpma_write(conn, dst, RECORD_2, mr, 0, LEN, quiet, NULL));
    flush_record(persistent);
}

static void (*const entries[])(void) = {NULL,
                                        write_for_server,
                                        write_without_flush,
                                        flush_range,
                                        wait_for_arrival,
                                        publish,
                                        change_number,
                                        flush_what_the_server_stored,
                                        take_completion_of_flush,
                                        use_buffer_again,
                                        write_for_server};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side =
        open_client_side(&args, BLOCK_SIZE, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST);
    if (args.number >= sizeof(entries) / sizeof(*entries))
        fail("there is no entry %u", args.number);
    wrong = args.variant;
    mr = side.mr;
    buffer = memset(side.memory.ptr, RECORD_BYTE, LEN);
    conn = connect_to_server(side.peer, &args, NULL, NULL);
    CALL(rpma_conn_get_cq(conn, &cq));
    dst = offered_memory(conn, &direct_write);

    entries[args.number]();
    report_safe(0);

    CALL(rpma_mr_remote_delete(&dst));
    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
