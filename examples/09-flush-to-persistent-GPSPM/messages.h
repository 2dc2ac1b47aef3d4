/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* messages.h -- the messages by which the client requests that the server persists data */

#ifndef MESSAGES_H
#define MESSAGES_H 1

#include "common.h"

#define BLOCKS 4

/* All numbers are big-endian. */
struct request {
    uint64_t offset, size; /* of the data in the memory that the server offers */
};

struct reply {
    uint64_t persisted; /* in bytes */
};

#endif
