/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* args.h -- one line of a script: a verb and key=value words; and the line that answers it */

#ifndef PEER_ARGS_H
#define PEER_ARGS_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_WORDS 24

struct args {
    const char *verb;
    const char *key[MAX_WORDS];
    const char *value[MAX_WORDS];
    int count;
};

/* Splits line in place. */
void args_parse(struct args *args, char *line);

/* The value of key. Exits with a message if the script lacks a key that has no default. */
const char *arg_text(const struct args *args, const char *key);
const char *arg_text_or(const struct args *args, const char *key, const char *otherwise);
uint64_t arg_number(const struct args *args, const char *key);
uint64_t arg_number_or(const struct args *args, const char *key, uint64_t otherwise);
/* A number below limit. */
size_t arg_slot(const struct args *args, const char *key, size_t limit);
/* Bytes given in hexadecimal, at most capacity; returns how many, 0 without the key. */
size_t arg_bytes(const struct args *args, const char *key, void *bytes, size_t capacity);

/* Ends the process: the script asked for something that makes no sense. */
_Noreturn void bad_script(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Adds to the answer of the running command. */
void reply(const char *format, ...) __attribute__((format(printf, 1, 2)));
void reply_bytes(const char *key, const void *bytes, size_t count);
/* Prints "ok …" or "err CODE …" with what was added. */
void reply_send(int ret);

#endif /* PEER_ARGS_H */
