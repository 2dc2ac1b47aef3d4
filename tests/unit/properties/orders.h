// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// orders.h -- threads in every order of their accesses to shared variables, and with every
// value that a load may return

#ifndef ORDERS_H
#define ORDERS_H 1

#include "fixture.h"

#include <pthread.h>

enum { THREADS = 3, MAX_ALLOWED = 4 };

struct scenario {
    const char *name;
    void (*begin)(void); // before each order
    void (*threads[THREADS])(void);
    void (*end)(void);                // writes the final state to the outcome
    const char *allowed[MAX_ALLOWED]; // allowed outcomes
};

// Runs the threads in every order. Fails the test if an outcome is not allowed.
void in_every_order(const struct scenario *s);
// Appends to the outcome of the running order.
void record(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The accesses of interleaving/atomic to a shared variable.
void stepped_made(const void *address);
void stepped_access(const void *address, bool writes);
uint64_t stepped_load(const void *address, uint64_t latest, int order);
uint64_t stepped_store(const void *address, uint64_t before, uint64_t value, int order,
                       bool modifies);
int stepped_lock(pthread_mutex_t *mutex);
int stepped_unlock(pthread_mutex_t *mutex);

#endif // ORDERS_H
