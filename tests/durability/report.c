// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// report.c -- the first mistake that a test has seen

#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char wrong[256];

void report(const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (!*wrong)
        vsnprintf(wrong, sizeof(wrong), format, values);
    va_end(values);
}

void report_line(const char *what, const char *line) {
    report("%s: %.*s", what, (int)strcspn(line, "\n"), line);
}

const char *first_mistake(void) {
    return *wrong ? wrong : NULL;
}
