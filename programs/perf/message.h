// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.h -- the messages between the two sides: a word, followed by lines KEY=VALUE

#ifndef RPMA_PERF_MESSAGE_H
#define RPMA_PERF_MESSAGE_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_SIZE 16384

struct message {
    size_t length;
    char text[MESSAGE_SIZE];
};

void message_begin(struct message *message, const char *word);
void message_add(struct message *message, const char *key, const char *value);
void message_add_number(struct message *message, const char *key, uint64_t value);
void message_add_bytes(struct message *message, const char *key, const void *bytes,
                       size_t size);

// Whether the received text is a message: lines of printable characters, correctly terminated.
bool message_is_valid(const struct message *message);
bool message_is(const struct message *message, const char *word);

// Copy the value of a key; false if the key is missing, or the value does not fit or is out of
// range.
bool message_get(const struct message *message, const char *key, char *value, size_t size);
bool message_get_number(const struct message *message, const char *key, uint64_t min,
                        uint64_t max, uint64_t *value);
// *size is the room at bytes; on return, the number of bytes.
bool message_get_bytes(const struct message *message, const char *key, void *bytes,
                       size_t *size);

// Parses the whole text as a decimal number without sign.
bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);

#endif
