// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// threads.h -- what the tests with threads share
//
// The allocator is not hooked and the fakes are quiet: their locks would put calls in an order
// that the library alone does not give them. CMocka's assertions belong to the main thread, so
// the others CHECK().

#ifndef THREADS_H
#define THREADS_H 1

#include "world.h"

#include <stdatomic.h>

enum { THREADS = 4, ROUNDS = 40 };

// Messages that the library logged.
extern atomic_uint threads_messages;

#define CHECK(condition) threads_check(condition, #condition)
void threads_check(bool holds, const char *condition);

// Makes peer, regions and, with a shape, configurations; switches the record off until the end.
void threads_begin(const struct shape *shape);
void threads_end(void);

// All threads begin at once with their number; returns when the last has ended.
void in_threads(void (*work)(int number));

// An established connection of the calling thread.
struct rpma_conn *threads_connected(void);
// Connects, takes the event, and returns the established connection.
struct rpma_conn *threads_established(struct rpma_conn_req *req);
// Posts each operation once.
void threads_post_everything(struct rpma_conn *conn);

void connection_is_shared(void **state), events_of_a_queue_are_shared(void **state);
void events_of_a_channel_are_shared(void **state), receive_queue_is_shared(void **state);
void log_settings_change(void **state), log_functions_log(void **state);

#endif // THREADS_H
