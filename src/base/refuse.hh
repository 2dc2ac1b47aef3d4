// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// refuse.hh -- rejecting arguments and deleting objects, for all exported functions
//
// The exported functions reject NULL: the C++ functions below them take references.

#pragma once

#include "base/call.hh"

namespace rpma {

// Logs that an argument is not valid. RPMA_E_INVAL.
[[gnu::cold, gnu::noinline, gnu::format(printf, 4, 5)]] int
refuse(const char *function, const char *file, int line, const char *format, ...);

// Deletes an object whose destructor releases all its resources.
template <class T> int delete_and_clear(T **object) {
    delete *object;
    *object = nullptr;
    return 0;
}

// Deletes an object. If the provider refuses, object and handle are unchanged. If the object is
// deleted but the provider refuses to release a part of it, the call still fails.
template <class T> int try_delete(const char *function, T **object) {
    if (*object == nullptr)
        return 0;
    Call call(function);
    if ((*object)->try_release(call))
        delete_and_clear(object);
    return call.finish();
}

// Deletes an object even if the provider fails. Its handle may point to a base, T.
template <class T, class Object = T> int release_and_delete(const char *function, T **object) {
    if (*object == nullptr)
        return 0;
    Call call(function);
    (*object)->release(call);
    delete static_cast<Object *>(*object);
    *object = nullptr;
    return call.finish();
}

} // namespace rpma

// One condition per line, so that the log names the violated one. The message is the condition
// itself, which suits pointers.
#define RPMA_REFUSE(condition) RPMA_REFUSE_AS(__func__, condition, #condition)
// The same for a function that implements an exported one. site is the name of the exported
// function, or a CallSite.
#define RPMA_REFUSE_IN(site, condition) RPMA_REFUSE_AS(site, condition, #condition)
// For other arguments: a format and its values, which show the value and the possible ones.
#define RPMA_REFUSE_AS(site, condition, ...)                                 \
    do {                                                                     \
        if (condition) [[unlikely]]                                          \
            return rpma::refuse(site, __FILE_NAME__, __LINE__, __VA_ARGS__); \
    } while (false)
#define RPMA_REFUSE_VALUE(site, condition, argument, possible)                 \
    RPMA_REFUSE_AS(site, condition, #argument " is %lld; possible: " possible, \
                   static_cast<long long>(argument))

// Messages of several functions. The first value of a format with %s is a parameter's name.
#define RPMA_NO_MEMORY "%s is NULL, offset %zu, len %zu; possible without memory: 0 and 0"
#define RPMA_TOO_LONG "%s is %zu; possible: 4294967295 (UINT32_MAX) at most"
#define RPMA_NO_FLAGS \
    "flags are 0; possible: RPMA_F_COMPLETION_ALWAYS, RPMA_F_COMPLETION_ON_ERROR"
