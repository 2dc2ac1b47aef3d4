// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// allocation.hh -- allocation from libc: operator new would pull in libstdc++

#pragma once

#include <cstdlib>
#include <memory>
#include <utility>

#include "base/call.hh"

namespace rpma {

// Base class of everything that is allocated: new returns nullptr if there is no memory.
struct Allocated {
    static void *operator new(std::size_t size) noexcept { return std::malloc(size); }
    static void operator delete(void *memory) noexcept { std::free(memory); }
};

// Frees memory that malloc() allocated.
struct Free {
    void operator()(void *memory) const { std::free(memory); }
};

// Ends the use of an object that counts its users.
struct RemoveUser {
    template <class T> void operator()(T *used) const { used->remove_user(); }
};

// RPMA_E_NOMEM.
template <class T, class... Args> std::unique_ptr<T> make(Call &call, Args &&...args) {
    std::unique_ptr<T> object(new T(std::forward<Args>(args)...));
    if (!object)
        RPMA_FAIL(call, RPMA_E_NOMEM, 0, "out of memory: %zu bytes", sizeof(T));
    return object;
}

} // namespace rpma
