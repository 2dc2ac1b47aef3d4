// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// logged.c -- a log function that stores the lines.

#include "logged.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LINES = 64 };

static struct logged_line lines[MAX_LINES];
static unsigned count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void logged_catch(enum rpma_log_level level, const char *file_name, const int line_no,
                  const char *function_name, const char *message_format, ...) {
    va_list args;
    va_start(args, message_format);
    pthread_mutex_lock(&lock);
    struct logged_line *line = &lines[count < MAX_LINES ? count++ : MAX_LINES - 1];
    line->level = level;
    line->line = line_no;
    snprintf(line->file, sizeof(line->file), "%s", file_name);
    snprintf(line->function, sizeof(line->function), "%s", function_name);
    snprintf(line->format, sizeof(line->format), "%s", message_format);
    vsnprintf(line->message, sizeof(line->message), message_format, args);
    line->message[strcspn(line->message, "\n")] = '\0';
    pthread_mutex_unlock(&lock);
    va_end(args);
}

void logged_start(void) {
    logged_forget();
    (void)rpma_log_set_function(logged_catch);
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG);
}

void logged_forget(void) {
    pthread_mutex_lock(&lock);
    count = 0;
    pthread_mutex_unlock(&lock);
}

const struct logged_line *logged_line(enum rpma_log_level level, unsigned nth) {
    for (unsigned i = 0; i < count; i++)
        if (lines[i].level == level && nth-- == 0)
            return &lines[i];
    return NULL;
}

unsigned logged_count(enum rpma_log_level level) {
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++)
        found += lines[i].level == level;
    return found;
}

const char *logged_text(void) {
    static char text[4096];
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < count && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "  [%d] %s: %s\n",
                                 lines[i].level, lines[i].function, lines[i].message);
    return text;
}
