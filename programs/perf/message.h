// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.h -- what the two sides say to each other: a word, and lines KEY=VALUE behind it

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

// Whether the received text is a message: words of printable characters, ended as they have to
// be.
bool message_is_valid(const struct message *message);
bool message_is(const struct message *message, const char *word);

// Copies the value of a key; false: there is none, or it has no room, or it is out of its
// range.
bool message_get(const struct message *message, const char *key, char *value, size_t size);
bool message_get_number(const struct message *message, const char *key, uint64_t min,
                        uint64_t max, uint64_t *value);
// *size = room at bytes, and then how many there are.
bool message_get_bytes(const struct message *message, const char *key, void *bytes,
                       size_t *size);

// The whole text as a decimal number without sign.
bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);

#endif
