// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// refuse.hh -- what exported functions have in common: refusing arguments, deleting objects
//
// NULL stops here: behind the exported functions C++ takes references.

#pragma once

#include "base/call.hh"

namespace rpma {

// Logs that an argument is not valid. RPMA_E_INVAL.
[[gnu::cold, gnu::noinline]] inline int refuse(const char *function, const char *condition,
                                               const char *file = __builtin_FILE(),
                                               int line = __builtin_LINE()) {
    Call call(function);
    if (call.fails(RPMA_E_INVAL, 0))
        call.log(file, line, "", "%s", condition);
    return call.finish();
}

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

// One condition per line, so that the log names the one that does not hold.
#define RPMA_REFUSE(condition) RPMA_REFUSE_AS(__func__, condition, #condition)
// The same in a function that does the work of an exported one.
#define RPMA_REFUSE_IN(function, condition) RPMA_REFUSE_AS(function, condition, #condition)
#define RPMA_REFUSE_AS(function, condition, text) \
    do {                                          \
        if (condition) [[unlikely]]               \
            return rpma::refuse(function, text);  \
    } while (false)
