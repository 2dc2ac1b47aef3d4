// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// export.hh -- what every exported function does: refuse, call, report
//
// NULL stops here: behind the exported functions C++ takes references.

#pragma once

#include "base/log.hh"
#include "base/result.hh"

namespace rpma::api {

// The exported function that logs; made of __func__, it finds its place by itself.
struct Caller {
    // NOLINTNEXTLINE(google-explicit-constructor): the callers pass __func__
    Caller(const char *name, const char *path = __builtin_FILE(), int number = __builtin_LINE())
        : function(name), file(path), line(number) {}

    const char *function;
    const char *file;
    int line;
};

// Logs a failure as one line of the caller and returns its code. errno is the provider's
// afterwards.
[[gnu::cold, gnu::noinline]] int report(const Caller &caller, const Failure &failure);

// The same for an argument that is not valid. Takes scalars: the compiler puts a Caller
// together before the checks, in each call that passes them.
[[gnu::cold, gnu::noinline]] int refuse(const char *function, const char *condition,
                                        const char *file = __builtin_FILE(),
                                        int line = __builtin_LINE());

inline int finish(const Caller &caller, const Status &status) {
    return status ? 0 : report(caller, status.error());
}

// Stores a value, or hands an object over to the caller.
template <class T, class Out> int deliver(const Caller &caller, Result<T> &&result, Out *out) {
    if (!result)
        return report(caller, result.error());
    if constexpr (requires { result->release(); })
        *out = result->release();
    else
        *out = *result;
    return 0;
}

// Deletes an object that is released for good by its destructor.
template <class T> int discard(T **object) {
    delete *object;
    *object = nullptr;
    return 0;
}

// Deletes an object after its close(); a refusal leaves object and handle as they are.
template <class T> int close_or_keep(const Caller &caller, T **object) {
    if (*object == nullptr)
        return 0;
    Status status = (*object)->close();
    return status ? discard(object) : report(caller, status.error());
}

// Deletes an object whatever its close() says.
template <class T> int close_and_discard(const Caller &caller, T **object) {
    if (*object == nullptr)
        return 0;
    Status status = (*object)->close();
    discard(object);
    return finish(caller, status);
}

} // namespace rpma::api

// One condition per line, so that the log names the one that does not hold.
#define RPMA_REFUSE(condition)                              \
    do {                                                    \
        if (condition) [[unlikely]]                         \
            return rpma::api::refuse(__func__, #condition); \
    } while (false)
