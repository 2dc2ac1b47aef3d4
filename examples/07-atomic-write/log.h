/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* log.h -- the form of the log in the server's memory, which both sides agree on */

#ifndef LOG_H
#define LOG_H 1

#include "common.h"

#include <endian.h>
#include <string.h>

#define LOG_SIZE (16 * BLOCK_SIZE)
#define LOG_SIGNATURE "RPMALOG1"
#define ENTRY_SIZE ((size_t)64)

/* Entries follow the header. Those before the tail are valid, whatever stands behind it. */
struct log_header {
    char signature[8];
    uint64_t tail; /* bytes of entries, little-endian; changes by atomic writes only */
};

static inline bool log_is_valid(const struct log_header *header) {
    uint64_t tail = le64toh(header->tail);
    return !memcmp(header->signature, LOG_SIGNATURE, sizeof(header->signature)) &&
           tail <= LOG_SIZE - sizeof(*header) && tail % ENTRY_SIZE == 0;
}

static inline void make_entry(char entry[ENTRY_SIZE], size_t number) {
    memset(entry, 0, ENTRY_SIZE);
    snprintf(entry, ENTRY_SIZE, "entry %zu, appended by a client\n", number);
}

#endif
