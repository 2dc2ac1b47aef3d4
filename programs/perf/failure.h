// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure.h -- what failed first, to be said in one line by who began the work

#ifndef RPMA_PERF_FAILURE_H
#define RPMA_PERF_FAILURE_H 1

#include <stdbool.h>

#define EXIT_USAGE 2

// Keeps what librpma says about its failures, instead of syslog.
void failure_init(void);

// Notes what failed, unless something did already. Any thread may call it. Returns false.
bool fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The same with librpma's reason behind it. Returns true, and notes nothing, if ret is 0.
bool succeeds(int ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

// What was noted, or NULL; it stays until it is forgotten.
const char *failure(void);
void failure_forget(void);

// One line on standard error.
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
