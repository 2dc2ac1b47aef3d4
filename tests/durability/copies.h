// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// copies.h -- copies of programs, each with variables of its own
//
// A program that is started again after a kill begins with the first values of its variables.

#ifndef COPIES_H
#define COPIES_H 1

#include <stddef.h>

struct copy {
    int (*run)(int number, int argc, char *argv[]); // run_program() of calls.c
    struct variables {
        char *begin, *first_values;
        size_t size;
    } variables[4]; // unused: of size 0
};

// Loads a copy of a module in the directory $MODULES.
struct copy load_copy(const char *module);

// Gives the variables of a copy their first values.
void reset_copy(const struct copy *copy);

#endif // COPIES_H
