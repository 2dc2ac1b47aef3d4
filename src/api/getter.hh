// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// getter.hh -- the body of an exported function that stores one value of an object

#pragma once

#include "base/refuse.hh"

#define RPMA_GET(object, out, value) \
    RPMA_REFUSE(object == NULL);     \
    RPMA_REFUSE(out == NULL);        \
    *out = value;                    \
    return 0
