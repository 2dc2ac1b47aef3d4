// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// beside.h -- what a library has to do for the count of a write and its completion

#ifndef BESIDE_H
#define BESIDE_H 1

enum { WRITE_BYTES = 4096 };

// Accepts one connection, gives it memory to write to, and returns when it has ended. how is
// the library's own.
void serve_one(const char *address, const char *port, const char *how);
void connect_client(const char *address, const char *port, const char *how);
void disconnect_client(void);

// callgrind counts the functions whose names begin with counted_, and what they call.
void counted_write(void);      // posts one write that is to complete
void counted_completion(void); // takes the completion, which is there, by one poll

void ask_for_event(void);  // before the write, where the library wants it
void wait_for_event(void); // sleeps until the completion is there

_Noreturn void give_up(const char *what);

#endif /* BESIDE_H */
