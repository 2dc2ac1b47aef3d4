// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sweep.h -- makes the 1st, 2nd, 3rd … provider call or allocation of a scenario fail, until
// the scenario passes, and checks for leaks after each run.

#ifndef SWEEP_H
#define SWEEP_H 1

#include "fixture.h"

struct sweep {
    const char *name;
    unsigned nth;    // the call that fails
    bool later;      // every later call fails as well
    unsigned second; // the other call that fails; 0: none
    int error;       // the errno of failed calls
    unsigned failed; // steps that failed in this run
    bool cleaning;   // faults are off, no step may fail
    struct handles before;
};

// Executes STEPs, and returns false at the first one that fails. The sweep deletes the
// remaining objects of the fixture.
typedef bool scenario(struct fixture *w, const void *argument);

// Runs the scenario with every failure: each errno, with and without failures of all later
// calls, and every pair of failures with one errno. With SWEEP_ONE_ERROR in the environment
// there is one errno and no pair. prepare, if not NULL, sets up the fake device before each
// run. calls is the number of calls that can fail.
void sweep(const char *name, unsigned calls, scenario *run, const void *argument,
           void (*prepare)(void));

// For STEP().
void sweep_begin(struct sweep *s, const struct fixture *w);
bool sweep_step(struct sweep *s, const struct fixture *w, int ret, const char *text);

#endif // SWEEP_H
