// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.h -- the memory of the server, and the messages that it receives

#define AREA 1024 // bytes of each client
#define AREAS 4
#define WORDS_OF_AREA (AREA / 8)
#define COUNTER (WORDS_OF_AREA - 1) // the word of an area that remote atomics change
#define MESSAGES 8 // of a client, with its writes with immediate data; the last one is empty
#define MESSAGE_SIZE 64
