/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* messages.h -- what the clients and the server say to each other */

#ifndef MESSAGES_H
#define MESSAGES_H 1

#include "common.h"

/* One message each way: the client asks to be read, the server answers with what it has read.
 */
struct message {
    uint32_t checksum; /* of the block, in network byte order */
};

#endif
