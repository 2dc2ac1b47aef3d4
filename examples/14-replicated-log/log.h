/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* log.h -- the format of the log, for the client, the servers and the reader */

#ifndef LOG_H
#define LOG_H 1

#include "common.h"

#define LOG_SIZE ((size_t)8 << 20)
#define LOG_BEGIN ((size_t)64) /* offset of the first record */
#define LOG_SIGNATURE "RPMALOG"
#define LOG_VERSION 4U
#define PAYLOAD_MAX ((size_t)64 << 10)
#define EPOCH_MAX UINT32_MAX

/*
 * All numbers are little-endian. Tail, epoch and identity change by atomic writes while the log
 * is in use; each has a number in the lower half and a checksum in the upper half
 * (encode_number()). The checksum of the header is CRC32C of the signature, the version and the
 * size.
 */
struct log_header {
    uint64_t tail;  /* bytes from the start of the log; the log ends there */
    uint64_t epoch; /* the newest client to which this server has promised the log; 0: the log
                       does not count, because the server may have lost records */
    char signature[8];
    uint32_t version;
    uint32_t size; /* LOG_SIZE */
    uint32_t checksum;
    uint64_t identity; /* the same on all servers of a log (make_identity()); 0: none yet */
};

/* The payload follows; the next record starts at a multiple of 8. */
struct record {
    uint32_t checksum; /* CRC32C of the members below and of the payload */
    uint32_t size;     /* of the payload */
    uint64_t number;   /* the first has 0 */
    uint64_t epoch;    /* of the client that appended it */
};

/* The records of a log: from 0 to count - 1, complete and in order, before the byte end. */
struct extent {
    uint64_t count;
    uint64_t epoch; /* of the last record; 0 if there is none */
    size_t end;
    uint32_t checksum; /* of the last record */
};

/* The content of a header. */
struct log_state {
    size_t tail;
    uint64_t epoch;
    uint64_t identity;
};

/* The encoding of a number at that position of the header. */
uint64_t encode_number(size_t place, uint64_t number);

/* Creates the identity of a log on this number of servers (at most 15): their number in the
 * lower 4 bits, and 28 random bits. */
uint64_t make_identity(unsigned servers);
unsigned servers_of(uint64_t identity);

/* The header of an empty log of epoch 0, without identity. */
struct log_header make_header(void);

/* Returns the defect of a header as text, or NULL: then *state is its content. */
const char *read_header(const struct log_header *header, struct log_state *state);

/* Writes a record to place; returns the position after it. */
size_t make_record(char *place, uint64_t number, uint64_t epoch, const void *payload,
                   size_t size);

/* The bytes from the start of a record to the start of the next. */
size_t record_space(size_t payload_size);

/*
 * Advances to the next record before tail: true if it is complete. At the end of a valid log
 * the result is false with extent->end == tail.
 */
bool next_record(const char *log, size_t tail, struct extent *extent);

/* All records before tail; extent.end < tail: the record at extent.end is damaged. */
struct extent read_log(const char *log, size_t tail);

/* The common part of two logs: records with the same number and epoch are equal. */
struct extent common_part(const char *log, size_t tail, const char *other, size_t other_tail);

#endif
