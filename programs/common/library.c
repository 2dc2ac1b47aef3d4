// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// library.c -- the version of librpma, and the errors that it logs

#include "library.h"

#include <librpma.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_SIZE 1024

static _Thread_local char error_line[LINE_SIZE];

const char *library_version(void) {
    static char text[16];
    const uint32_t version = rpma_version();
    (void)snprintf(text, sizeof(text), "%u.%u.%u", version >> 16, version >> 8 & 0xff,
                   version & 0xff);
    return text;
}

void print_versions(const char *program) {
    printf("%s %d.%d.%d, librpma %s\n", program, RPMA_VERSION_MAJOR, RPMA_VERSION_MINOR,
           RPMA_VERSION_PATCH, library_version());
}

__attribute__((format(printf, 5, 6))) static void
keep_error(enum rpma_log_level level, const char *file_name, const int line_no,
           const char *function_name, const char *message_format, ...) {
    va_list values;
    (void)file_name;
    (void)line_no;
    (void)function_name;
    if (level > RPMA_LOG_LEVEL_ERROR)
        return;
    va_start(values, message_format);
    (void)vsnprintf(error_line, sizeof(error_line), message_format, values);
    va_end(values);
    error_line[strcspn(error_line, "\n")] = '\0';
}

void keep_library_errors(void) {
    (void)rpma_log_set_function(keep_error);
}

const char *last_library_error(void) {
    static _Thread_local char taken[LINE_SIZE];
    memcpy(taken, error_line, sizeof(taken));
    error_line[0] = '\0';
    return taken;
}
