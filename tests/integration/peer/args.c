// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// args.c -- reading commands and answering them

#include "args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

static char answer[16384];
static size_t answer_len;

void args_parse(struct args *args, char *line) {
    char *rest = NULL;
    char *word = strtok_r(line, " \n", &rest);
    memset(args, 0, sizeof(*args));
    args->verb = word != NULL ? word : "";
    while ((word = strtok_r(NULL, " \n", &rest)) != NULL) {
        char *equals = strchr(word, '=');
        if (equals == NULL || args->count == MAX_WORDS)
            bad_script("%s: '%s' is no key=value, or one too many", args->verb, word);
        *equals = '\0';
        args->key[args->count] = word;
        args->value[args->count++] = equals + 1;
    }
}

const char *arg_text_or(const struct args *args, const char *key, const char *otherwise) {
    for (int i = 0; i < args->count; i++)
        if (strcmp(args->key[i], key) == 0)
            return args->value[i];
    return otherwise;
}

const char *arg_text(const struct args *args, const char *key) {
    const char *text = arg_text_or(args, key, NULL);
    if (text == NULL)
        bad_script("%s: %s= is missing", args->verb, key);
    return text;
}

uint64_t arg_number(const struct args *args, const char *key) {
    const char *text = arg_text(args, key);
    char *end = NULL;
    uint64_t number = strtoull(text, &end, 0);
    if (*text == '\0' || *end != '\0')
        bad_script("%s: %s=%s is no number", args->verb, key, text);
    return number;
}

uint64_t arg_number_or(const struct args *args, const char *key, uint64_t otherwise) {
    return arg_text_or(args, key, NULL) != NULL ? arg_number(args, key) : otherwise;
}

size_t arg_slot(const struct args *args, const char *key, size_t limit) {
    uint64_t number = arg_number_or(args, key, 0);
    if (number >= limit)
        bad_script("%s: %s=%llu is above %zu", args->verb, key, (unsigned long long)number,
                   limit - 1);
    return (size_t)number;
}

size_t arg_bytes(const struct args *args, const char *key, void *bytes, size_t capacity) {
    const char *text = arg_text_or(args, key, "");
    size_t count = strlen(text) / 2;
    if (count > capacity)
        bad_script("%s: %s holds more than %zu bytes", args->verb, key, capacity);
    for (size_t i = 0; i < count; i++) {
        unsigned value = 0;
        if (sscanf(text + 2 * i, "%2x", &value) != 1)
            bad_script("%s: %s is not hexadecimal", args->verb, key);
        ((unsigned char *)bytes)[i] = (unsigned char)value;
    }
    return count;
}

void bad_script(const char *format, ...) {
    va_list values;
    va_start(values, format);
    printf("bad ");
    vprintf(format, values);
    printf("\n");
    va_end(values);
    fflush(stdout);
    exit(2);
}

void reply(const char *format, ...) {
    va_list values;
    va_start(values, format);
    answer_len += (size_t)snprintf(answer + answer_len, sizeof(answer) - answer_len, " ");
    answer_len +=
        (size_t)vsnprintf(answer + answer_len, sizeof(answer) - answer_len, format, values);
    va_end(values);
    if (answer_len >= sizeof(answer))
        bad_script("the answer is too long");
}

void reply_bytes(const char *key, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    char text[513] = "";
    if (count > 256)
        bad_script("%zu bytes are too many for an answer", count);
    for (size_t i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", byte[i]);
    reply("%s=%s", key, text);
}

void reply_send(int ret) {
    if (ret == 0)
        printf("ok%.*s\n", (int)answer_len, answer);
    else
        printf("err %s%.*s\n", code_name(ret), (int)answer_len, answer);
    fflush(stdout);
    answer_len = 0;
}
