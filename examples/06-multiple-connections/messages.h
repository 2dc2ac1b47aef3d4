/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* messages.h -- the messages between the clients and the server */

#ifndef MESSAGES_H
#define MESSAGES_H 1

#include "common.h"

/* One message in each direction: the client requests a read, the server replies with the
 * result. */
struct message {
    uint32_t checksum; /* of the block, in network byte order */
};

#endif
