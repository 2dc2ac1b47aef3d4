// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// calls.h -- what the programs of examples call in the test. The name of a program is its
// number

#ifndef CALLS_H
#define CALLS_H 1

#include <stddef.h>

// The memory that each file of a program maps.
extern char file_bytes[] __attribute__((aligned(64)));
extern size_t file_size;

// A program prints a line, takes a successful completion, or is about to make its stores
// persistent.
void handle_line(int program, const char *line);
void handle_completion(int program);
void handle_persist(void);

// A program ends, and has printed an error, or "". Returns its status.
int handle_end(int program, int status, const char *error);

// Records the first mistake.
void report(const char *what);

#endif // CALLS_H
