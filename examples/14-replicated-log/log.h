/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* log.h -- the form of the log, which the client, the servers and the reader agree on */

#ifndef LOG_H
#define LOG_H 1

#include "common.h"

#define LOG_SIZE ((size_t)8 << 20)
#define LOG_BEGIN ((size_t)64) /* where the first record stands */
#define LOG_SIGNATURE "RPMALOG2"
#define PAYLOAD_MAX ((size_t)4096)

/* All numbers are little-endian. Tail and epoch change by atomic writes only. */
struct log_header {
    uint64_t tail;  /* bytes from the beginning of the log; what is behind is no part of it */
    uint64_t epoch; /* the newest client that this server knows of */
    char signature[8];
};

/* The payload follows; the next record begins at a multiple of 8. */
struct record {
    uint32_t checksum; /* CRC32C of what follows and of the payload */
    uint32_t size;     /* of the payload */
    uint64_t number;   /* the first has 0 */
    uint64_t epoch;    /* of the client that appended it */
};

/* What a log holds: records from 0 to count - 1, whole and in order, before the byte end. */
struct extent {
    uint64_t count;
    uint64_t epoch; /* of the last record; 0 when there is none */
    size_t end;
    uint32_t checksum; /* of the last record */
};

/* Fills the header of a record. */
void make_record(struct record *record, uint64_t number, uint64_t epoch, const void *payload,
                 size_t size);

/* Bytes from the beginning of a record to that of the next. */
size_t record_space(size_t payload_size);

/* The tail of a log, or 0 when there is no log. */
size_t log_tail(const struct log_header *header);

/*
 * Goes on to the next record before tail: true when it is there and whole. At the end of a good
 * log it is false with extent->end == tail.
 */
bool next_record(const char *log, size_t tail, struct extent *extent);

/* All records before tail; extent.end < tail: the record at extent.end is damaged. */
struct extent read_log(const char *log, size_t tail);

/* The part that two logs have in common: records of the same number and epoch are the same. */
struct extent common_part(const char *log, size_t tail, const char *other, size_t other_tail);

#endif
