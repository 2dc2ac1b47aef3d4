// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// report.h -- the first mistake that a test has seen

#ifndef REPORT_H
#define REPORT_H 1

// Records the first mistake.
__attribute__((format(printf, 1, 2))) void report(const char *format, ...);

// Records it with a line that a program has printed.
void report_line(const char *what, const char *line);

// Returns the first mistake, or NULL.
const char *first_mistake(void);

#endif // REPORT_H
