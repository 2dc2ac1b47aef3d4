// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// calls.h -- what the programs of examples call in the test. The name of a program is its
// number

#ifndef CALLS_H
#define CALLS_H 1

#include "report.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

// Declares a function that the linker's --wrap replaces, and the one that it replaces.
#define WRAPS(type, name, ...)       \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

extern int this_program; // of the module

// The memory that each file of a program maps.
char *memory_of(int program);
extern size_t file_size;

// A program prints a line, takes a completion, or is about to make its stores persistent.
void handle_line(int program, const char *line);
void handle_completion(int program, const struct ibv_wc *wc);
void handle_persist(int program, const void *ptr, size_t size);

// A program ends, and has printed an error, or "". Returns its status.
int handle_end(int program, int status, const char *error);

// ---- examples 14 and 15 (services.c) -------------------------------------------------------

// A program waits for signals: it gets one when the descriptor, of an eventfd, is readable.
void handle_signals(int program, int fd);
extern int signals_fd; // of the module

// ---- example 14 (log_calls.c) --------------------------------------------------------------

// A program is about to wait, reads its standard input, and locks and closes a file.
void handle_poll(int program);
int next_byte(int program); // or EOF
void handle_lock(int program, int fd, size_t begin, size_t end);
void handle_close(int program, int fd);
// The library logs an error.
void handle_log(int program, const char *text);
// A program has a connection with this queue pair to the address, or accepts one; NULL: it has
// failed. Later it gets an event, posts an operation with a completion, and deletes it.
void handle_connection(int program, const void *conn, uint32_t number, const char *addr);
void handle_event(int program, const void *conn, bool is_established);
void handle_post(int program, const void *conn);

// ---- examples 14 and 15 --------------------------------------------------------------------

void handle_delete(int program, const void *conn);

// ---- example 15 (mover_calls.c) ------------------------------------------------------------

// A program is about to wait.
void handle_wait(int program, bool (*is_port_down)(void));
// It creates a queue of this size for receives, and posts one, or NULL if the post fails.
void handle_srq(int program, unsigned size);
void handle_receive(int program, const void *context);
// It begins a connection, maybe after a message that it sent over a port that was down.
void handle_connect(int program, const char *addr, bool is_after_loss);
// It creates the queue pair of a connection, and gets its number.
void handle_setup(int program);
void handle_qp_num(int program, const void *conn, uint32_t number);
// It is about to send a message over the connection of a batch.
void handle_send(int program, const void *batch, void *message);

#endif // CALLS_H
