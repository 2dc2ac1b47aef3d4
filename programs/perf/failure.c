// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure.c -- what failed first, to be said in one line by who began the work

#include "failure.h"

#include <errno.h>
#include <librpma.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SIZE 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char first[2 * TEXT_SIZE];
static _Thread_local char reason[TEXT_SIZE]; // librpma's, of the last failed call

static void keep_reason(enum rpma_log_level level, const char *file_name, const int line_no,
                        const char *function_name, const char *message_format, ...) {
    va_list values;
    (void)file_name;
    (void)line_no;
    (void)function_name;
    if (level > RPMA_LOG_LEVEL_ERROR)
        return;
    va_start(values, message_format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    vsnprintf(reason, sizeof(reason), message_format, values);
#pragma GCC diagnostic pop
    va_end(values);
    reason[strcspn(reason, "\n")] = '\0';
}

void failure_init(void) {
    (void)rpma_log_set_function(keep_reason);
}

static void note(const char *because, const char *format, va_list values) {
    pthread_mutex_lock(&lock);
    if (!*first) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        vsnprintf(first, TEXT_SIZE, format, values);
#pragma GCC diagnostic pop
        size_t used = strlen(first);
        if (because)
            snprintf(first + used, sizeof(first) - used, ": %s", because);
    }
    pthread_mutex_unlock(&lock);
}

bool fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    note(NULL, format, values);
    va_end(values);
    return false;
}

bool succeeds(int ret, const char *format, ...) {
    if (!ret)
        return true;
    va_list values;
    va_start(values, format);
    note(*reason ? reason : rpma_err_2str(ret), format, values);
    va_end(values);
    *reason = '\0';
    return false;
}

const char *failure(void) {
    pthread_mutex_lock(&lock);
    const char *text = *first ? first : NULL;
    pthread_mutex_unlock(&lock);
    return text;
}

void failure_forget(void) {
    pthread_mutex_lock(&lock);
    *first = '\0';
    pthread_mutex_unlock(&lock);
}

void complain(const char *format, ...) {
    va_list values;
    char line[2 * TEXT_SIZE];
    va_start(values, format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    vsnprintf(line, sizeof(line), format, values);
#pragma GCC diagnostic pop
    va_end(values);
    fprintf(stderr, "rpma-perf: %s\n", line);
}
