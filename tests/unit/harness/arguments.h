// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// arguments.h -- valid arguments for every function of the header, found by type and name.

#ifndef ARGUMENTS_H
#define ARGUMENTS_H 1

#include "calls.h"
#include "fixture.h"

#define ARGUMENTS_SCRATCH 256

struct arguments {
    const struct call_by_name *call;
    uintptr_t word[CALLS_MAX_PARAMS];
    unsigned char scratch[CALLS_MAX_PARAMS][ARGUMENTS_SCRATCH]; // for output parameters
};

const struct call_by_name *call_named(const char *name);
// Fills in arguments with which the call succeeds, from a fixture with a connection, an
// endpoint and a second request. Fails the test if the type of a parameter is unknown.
void arguments_good(struct arguments *a, const char *function, const struct fixture *w);
// Adds the event that the function waits for, unless nothing is set. Returns the descriptor on
// which the function waits, or -1 if it does not wait.
int arguments_trigger(const char *function, const struct fixture *w, bool nothing);
// Replaces the argument of that name. Returns false if the function has none.
bool arguments_set(struct arguments *a, const char *name, uintptr_t value);
// Records all outputs for the next EXPECT_ERROR().
void arguments_watch(struct arguments *a);
// Returns the first argument that is the address of a handle of the fixture, or NULL.
void **arguments_handle(const struct arguments *a);
int arguments_call(const struct arguments *a);

#endif // ARGUMENTS_H
