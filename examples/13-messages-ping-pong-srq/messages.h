/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* messages.h -- the messages between each client and the server */

#ifndef MESSAGES_H
#define MESSAGES_H 1

#include "common.h"

#define ROUNDS 5
#define USAGE (RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV)

/* The server replies with the same numbers, and increments the round. In network byte order. */
struct message {
    uint32_t client;
    uint32_t round;
};

#endif
