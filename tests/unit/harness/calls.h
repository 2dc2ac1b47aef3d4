// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// calls.h -- the functions of librpma.h that return a code, by name and with machine words as
// arguments; made by calls.py.

#ifndef CALLS_H
#define CALLS_H 1

#include <limits.h>
#include <stdint.h>

#define LIBRPMA_NO_DEPRECATED
#include "librpma.h"

// The code of a function that the library lacks.
enum { CALLS_MAX_PARAMS = 9, CALLS_NO_FUNCTION = INT_MIN };

struct call_by_name {
    const char *name;
    int (*call)(const uintptr_t *words);
    unsigned params;
    struct {
        const char *type, *name;
    } param[CALLS_MAX_PARAMS];
};

extern const struct call_by_name calls_by_name[]; // ends with a NULL name

#endif // CALLS_H
