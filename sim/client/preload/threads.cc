// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// threads.cc -- for "rdma-sim explore": threads, their start and end

#include "threads.hh"

#include <cerrno>
#include <climits>
#include <cstdint>
#include <threads.h>

namespace {

using namespace control;

struct Thread {
    pthread_t handle;
    void *(*function)(void *);
    void *argument;
    int rounds;
    bool has_ended, is_cancelled;
    Thread *next;
};
Thread *threads; // the newest is the first, because handles are reused
pthread_key_t thread_key;
__thread Thread *current;
Thread initial; // its connection is that of the process

Thread *thread_of(pthread_t handle) {
    Thread *each = threads;
    while (each != nullptr && pthread_equal(each->handle, handle) == 0)
        each = each->next;
    return each;
}

// Destructors of other keys may call functions, so it is the last one.
void end(void *argument) {
    auto *const thread = static_cast<Thread *>(argument);
    if (++thread->rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(thread_key, thread);
        return;
    }
    end_thread();
    thread->has_ended = true; // the next turn is later
    changed(thread);
    if (thread != &initial)
        rdma_sim_disconnect_thread();
}

void *run(void *argument) {
    current = static_cast<Thread *>(argument);
    begin_thread();
    current->handle = pthread_self();
    pthread_setspecific(thread_key, current);
    return current->function(current->argument);
}

int create(pthread_t *handle, const pthread_attr_t *attr, void *(*function)(void *),
           void *argument) {
    if (!is_on())
        return REAL(pthread_create)(handle, attr, function, argument);
    if (threads == nullptr && pthread_key_create(&thread_key, end) != 0)
        return EAGAIN;
    if (current == nullptr) {
        current = &initial;
        current->handle = pthread_self();
        current->next = threads;
        threads = current;
        pthread_setspecific(thread_key, current);
    }
    auto *const thread = make(Thread{{}, function, argument, 0, false, false, threads});
    set_has_threads();
    if (const int error = REAL(pthread_create)(&thread->handle, attr, run, thread)) {
        free(thread);
        return error;
    }
    threads = thread;
    *handle = thread->handle;
    wait_for_turn(Wait::CREATED, NEVER, "pthread_create");
    return 0;
}

// A thread that is cancelled while it waits ends at its next turn.
int join(pthread_t handle, void **result, uint64_t until, const char *function) {
    if (Thread *const thread = thread_of(handle)) {
        if (pthread_equal(handle, pthread_self()) != 0)
            return EDEADLK;
        while (!thread->has_ended) {
            if (until <= now())
                return until == 0 ? EBUSY : ETIMEDOUT;
            wait_for_turn(Wait::EVENT, until, function, number_of(thread));
            pthread_testcancel();
        }
    }
    return REAL(pthread_join)(handle, result);
}

} // namespace

bool control::is_cancelled() {
    return current != nullptr && current->is_cancelled;
}

EXPORTED int pthread_create(pthread_t *handle, const pthread_attr_t *attr,
                            void *(*function)(void *), void *argument) noexcept {
    return create(handle, attr, function, argument);
}
EXPORTED int pthread_join(pthread_t handle, void **result) {
    return is_on() ? join(handle, result, NEVER, "pthread_join")
                   : REAL(pthread_join)(handle, result);
}
EXPORTED int pthread_tryjoin_np(pthread_t handle, void **result) noexcept {
    return is_on() ? join(handle, result, 0, "pthread_tryjoin_np")
                   : REAL(pthread_tryjoin_np)(handle, result);
}
EXPORTED int pthread_timedjoin_np(pthread_t handle, void **result, const timespec *time) {
    if (!is_on())
        return REAL(pthread_timedjoin_np)(handle, result, time);
    return join(handle, result, until(time, true), "pthread_timedjoin_np");
}
EXPORTED int pthread_clockjoin_np(pthread_t handle, void **result, clockid_t clock,
                                  const timespec *time) {
    if (!is_on())
        return REAL(pthread_clockjoin_np)(handle, result, clock, time);
    return join(handle, result, until(time, clock == CLOCK_REALTIME), "pthread_clockjoin_np");
}
// The thread ends at its next turn, if it waits in a cancellation point.
EXPORTED int pthread_cancel(pthread_t handle) {
    const int error = REAL(pthread_cancel)(handle);
    if (!is_on())
        return error;
    if (Thread *const thread = thread_of(handle))
        thread->is_cancelled = true;
    interrupt_waiters();
    for (const Thread *each = threads; each != nullptr; each = each->next)
        changed(each);
    descriptors_changed();
    return error;
}
EXPORTED int thrd_create(thrd_t *handle, thrd_start_t function, void *argument) {
    struct Start {
        thrd_start_t function;
        void *argument;
    };
    const auto call = [](void *given) -> void * {
        const Start start = *static_cast<Start *>(given);
        free(given);
        return reinterpret_cast<void *>(static_cast<intptr_t>(start.function(start.argument)));
    };
    if (!is_on())
        return REAL(thrd_create)(handle, function, argument);
    return create(handle, nullptr, call, make(Start{function, argument})) == 0 ? thrd_success
                                                                               : thrd_error;
}
EXPORTED int thrd_join(thrd_t handle, int *result) {
    void *value;
    if (!is_on())
        return REAL(thrd_join)(handle, result);
    if (join(handle, &value, NEVER, "thrd_join") != 0)
        return thrd_error;
    if (result != nullptr)
        *result = static_cast<int>(reinterpret_cast<intptr_t>(value));
    return thrd_success;
}

// glibc, nptl/pthread_onceP.h: bit 0 while the function runs, which may throw.
EXPORTED int pthread_once(pthread_once_t *once, void (*function)()) {
    while (is_on() && (*const_cast<volatile pthread_once_t *>(once) & 3) == 1)
        wait_for_turn(Wait::POLL, NEVER, "pthread_once");
    return REAL(pthread_once)(once, function);
}
EXPORTED void call_once(once_flag *once, void (*function)()) {
    (void)pthread_once(reinterpret_cast<pthread_once_t *>(once), function);
}
