/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* log.h -- the form of the log, which the client, the servers and the reader agree on */

#ifndef LOG_H
#define LOG_H 1

#include "common.h"

#define LOG_SIZE ((size_t)8 << 20)
#define LOG_BEGIN ((size_t)64) /* where the first record stands */
#define LOG_SIGNATURE "RPMALOG"
#define LOG_VERSION 4U
#define PAYLOAD_MAX ((size_t)4096)
#define EPOCH_MAX UINT32_MAX

/*
 * All numbers are little-endian. Tail, epoch and identity change by atomic writes while the log
 * is in use; each is a number in the lower half and a checksum in the upper one
 * (seal_number()). The checksum of the header is CRC32C of the signature, the version and the
 * size.
 */
struct log_header {
    uint64_t tail;  /* bytes from the beginning of the log; those behind are not in it */
    uint64_t epoch; /* the newest client that this server has promised the log to; 0: a log that
                       does not count, because the server may have forgotten its records */
    char signature[8];
    uint32_t version;
    uint32_t size; /* LOG_SIZE */
    uint32_t checksum;
    uint64_t identity; /* the same on all servers of a log (make_identity()); 0: none yet */
};

/* The payload follows; the next record begins at a multiple of 8. */
struct record {
    uint32_t checksum; /* CRC32C of the members below and of the payload */
    uint32_t size;     /* of the payload */
    uint64_t number;   /* the first has 0 */
    uint64_t epoch;    /* of the client that appended it */
};

/* The records of a log: from 0 to count - 1, whole and in order, before the byte end. */
struct extent {
    uint64_t count;
    uint64_t epoch; /* of the last record; 0 when there is none */
    size_t end;
    uint32_t checksum; /* of the last record */
};

/* The content of a header. */
struct log_state {
    size_t tail;
    uint64_t epoch;
    uint64_t identity;
};

/* A number in the form that it has at that place of the header. */
uint64_t seal_number(size_t place, uint64_t number);

/* A new identity of a log that so many servers keep (15 at most): their number in the lower 4
 * bits, and 28 bits at random. */
uint64_t make_identity(unsigned servers);
unsigned servers_of(uint64_t identity);

/* The header of an empty log of epoch 0, without identity. */
struct log_header make_header(void);

/* Returns the defect of a header in words, or NULL: then *state is its content. */
const char *read_header(const struct log_header *header, struct log_state *state);

/* Makes a record at that place; returns the place behind it. */
size_t make_record(char *place, uint64_t number, uint64_t epoch, const void *payload,
                   size_t size);

/* Bytes from the beginning of a record to that of the next. */
size_t record_space(size_t payload_size);

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
