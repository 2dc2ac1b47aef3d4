// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// threads.hh -- what threads.cc, locks.cc and conditions.cc share
//
// One thread runs at a time, so that these functions need no locks. A function that would wait
// tries without waiting, and tries again after a change of the object.

#pragma once

#include <cstdlib>
#include <ctime>
#include <pthread.h>

#include "control.hh"

namespace control {

// The library does not need that of C++.
template <class T> T *make(const T &value) {
    auto *const made = static_cast<T *>(malloc(sizeof(T)));
    if (made == nullptr)
        abort();
    *made = value;
    return made;
}

// Tries until the result is not `busy`, or the time has passed.
template <class Try>
int try_until(uint64_t until, int busy, int timeout, const char *function, const void *object,
              Try try_once) {
    int result;
    while ((result = try_once()) == busy) {
        if (until <= now())
            return timeout;
        wait_for_turn(Wait::EVENT, until, function, number_of(object));
    }
    return result;
}

inline bool is_valid(const timespec *time) {
    return time->tv_nsec >= 0 && time->tv_nsec < 1'000'000'000;
}

// threads.cc: another thread has cancelled the calling one
bool is_cancelled();

// locks.cc
int lock(pthread_mutex_t *mutex, uint64_t until, const char *function);
int unlock(pthread_mutex_t *mutex);

// conditions.cc: all that wait look whether they are cancelled
void interrupt_waiters();
long futex(const volatile uint32_t *word, int operation, uint32_t value, const timespec *time,
           const volatile uint32_t *other, uint32_t bits);

} // namespace control
