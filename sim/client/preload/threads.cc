// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// threads.cc -- for "rdma-sim explore": threads, and what they wait for in memory
//
// One thread runs at a time, so that these functions need no locks. A function that would wait
// tries without waiting, and tries again after a change of the object.

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "control.hh"

namespace {

using namespace control;

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

bool is_valid(const timespec *time) {
    return time->tv_nsec >= 0 && time->tv_nsec < 1'000'000'000;
}

// ---- what waits for a wake-up
// ----------------------------------------------------------------

// A thread that waits for a condition variable, or a word in memory. On its stack.
struct Waiter {
    const volatile void *object;
    uint32_t bits;
    bool is_woken;
    Waiter *next;
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
        changed(&each);
        woken++;
    }
    return woken;
}

// One of them may continue at once.
int wake_others(const volatile void *object, int count, const char *function,
                uint32_t bits = UINT32_MAX) {
    const int woken = wake(object, count, bits);
    if (woken > 0)
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

// ---- threads
// ---------------------------------------------------------------------------------

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

// ---- mutexes and condition variables
// ---------------------------------------------------------

// Returns true for a mutex that reports that its owner locks it again.
bool reports_deadlock(const pthread_mutex_t *mutex) {
    return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK_NP &&
           mutex->__data.__owner == own_tid();
}

int lock(pthread_mutex_t *mutex, uint64_t until, const char *function) {
    if (reports_deadlock(mutex))
        return EDEADLK;
    return try_until(until, EBUSY, ETIMEDOUT, function, mutex,
                     [&] { return REAL(pthread_mutex_trylock)(mutex); });
}

int unlock(pthread_mutex_t *mutex) {
    const int error = REAL(pthread_mutex_unlock)(mutex);
    if (is_on())
        changed(mutex);
    return error;
}

int wait_for_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until,
                       const char *function) {
    yield_before(function);
    Waiter waiter = {condition, UINT32_MAX, false, nullptr};
    add(waiter);
    if (const int error = unlock(mutex)) {
        remove(waiter);
        return error;
    }
    while (!waiter.is_woken && now() < until && (current == nullptr || !current->is_cancelled))
        wait_for_turn(Wait::EVENT, until, function, number_of(&waiter));
    remove(waiter);
    const int error = lock(mutex, NEVER, "pthread_mutex_lock after a condition");
    pthread_testcancel();
    return error != 0 ? error : waiter.is_woken ? 0 : ETIMEDOUT;
}

// glibc, nptl/pthread_cond_common.c: bit 1 of __wrefs is the clock.
bool uses_real_clock(const pthread_cond_t *condition) {
    return (condition->__data.__wrefs & 2) == 0;
}

// ---- barriers
// --------------------------------------------------------------------------------

struct Barrier {
    const pthread_barrier_t *address;
    unsigned count, waiting, round;
    Barrier *next;
};
Barrier *barriers;

Barrier **barrier_at(const pthread_barrier_t *address) {
    Barrier **at = &barriers;
    while (*at != nullptr && (*at)->address != address)
        at = &(*at)->next;
    return at;
}

// ---- words of memory
// -------------------------------------------------------------------------

long wait_for_word(const volatile uint32_t *word, uint32_t value, uint64_t until,
                   uint32_t bits) {
    yield_before("futex");
    if (*word != value) {
        errno = EAGAIN;
        return -1;
    }
    Waiter waiter = {word, bits, false, nullptr};
    add(waiter);
    while (!waiter.is_woken && now() < until)
        wait_for_turn(Wait::EVENT, until, "futex", number_of(&waiter));
    remove(waiter);
    errno = ETIMEDOUT;
    return waiter.is_woken ? 0 : -1;
}

long futex(const volatile uint32_t *word, int operation, uint32_t value, const timespec *time,
           const volatile uint32_t *other, uint32_t bits) {
    const bool is_real = (operation & FUTEX_CLOCK_REALTIME) != 0;
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        return wait_for_word(word, value, after(time), UINT32_MAX);
    case FUTEX_WAIT_BITSET:
        return wait_for_word(word, value, time == nullptr ? NEVER : until(time, is_real), bits);
    case FUTEX_WAKE:
        return wake_others(word, static_cast<int>(value), "futex");
    case FUTEX_WAKE_BITSET:
        return wake_others(word, static_cast<int>(value), "futex", bits);
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
        (void)other; // those that would wait for it wake up too early, which futex(2) permits
        return wake_others(word, INT_MAX, "futex");
    default:
        refuse("futex() with another operation");
    }
}

} // namespace

// ---- threads
// ---------------------------------------------------------------------------------

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
    for (const Waiter *each = waiters; each != nullptr; each = each->next)
        changed(each);
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

// ---- mutexes, and locks of other kinds
// -------------------------------------------------------

EXPORTED int pthread_mutex_lock(pthread_mutex_t *mutex) noexcept {
    if (!is_on())
        return REAL(pthread_mutex_lock)(mutex);
    yield_before("pthread_mutex_lock");
    return lock(mutex, NEVER, "pthread_mutex_lock");
}
EXPORTED int pthread_mutex_trylock(pthread_mutex_t *mutex) noexcept {
    if (is_on())
        yield_before("pthread_mutex_trylock");
    return REAL(pthread_mutex_trylock)(mutex);
}
EXPORTED int pthread_mutex_unlock(pthread_mutex_t *mutex) noexcept {
    const int error = unlock(mutex);
    yield_after("pthread_mutex_unlock");
    return error;
}

// Defines functions that try until a time of CLOCK_REALTIME, or of a clock.
#define LOCKS_UNTIL(type, kind, timed, clocked, try_name, throws)                           \
    EXPORTED int timed(type *object, const timespec *time) throws {                         \
        if (!is_on())                                                                       \
            return REAL(timed)(object, time);                                               \
        yield_before(#timed);                                                               \
        return kind(is_valid(time), object, until(time, true), #timed,                      \
                    [&] { return REAL(try_name)(object); });                                \
    }                                                                                       \
    EXPORTED int clocked(type *object, clockid_t clock, const timespec *time) throws {      \
        if (!is_on())                                                                       \
            return REAL(clocked)(object, clock, time);                                      \
        yield_before(#clocked);                                                             \
        return kind(is_valid(time), object, until(time, clock == CLOCK_REALTIME), #clocked, \
                    [&] { return REAL(try_name)(object); });                                \
    }
// Returns an error number.
template <class Object, class Try>
static int lock_until(bool is_valid_time, Object *object, uint64_t time, const char *function,
                      Try try_once) {
    const int result = try_once();
    if (result != EBUSY || !is_valid_time)
        return result != EBUSY ? result : EINVAL;
    return try_until(time, EBUSY, ETIMEDOUT, function, object, try_once);
}
// Returns -1 and errno.
template <class Try>
static int take_until(bool is_valid_time, sem_t *object, uint64_t time, const char *function,
                      Try try_once) {
    const int error = lock_until(is_valid_time, object, time, function, [&] {
        return try_once() == 0 ? 0 : errno == EAGAIN ? EBUSY : errno;
    });
    if (error != 0)
        errno = error;
    return error == 0 ? 0 : -1;
}
LOCKS_UNTIL(pthread_mutex_t, lock_until, pthread_mutex_timedlock, pthread_mutex_clocklock,
            pthread_mutex_trylock, noexcept)
LOCKS_UNTIL(pthread_rwlock_t, lock_until, pthread_rwlock_timedrdlock,
            pthread_rwlock_clockrdlock, pthread_rwlock_tryrdlock, noexcept)
LOCKS_UNTIL(pthread_rwlock_t, lock_until, pthread_rwlock_timedwrlock,
            pthread_rwlock_clockwrlock, pthread_rwlock_trywrlock, noexcept)
LOCKS_UNTIL(sem_t, take_until, sem_timedwait, sem_clockwait, sem_trywait, )

#define LOCKS(type, kind, name, try_name, throws)                                        \
    EXPORTED int name(type *object) throws {                                             \
        if (!is_on())                                                                    \
            return REAL(name)(object);                                                   \
        yield_before(#name);                                                             \
        return kind(true, object, NEVER, #name, [&] { return REAL(try_name)(object); }); \
    }
LOCKS(pthread_rwlock_t, lock_until, pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, noexcept)
LOCKS(pthread_rwlock_t, lock_until, pthread_rwlock_wrlock, pthread_rwlock_trywrlock, noexcept)
LOCKS(sem_t, take_until, sem_wait, sem_trywait, )
EXPORTED int pthread_spin_lock(pthread_spinlock_t *object) noexcept {
    if (!is_on())
        return REAL(pthread_spin_lock)(object);
    yield_before("pthread_spin_lock");
    return try_until(NEVER, EBUSY, 0, "pthread_spin_lock", const_cast<int *>(object),
                     [&] { return REAL(pthread_spin_trylock)(object); });
}

#define CHANGES(type, name)                    \
    EXPORTED int name(type *object) noexcept { \
        const int result = REAL(name)(object); \
        if (is_on())                           \
            changed(object);                   \
        yield_after(#name);                    \
        return result;                         \
    }
CHANGES(pthread_rwlock_t, pthread_rwlock_unlock)
CHANGES(pthread_spinlock_t, pthread_spin_unlock)
CHANGES(sem_t, sem_post)

EXPORTED int mtx_lock(mtx_t *mutex) {
    return pthread_mutex_lock(reinterpret_cast<pthread_mutex_t *>(mutex)) == 0 ? thrd_success
                                                                               : thrd_error;
}
EXPORTED int mtx_trylock(mtx_t *mutex) {
    const int error = pthread_mutex_trylock(reinterpret_cast<pthread_mutex_t *>(mutex));
    return error == 0 ? thrd_success : error == EBUSY ? thrd_busy : thrd_error;
}
EXPORTED int mtx_timedlock(mtx_t *mutex, const timespec *time) {
    const int error = pthread_mutex_timedlock(reinterpret_cast<pthread_mutex_t *>(mutex), time);
    return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}
EXPORTED int mtx_unlock(mtx_t *mutex) {
    return pthread_mutex_unlock(reinterpret_cast<pthread_mutex_t *>(mutex)) == 0 ? thrd_success
                                                                                 : thrd_error;
}

// ---- condition variables
// ---------------------------------------------------------------------

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
    wake_others(condition, 1, "pthread_cond_signal");
    return 0;
}
EXPORTED int pthread_cond_broadcast(pthread_cond_t *condition) noexcept {
    if (!is_on())
        return REAL(pthread_cond_broadcast)(condition);
    yield_before("pthread_cond_broadcast");
    wake_others(condition, INT_MAX, "pthread_cond_broadcast");
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

// ---- barriers and initialization
// -------------------------------------------------------------

EXPORTED int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr,
                                  unsigned count) noexcept {
    const int error = REAL(pthread_barrier_init)(barrier, attr, count);
    if (is_on() && error == 0)
        barriers = make(Barrier{barrier, count, 0, 0, barriers});
    return error;
}
EXPORTED int pthread_barrier_destroy(pthread_barrier_t *barrier) noexcept {
    Barrier **const at = barrier_at(barrier);
    if (Barrier *const found = *at) {
        *at = found->next;
        free(found);
    }
    return REAL(pthread_barrier_destroy)(barrier);
}
EXPORTED int pthread_barrier_wait(pthread_barrier_t *barrier) noexcept {
    Barrier *const found = *barrier_at(barrier);
    if (!is_on() || found == nullptr)
        return REAL(pthread_barrier_wait)(barrier);
    yield_before("pthread_barrier_wait");
    if (++found->waiting == found->count) {
        found->waiting = 0;
        found->round++;
        changed(barrier);
        yield_after("pthread_barrier_wait");
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    for (const unsigned round = found->round; found->round == round;)
        wait_for_turn(Wait::EVENT, NEVER, "pthread_barrier_wait", number_of(barrier));
    return 0;
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

// ---- system calls
// ----------------------------------------------------------------------------

// Called by libstdc++, for std::atomic::wait(), and by programs in Rust.
EXPORTED long syscall(long number, ...) noexcept {
    long argument[6];
    va_list list;
    va_start(list, number);
    for (long &each : argument)
        each = va_arg(list, long);
    va_end(list);
    if (is_on() && number == SYS_futex)
        return futex(reinterpret_cast<volatile uint32_t *>(argument[0]),
                     static_cast<int>(argument[1]), static_cast<uint32_t>(argument[2]),
                     reinterpret_cast<const timespec *>(argument[3]),
                     reinterpret_cast<volatile uint32_t *>(argument[4]),
                     static_cast<uint32_t>(argument[5]));
    if (is_on() && number == SYS_gettid)
        return gettid();
    if (is_on() && number == SYS_sched_yield)
        return sched_yield();
    if (is_on() && number == SYS_nanosleep)
        return nanosleep(reinterpret_cast<const timespec *>(argument[0]), nullptr);
    if (is_on() && number == SYS_clock_gettime)
        return clock_gettime(static_cast<clockid_t>(argument[0]),
                             reinterpret_cast<timespec *>(argument[1]));
    return REAL(syscall)(number, argument[0], argument[1], argument[2], argument[3],
                         argument[4], argument[5]);
}
