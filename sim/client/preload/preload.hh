// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// preload.hh -- functions that rdma-sim replaces in unchanged programs, in addition to
// libibverbs and librdmacm

#pragma once

#include <cstdint>
#include <dlfcn.h>
#include <sys/time.h>

#include "settings.hh"

#define EXPORTED extern "C" __attribute__((visibility("default")))

// The function that this library replaces.
#define REAL(name)                                                                            \
    ([] {                                                                                     \
        static auto *const real = reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name)); \
        return real;                                                                          \
    }())

inline uint64_t nanoseconds(const timespec &time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(time.tv_nsec);
}
inline uint64_t nanoseconds(const timeval &time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(time.tv_usec) * 1'000;
}
inline timespec to_timespec(uint64_t time) {
    return {static_cast<time_t>(time / 1'000'000'000), static_cast<long>(time % 1'000'000'000)};
}
