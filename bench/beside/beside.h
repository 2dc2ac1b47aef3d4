// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// beside.h -- the functions that each compared library implements

#ifndef BESIDE_H
#define BESIDE_H 1

enum { WRITE_BYTES = 4096 };

// Accepts one connection, offers the client memory to write to, and returns when the connection
// has ended. Each library has its own values of how.
void serve_one(const char *address, const char *port, const char *how);
void connect_client(const char *address, const char *port, const char *how);
void disconnect_client(void);

// callgrind counts the functions whose names begin with counted_, and what they call.
void counted_write(void);      // posts one signaled write
void counted_completion(void); // takes the completion, which has arrived, by one poll

void ask_for_event(void);  // before the write, if the library needs it
void wait_for_event(void); // sleeps until the completion has arrived

_Noreturn void give_up(const char *what);

#endif /* BESIDE_H */
