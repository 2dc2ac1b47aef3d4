// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sweep.h -- lets the 1st, 2nd, 3rd … provider call or allocation of a scenario fail, until the
// scenario passes, and proves after each run that nothing is left.

#ifndef SWEEP_H
#define SWEEP_H 1

#include "fixture.h"

struct sweep {
    const char *name;
    unsigned nth;    // the call that fails
    bool later;      // and all calls after it
    unsigned second; // the other call that fails; 0: none
    int error;       // with that errno
    unsigned failed; // steps that failed in this run
    bool cleaning;   // faults are off: nothing may fail any more
    struct handles before;
};

// A life of objects: makes STEPs and returns false at the first that fails. The sweep drops the
// objects that are left in the fixture.
typedef bool scenario(struct fixture *w, const void *argument);

// Runs the scenario with every failure: each errno, with and without later calls failing, and
// every pair of failures with one errno. With SWEEP_ONE_ERROR in the environment there is one
// errno and no pair. prepare, if any, sets up the fake device before each run. The scenario has
// as many calls as that that can fail.
void sweep(const char *name, unsigned calls, scenario *run, const void *argument,
           void (*prepare)(void));

// For STEP().
void sweep_begin(struct sweep *s, const struct fixture *w);
bool sweep_step(struct sweep *s, const struct fixture *w, int ret, const char *text);

#endif // SWEEP_H
