// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// refuse.hh -- what exported functions have in common: refusing arguments, deleting objects
//
// NULL stops here: behind the exported functions C++ takes references.

#pragma once

#include "base/call.hh"

namespace rpma {

// Logs that an argument is not valid. RPMA_E_INVAL.
[[gnu::cold, gnu::noinline, gnu::format(printf, 4, 5)]] int
refuse(const char *function, const char *file, int line, const char *format, ...);

// Deletes an object whose destructor releases everything.
template <class T> int discard(T **object) {
    delete *object;
    *object = nullptr;
    return 0;
}

// Deletes an object. If the provider refuses, object and handle stay as they are. If the object
// is gone and the provider refuses to release a part of it, the call fails all the same.
template <class T> int delete_or_keep(const char *function, T **object) {
    if (*object == nullptr)
        return 0;
    Call call(function);
    if ((*object)->try_release(call))
        discard(object);
    return call.finish();
}

// Deletes an object whatever the provider says.
template <class T> int delete_anyway(const char *function, T **object) {
    if (*object == nullptr)
        return 0;
    Call call(function);
    (*object)->release(call);
    discard(object);
    return call.finish();
}

} // namespace rpma

// One condition per line, so that the log names the one that does not hold. The condition
// itself is the message: that is for pointers.
#define RPMA_REFUSE(condition) RPMA_REFUSE_AS(__func__, condition, #condition)
// The same in a function that does the work of an exported one.
#define RPMA_REFUSE_IN(function, condition) RPMA_REFUSE_AS(function, condition, #condition)
// For the others: a format and its values, which say what was given and what is possible.
#define RPMA_REFUSE_AS(function, condition, ...)                            \
    do {                                                                    \
        if (condition) [[unlikely]]                                         \
            return rpma::refuse(function, __FILE__, __LINE__, __VA_ARGS__); \
    } while (false)
#define RPMA_REFUSE_VALUE(function, condition, argument, possible)                 \
    RPMA_REFUSE_AS(function, condition, #argument " is %lld; possible: " possible, \
                   static_cast<long long>(argument))

// What several functions refuse.
#define RPMA_NO_MEMORY "%s is NULL, offset %zu, len %zu; possible without memory: 0 and 0"
#define RPMA_TOO_LONG(name) #name " is %zu; possible: 4294967295 (UINT32_MAX) at most"
#define RPMA_REFUSE_LENGTH(function, len) \
    RPMA_REFUSE_AS(function, len > UINT32_MAX, RPMA_TOO_LONG(len), len)
#define RPMA_REFUSE_FLAGS(function, flags) \
    RPMA_REFUSE_AS(                        \
        function, flags == 0,              \
        "flags are 0; possible: RPMA_F_COMPLETION_ALWAYS, RPMA_F_COMPLETION_ON_ERROR")
