// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// quiet.c -- the libraries' own words go nowhere: the report says what they mean

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "info.h"

static char error_line[1024];
static int kept_stderr = -1;

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

void be_quiet(void) {
    (void)rpma_log_set_function(keep_error);
    (void)fflush(stderr);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0)
        return;
    kept_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept_stderr >= 0)
        (void)dup2(nowhere, STDERR_FILENO);
    (void)close(nowhere);
}

void speak(void) {
    if (kept_stderr < 0)
        return;
    (void)fflush(stderr);
    (void)dup2(kept_stderr, STDERR_FILENO);
    (void)close(kept_stderr);
    kept_stderr = -1;
}

const char *last_error(void) {
    static char taken[sizeof(error_line)];
    memcpy(taken, error_line, sizeof(taken));
    error_line[0] = '\0';
    return taken;
}
