// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fuzz.c -- expectations and counts of the fuzz targets

#include "fuzz.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { LONG_RUN = 10000 };

static unsigned long accepted_count, refused_count;

void fuzz_expect(bool holds, const char *condition) {
    if (holds)
        return;
    fprintf(stderr, "expected: %s\n", condition);
    abort();
}

void fuzz_count(bool accepted) {
    if (accepted)
        accepted_count++;
    else
        refused_count++;
}

// A run whose inputs were all refused has shown nothing.
static void at_end(void) {
    fprintf(stderr, "%lu inputs accepted, %lu refused\n", accepted_count, refused_count);
    if (accepted_count + refused_count >= LONG_RUN && !(accepted_count && refused_count)) {
        fprintf(stderr, "one outcome never happened: run longer, or with another seed\n");
        _exit(1);
    }
}

// Reads all arguments of the message, as a real log function does.
static void read_message(enum rpma_log_level level, const char *file_name, const int line_no,
                         const char *function_name, const char *message_format, ...) {
    char text[1024];
    va_list args;
    va_start(args, message_format);
    int used =
        snprintf(text, sizeof(text), "%d %s %d %s ", level, file_name, line_no, function_name);
    vsnprintf(text + used, sizeof(text) - (size_t)used, message_format, args);
    va_end(args);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    (void)rpma_log_set_function(read_message);
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG);
    return atexit(at_end);
}
