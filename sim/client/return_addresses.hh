// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// return_addresses.hh -- the functions that have called the current one

#pragma once

#include <cstdint>
#include <unwind.h>

namespace sim {

// Returns the number of return addresses of the calling thread, the innermost first, of which
// it writes at most `size`. It allocates no memory: a program has the same addresses with and
// without a trace.
inline uint32_t return_addresses(uint64_t *to, uint32_t size) {
    struct State {
        uint64_t *to;
        uint32_t count, size;
    } state = {to, 0, size};
    (void)_Unwind_Backtrace(
        [](_Unwind_Context *context, void *pointer) {
            auto *const all = static_cast<State *>(pointer);
            if (all->count == all->size)
                return _URC_END_OF_STACK;
            all->to[all->count++] = static_cast<uint64_t>(_Unwind_GetIP(context));
            return _URC_NO_REASON;
        },
        &state);
    return state.count;
}

} // namespace sim
