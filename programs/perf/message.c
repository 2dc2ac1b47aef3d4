// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.c -- the messages between the two sides: a word, followed by lines KEY=VALUE

#include "message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(struct message *message, const char *text, char end) {
    size_t room = sizeof(message->text) - message->length;
    size_t length = strlen(text);
    if (length + 1 > room) // no message of this program is that long
        abort();
    memcpy(message->text + message->length, text, length);
    message->length += length;
    message->text[message->length++] = end;
}

void message_begin(struct message *message, const char *word) {
    message->length = 0;
    append(message, word, '\n');
}

void message_add(struct message *message, const char *key, const char *value) {
    append(message, key, '=');
    append(message, value, '\n');
}

void message_add_number(struct message *message, const char *key, uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRIu64, value);
    message_add(message, key, digits);
}

void message_add_bytes(struct message *message, const char *key, const void *bytes,
                       size_t size) {
    const unsigned char *byte = bytes;
    char digits[2 * 256 + 1] = "";
    for (size_t i = 0; i < size && i < 256; i++)
        snprintf(digits + 2 * i, 3, "%02x", byte[i]);
    message_add(message, key, digits);
}

bool message_is_valid(const struct message *message) {
    if (!message->length || message->length > sizeof(message->text) ||
        message->text[message->length - 1] != '\n')
        return false;
    for (size_t i = 0; i < message->length; i++) {
        unsigned char c = (unsigned char)message->text[i];
        if ((c < ' ' || c > '~') && c != '\n')
            return false;
    }
    return true;
}

bool message_is(const struct message *message, const char *word) {
    size_t length = strlen(word);
    return message->length > length && !memcmp(message->text, word, length) &&
           message->text[length] == '\n';
}

// Finds the value after "KEY=" at the beginning of a line; it has *length bytes.
static const char *find(const struct message *message, const char *key, size_t *length) {
    const char *end = message->text + message->length;
    size_t key_length = strlen(key);
    for (const char *line = message->text, *next; line < end; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        if (!next)
            return NULL;
        if ((size_t)(next - line) > key_length && line[key_length] == '=' &&
            !memcmp(line, key, key_length)) {
            *length = (size_t)(next - line) - key_length - 1;
            return line + key_length + 1;
        }
    }
    return NULL;
}

bool message_get(const struct message *message, const char *key, char *value, size_t size) {
    size_t length;
    const char *found = find(message, key, &length);
    if (!found || length >= size)
        return false;
    memcpy(value, found, length);
    value[length] = '\0';
    return true;
}

bool message_get_number(const struct message *message, const char *key, uint64_t min,
                        uint64_t max, uint64_t *value) {
    char text[24];
    return message_get(message, key, text, sizeof(text)) && parse_number(text, min, max, value);
}

static bool parse_byte(const char *text, unsigned char *byte) {
    static const char digits[] = "0123456789abcdef";
    const char *high = memchr(digits, text[0], 16), *low = memchr(digits, text[1], 16);
    if (!high || !low)
        return false;
    *byte = (unsigned char)((high - digits) << 4 | (low - digits));
    return true;
}

bool message_get_bytes(const struct message *message, const char *key, void *bytes,
                       size_t *size) {
    size_t length;
    const char *found = find(message, key, &length);
    if (!found || length % 2 || length / 2 > *size)
        return false;
    for (size_t i = 0; i < length / 2; i++)
        if (!parse_byte(found + 2 * i, (unsigned char *)bytes + i))
            return false;
    *size = length / 2;
    return true;
}

bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value) {
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || *end || number < min || number > max)
        return false;
    *value = number;
    return true;
}
