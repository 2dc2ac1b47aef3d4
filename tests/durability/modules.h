// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// modules.h -- the programs of a test
//
// A program is a copy of a module, with its own examples/common/ and its own variables. They
// have their first values at each start, also after a kill.

#ifndef MODULES_H
#define MODULES_H 1

#include <rdma-sim.h>
#include <stdbool.h>
#include <stddef.h>

struct module {
    int (*main)(int argc, char *argv[]);
    struct variables {
        char *begin, *first_values;
        size_t size;
    } variables[4]; // unused: of size 0
};

// Loads a module of the directory $MODULES.
struct module load_module(const char *name);

// Starts a program, and returns the status of its end.
int run_module(const struct module *module, int argc, char *argv[]);

// Runs a test, and prints its finding and its time. The first arguments, `names` of them, are
// its name; a number of schedules and a first seed may follow. Returns false if it has a
// finding.
bool explore_and_print(const struct rdma_sim_test *test, int names, char *argv[]);

// The time of the fabric in milliseconds.
int64_t now_ms(void);

// Returns true if the name is the known one, or continues a known one that ends with a dash by
// the number of a form. *form: 0 without one.
bool is_name_of(const char *known, const char *name, int *form);

#endif // MODULES_H
