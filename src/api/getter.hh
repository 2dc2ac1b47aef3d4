// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// getter.hh -- exported functions that return one value of an object

#pragma once

#include "base/refuse.hh"

// int function(const struct handle *object, type *out): *out = value.
#define RPMA_GETTER(function, handle, object, type, out, value) \
    int function(const struct handle *object, type *out) {      \
        RPMA_REFUSE(object == NULL);                            \
        RPMA_REFUSE(out == NULL);                               \
        *out = value;                                           \
        return 0;                                               \
    }
