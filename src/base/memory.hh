// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.hh -- allocation from libc: operator new would pull in libstdc++

#pragma once

#include <cstdlib>
#include <memory>
#include <utility>

#include "base/result.hh"

namespace rpma {

// Base of everything that is allocated: new yields nullptr when memory is out.
struct Allocated {
    static void *operator new(std::size_t size) noexcept { return std::malloc(size); }
    static void operator delete(void *memory) noexcept { std::free(memory); }
};

template <class T, class... Args> Result<std::unique_ptr<T>> make(Args &&...args) {
    std::unique_ptr<T> object(new T(std::forward<Args>(args)...));
    if (!object)
        return out_of_memory();
    return object;
}

} // namespace rpma
