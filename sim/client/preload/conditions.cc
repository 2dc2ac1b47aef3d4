// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// conditions.cc -- for "rdma-sim explore": condition variables, and words of memory that
// futex() waits for

#include "threads.hh"

#include <cerrno>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <threads.h>

namespace {

using namespace control;

// A thread that waits for a condition variable, or a word in memory. On its stack. One that
// processes share may have another address in each: a wake of another process wakes all threads
// that wait for such an object, which POSIX and futex(2) permit.
struct Waiter {
    const volatile void *object;
    bool is_shared;
    uint32_t bits = UINT32_MAX;
    uint64_t others = wakes_of_others();
    bool is_woken = false;
    Waiter *next = nullptr;

    static uint64_t wakes_of_others() { return shared().changes[SHARED_OBJECT] - own_wakes; }
    static void change_shared() {
        own_wakes++;
        object_changed(SHARED_OBJECT);
    }
    void change() const {
        if (is_shared)
            change_shared();
        else
            changed(this);
    }
    bool waits() const { return !is_woken && !(is_shared && others != wakes_of_others()); }
    uint64_t number() const { return is_shared ? SHARED_OBJECT : number_of(this); }
    static inline uint64_t own_wakes = 0;
};
Waiter *waiters; // in the order of their arrival

int wake(const volatile void *object, int count, uint32_t bits) {
    int woken = 0;
    for (Waiter **at = &waiters; *at != nullptr && woken < count;) {
        Waiter &each = **at;
        if (each.object != object || (each.bits & bits) == 0) {
            at = &each.next;
            continue;
        }
        *at = each.next;
        each.is_woken = true;
        each.change();
        woken++;
    }
    return woken;
}

// One of them may continue at once.
int wake_others(const volatile void *object, bool is_shared, int count, const char *function,
                uint32_t bits = UINT32_MAX) {
    const int woken = wake(object, count, bits);
    if (is_shared)
        Waiter::change_shared();
    if (woken > 0 || is_shared)
        yield_after(function);
    return woken;
}

void add(Waiter &waiter) {
    Waiter **at = &waiters;
    while (*at != nullptr)
        at = &(*at)->next;
    *at = &waiter;
}

void remove(const Waiter &waiter) {
    for (Waiter **at = &waiters; *at != nullptr; at = &(*at)->next)
        if (*at == &waiter) {
            *at = waiter.next;
            return;
        }
}

// glibc, nptl/pthread_cond_common.c: bit 0 of __wrefs.
bool is_shared(const pthread_cond_t *condition) {
    return (condition->__data.__wrefs & 1) != 0;
}

int wait_for_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until,
                       const char *function) {
    yield_before(function);
    Waiter waiter = {condition, is_shared(condition)};
    add(waiter);
    if (const int error = unlock(mutex)) {
        remove(waiter);
        return error;
    }
    while (waiter.waits() && now() < until && !is_cancelled())
        wait_for_turn(Wait::EVENT, until, function, waiter.number());
    remove(waiter);
    const int error = lock(mutex, NEVER, "pthread_mutex_lock after a condition");
    pthread_testcancel();
    return error != 0 ? error : waiter.waits() ? ETIMEDOUT : 0;
}

// glibc, nptl/pthread_cond_common.c: bit 1 of __wrefs is the clock.
bool uses_real_clock(const pthread_cond_t *condition) {
    return (condition->__data.__wrefs & 2) == 0;
}

long wait_for_word(const volatile uint32_t *word, bool is_shared, uint32_t value,
                   uint64_t until, uint32_t bits) {
    const unsigned before = handled_signals();
    yield_before("futex");
    if (*word != value) {
        errno = EAGAIN;
        return -1;
    }
    Waiter waiter = {word, is_shared, bits};
    add(waiter);
    while (waiter.waits() && now() < until && !is_interrupted(before))
        wait_for_turn(Wait::EVENT, until, "futex", waiter.number());
    remove(waiter);
    errno = is_interrupted(before) ? EINTR : ETIMEDOUT;
    return waiter.waits() ? -1 : 0;
}

} // namespace

long control::futex(const volatile uint32_t *word, int operation, uint32_t value,
                    const timespec *time, const volatile uint32_t *other, uint32_t bits) {
    const bool is_real = (operation & FUTEX_CLOCK_REALTIME) != 0,
               is_shared = (operation & FUTEX_PRIVATE_FLAG) == 0;
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        return wait_for_word(word, is_shared, value, after(time), UINT32_MAX);
    case FUTEX_WAIT_BITSET:
        return wait_for_word(word, is_shared, value,
                             time == nullptr ? NEVER : until(time, is_real), bits);
    case FUTEX_WAKE:
        return wake_others(word, is_shared, static_cast<int>(value), "futex");
    case FUTEX_WAKE_BITSET:
        return wake_others(word, is_shared, static_cast<int>(value), "futex", bits);
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
        (void)other; // those that would wait for it wake up too early, which futex(2) permits
        return wake_others(word, is_shared, INT_MAX, "futex");
    default:
        refuse("futex() with another operation");
    }
}

void control::interrupt_waiters() {
    for (const Waiter *each = waiters; each != nullptr; each = each->next)
        each->change();
}

extern "C" int pthread_cond_clockwait(pthread_cond_t *, pthread_mutex_t *, clockid_t,
                                      const timespec *);
EXPORTED int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    if (!is_on())
        return REAL(pthread_cond_wait)(condition, mutex);
    return wait_for_condition(condition, mutex, NEVER, "pthread_cond_wait");
}
EXPORTED int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                    const timespec *time) {
    if (!is_on())
        return REAL(pthread_cond_timedwait)(condition, mutex, time);
    if (!is_valid(time))
        return EINVAL;
    return wait_for_condition(condition, mutex, until(time, uses_real_clock(condition)),
                              "pthread_cond_timedwait");
}
EXPORTED int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                    clockid_t clock, const timespec *time) {
    if (!is_on())
        return REAL(pthread_cond_clockwait)(condition, mutex, clock, time);
    if (!is_valid(time))
        return EINVAL;
    return wait_for_condition(condition, mutex, until(time, clock == CLOCK_REALTIME),
                              "pthread_cond_clockwait");
}
EXPORTED int pthread_cond_signal(pthread_cond_t *condition) noexcept {
    if (!is_on())
        return REAL(pthread_cond_signal)(condition);
    yield_before("pthread_cond_signal");
    wake_others(condition, is_shared(condition), 1, "pthread_cond_signal");
    return 0;
}
EXPORTED int pthread_cond_broadcast(pthread_cond_t *condition) noexcept {
    if (!is_on())
        return REAL(pthread_cond_broadcast)(condition);
    yield_before("pthread_cond_broadcast");
    wake_others(condition, is_shared(condition), INT_MAX, "pthread_cond_broadcast");
    return 0;
}

#define AS_C11(call) ((call) == 0 ? thrd_success : thrd_error)
static pthread_cond_t *posix(cnd_t *condition) {
    return reinterpret_cast<pthread_cond_t *>(condition);
}
EXPORTED int cnd_wait(cnd_t *condition, mtx_t *mutex) {
    return AS_C11(
        pthread_cond_wait(posix(condition), reinterpret_cast<pthread_mutex_t *>(mutex)));
}
EXPORTED int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const timespec *time) {
    const int error = pthread_cond_timedwait(posix(condition),
                                             reinterpret_cast<pthread_mutex_t *>(mutex), time);
    return error == ETIMEDOUT ? thrd_timedout : AS_C11(error);
}
EXPORTED int cnd_signal(cnd_t *condition) {
    return AS_C11(pthread_cond_signal(posix(condition)));
}
EXPORTED int cnd_broadcast(cnd_t *condition) {
    return AS_C11(pthread_cond_broadcast(posix(condition)));
}
