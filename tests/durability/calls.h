// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// calls.h -- what a program of an example calls instead of the C library, libpmem2 and librpma

#ifndef CALLS_H
#define CALLS_H 1

#include <stddef.h>

// ---- of calls.c, which each program contains

// Runs main() as the program of this number.
int run_program(int number, int argc, char *argv[]);

// ---- of the test

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
