// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure.c -- the first failure, which the caller of the work reports in one line

#include "failure.h"
#include "library.h"

#include <errno.h>
#include <librpma.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SIZE 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char first[2 * TEXT_SIZE];

void failure_init(void) {
    keep_library_errors();
}

__attribute__((format(printf, 2, 0))) static void note(const char *because, const char *format,
                                                       va_list values) {
    pthread_mutex_lock(&lock);
    if (!*first) {
        vsnprintf(first, TEXT_SIZE, format, values);
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
    const char *reason = last_library_error();
    note(*reason ? reason : rpma_err_2str(ret), format, values);
    va_end(values);
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
    vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    fprintf(stderr, "rpma-perf: %s\n", line);
}
