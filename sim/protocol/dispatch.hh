// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// dispatch.hh -- direct system calls of a program: Linux 5.11 and later on x86-64,
// Documentation/admin-guide/syscall-user-dispatch.rst

#pragma once

#include <cstdint>
#include <sys/prctl.h>

namespace sim {

// linux/prctl.h and asm-generic/siginfo.h, of which older systems lack these.
constexpr int SET_DISPATCH = 59, DISPATCH_OFF = 0, DISPATCH_ON = 1;
constexpr int DISPATCHED = 2; // si_code

// Lets the system calls of the calling thread fail with SIGSYS, whose code is below this
// address. Returns false if the kernel cannot.
inline bool dispatch_calls_below([[maybe_unused]] uintptr_t end) {
#ifdef __x86_64__
    return prctl(SET_DISPATCH, DISPATCH_ON, end, UINTPTR_MAX - end, nullptr) == 0;
#else
    return false;
#endif
}

inline bool can_dispatch_calls() {
    return dispatch_calls_below(0) && prctl(SET_DISPATCH, DISPATCH_OFF, 0L, 0L, 0L) == 0;
}

} // namespace sim
