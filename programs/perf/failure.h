// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure.h -- the first failure, which the caller of the work reports in one line

#ifndef RPMA_PERF_FAILURE_H
#define RPMA_PERF_FAILURE_H 1

#include <stdbool.h>

#define EXIT_USAGE 2
#define EXIT_MISSING 3 // a recorded record is not there

// Keeps the errors that librpma logs, instead of writing them to syslog.
void failure_init(void);

// Records a failure unless one is recorded already. Any thread may call it. Returns false.
bool fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Returns true if ret is 0; otherwise records the failure with librpma's reason appended.
bool succeeds(int ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The recorded failure, or NULL; valid until failure_forget().
const char *failure(void);
void failure_forget(void);

// Prints one line on standard error.
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
