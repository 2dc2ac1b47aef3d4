// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// preload.hh -- functions that rdma-sim replaces in unchanged programs, in addition to
// libibverbs and librdmacm

#pragma once

#include <dlfcn.h>

#include "settings.hh"

#define EXPORTED extern "C" __attribute__((visibility("default")))

// The function that this library replaces.
#define REAL(name)                                                                            \
    ([] {                                                                                     \
        static auto *const real = reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name)); \
        return real;                                                                          \
    }())
