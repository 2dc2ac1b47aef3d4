// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.h -- the memory of the server, and the messages that it receives

#define AREA 1024 // bytes of each client
#define AREAS 4
#define WORDS_OF_AREA (AREA / 8)
#define COUNTER (WORDS_OF_AREA - 1) // the word of an area that remote atomics change
#define MESSAGES 16 // of a client, with its writes with immediate data; the last one is empty
#define MESSAGE_SIZE 64
// The server's first message describes its memory by two regions: all, and from this offset on.
#define REGIONS 2
#define SECOND_REGION 512
#define REFUSALS_MAX 8 // of posts, after which a program fails
