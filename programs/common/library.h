/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* library.h -- the version of librpma, and the errors that it logs */

#ifndef PROGRAMS_LIBRARY_H
#define PROGRAMS_LIBRARY_H 1

/* The version of the loaded library, "1.4.0"; static storage, for one thread at a time. */
const char *library_version(void);

/* Prints one line on standard output: the versions of the program and of the library. */
void print_versions(const char *program);

/* Keeps the errors that librpma logs, instead of writing them to syslog. */
void keep_library_errors(void);

/* The last error that librpma logged in this thread since the last call, or "". The text is
 * valid until the next call. Any thread may call it. */
const char *last_library_error(void);

#endif
