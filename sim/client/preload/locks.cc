// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// locks.cc -- for "rdma-sim explore": mutexes, locks of other kinds, semaphores and barriers

#include "threads.hh"

#include <cerrno>
#include <semaphore.h>
#include <threads.h>

namespace {

using namespace control;

// Returns true for a mutex that reports that its owner locks it again.
bool reports_deadlock(const pthread_mutex_t *mutex) {
    return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK_NP &&
           mutex->__data.__owner == own_tid();
}

// glibc, sysdeps/nptl/internaltypes.h, struct pthread_barrier, without its last member.
struct Barrier {
    unsigned waiting, round, count;
    int is_shared;
};

} // namespace

int control::lock(pthread_mutex_t *mutex, uint64_t until, const char *function) {
    if (reports_deadlock(mutex))
        return EDEADLK;
    return try_until(until, EBUSY, ETIMEDOUT, function, mutex,
                     [&] { return REAL(pthread_mutex_trylock)(mutex); });
}

int control::unlock(pthread_mutex_t *mutex) {
    const int error = REAL(pthread_mutex_unlock)(mutex);
    if (is_on())
        changed(mutex);
    return error;
}

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
    const unsigned before = handled_signals();
    const int error = lock_until(is_valid_time, object, time, function, [&] {
        return try_once() == 0          ? 0
               : errno != EAGAIN        ? errno
               : is_interrupted(before) ? EINTR
                                        : EBUSY;
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

// ---- barriers

EXPORTED int pthread_barrier_wait(pthread_barrier_t *given) noexcept {
    if (!is_on())
        return REAL(pthread_barrier_wait)(given);
    auto *const barrier = reinterpret_cast<volatile Barrier *>(given);
    const uint64_t object = barrier->is_shared != 0 ? SHARED_OBJECT : number_of(given);
    yield_before("pthread_barrier_wait");
    barrier->waiting = barrier->waiting + 1;
    if (barrier->waiting == barrier->count) {
        barrier->waiting = 0;
        barrier->round = barrier->round + 1;
        object_changed(object);
        yield_after("pthread_barrier_wait");
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    for (const unsigned round = barrier->round; barrier->round == round;)
        wait_for_turn(Wait::EVENT, NEVER, "pthread_barrier_wait", object);
    return 0;
}
