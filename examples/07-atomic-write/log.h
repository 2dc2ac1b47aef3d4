/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* log.h -- the format of the log in the server's memory, for both sides */

#ifndef LOG_H
#define LOG_H 1

#include "common.h"

#include <endian.h>
#include <string.h>

#define LOG_ENTRIES ((size_t)64)
#define LOG_SIZE ((LOG_ENTRIES + 1) * BLOCK_SIZE)
#define LOG_SIGNATURE "RPMALOG1"

/*
 * The first block of the log; one block for each entry follows. The entries before the tail are
 * valid; the contents after the tail are undefined.
 */
struct log_header {
    uint64_t tail; /* entries, little-endian; changes by atomic writes only */
    char signature[8];
};

static inline bool has_signature(const struct log_header *header) {
    return !memcmp(header->signature, LOG_SIGNATURE, sizeof(header->signature));
}

static inline bool log_is_valid(const struct log_header *header) {
    return has_signature(header) && le64toh(header->tail) <= LOG_ENTRIES;
}

/* The offset of an entry; the first has number 0. */
static inline size_t entry_offset(uint64_t number) {
    return (size_t)(number + 1) * BLOCK_SIZE;
}

/* The content of an entry. */
static inline unsigned entry_content(uint64_t number) {
    return (unsigned)(number % 100);
}

#endif
