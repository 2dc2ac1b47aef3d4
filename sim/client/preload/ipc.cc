// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// ipc.cc -- for "rdma-sim explore": locks on files, and queues and semaphores between
// processes. A call that would block tries again after others have used such an object.

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <unistd.h>

#include "control.hh"

namespace {

using namespace control;

constexpr uint64_t AT_ONCE = 0; // of a call that does not block
bool locks_files;               // the process has locked one, which close() unlocks

// Calls the function, which does not block, until it has a result, or an error other than
// `would_block`.
template <class Try>
auto retry(const char *function, uint64_t until, int would_block, Try try_once)
    -> decltype(try_once()) {
    const unsigned before = handled_signals();
    yield_before(function);
    bool has_waited = false;
    auto result = try_once();
    for (; result < 0 && errno == would_block; has_waited = true) {
        if (until <= now()) { // the program polls
            wait_for_turn(Wait::POLL, NEVER, function);
            result = try_once();
            break;
        }
        wait_for_turn(Wait::EVENT, until, function);
        pthread_testcancel();
        result = try_once();
        if (result < 0 && errno == would_block && is_interrupted(before)) {
            errno = EINTR;
            break;
        }
    }
    const int error = has_waited && errno == EINVAL ? EIDRM : errno; // it has been removed
    if (result >= 0) {
        descriptors_changed();
        yield_after(function);
    }
    errno = error;
    return result;
}

template <class Try> int lock_file(const char *function, bool blocks, Try try_once) {
    locks_files = true;
    return retry(function, blocks ? NEVER : AT_ONCE, EAGAIN, try_once);
}

// ---- locks on files ------------------------------------------------------------------------

int control_file(const char *function, int fd, int command, void *argument) {
    const auto call = [&] { return REAL(fcntl)(fd, command, argument); };
    const bool blocks = command == F_SETLKW || command == F_OFD_SETLKW;
    if ((!blocks && command != F_SETLK && command != F_OFD_SETLK) || !is_on())
        return call();
    if (blocks)
        command = command == F_SETLKW ? F_SETLK : F_OFD_SETLK;
    return lock_file(function, blocks, call);
}

} // namespace

bool control::has_file_locks() {
    return locks_files;
}

EXPORTED int flock(int fd, int operation) noexcept {
    if (!is_on())
        return REAL(flock)(fd, operation);
    return lock_file("flock", (operation & LOCK_NB) == 0,
                     [&] { return REAL(flock)(fd, operation | LOCK_NB); });
}

#define CONTROL_FILE(name)                                 \
    EXPORTED int name(int fd, int command, ...) {          \
        va_list list;                                      \
        va_start(list, command);                           \
        void *const argument = va_arg(list, void *);       \
        va_end(list);                                      \
        return control_file(#name, fd, command, argument); \
    }
CONTROL_FILE(fcntl)
CONTROL_FILE(fcntl64)

#define LOCK_FILE(name, type)                                                   \
    EXPORTED int name(int fd, int command, type size) {                         \
        if (!is_on() || command == F_TEST)                                      \
            return REAL(name)(fd, command, size);                               \
        return lock_file(#name, command == F_LOCK, [&] {                        \
            return REAL(name)(fd, command == F_LOCK ? F_TLOCK : command, size); \
        });                                                                     \
    }
LOCK_FILE(lockf, off_t)
LOCK_FILE(lockf64, off64_t)

// ---- queues of POSIX -----------------------------------------------------------------------

namespace {

// With a time that has passed, a call that would block fails with ETIMEDOUT.
constexpr timespec PAST = {};

int send_to(mqd_t queue, const char *from, size_t size, unsigned priority, uint64_t until) {
    return retry("mq_send", until, ETIMEDOUT,
                 [&] { return REAL(mq_timedsend)(queue, from, size, priority, &PAST); });
}
ssize_t receive_from(mqd_t queue, char *to, size_t size, unsigned *priority, uint64_t until) {
    return retry("mq_receive", until, ETIMEDOUT,
                 [&] { return REAL(mq_timedreceive)(queue, to, size, priority, &PAST); });
}

} // namespace

EXPORTED int mq_send(mqd_t queue, const char *from, size_t size, unsigned priority) {
    return is_on() ? send_to(queue, from, size, priority, NEVER)
                   : REAL(mq_send)(queue, from, size, priority);
}
EXPORTED int mq_timedsend(mqd_t queue, const char *from, size_t size, unsigned priority,
                          const timespec *time) {
    return is_on() ? send_to(queue, from, size, priority, until(time, true))
                   : REAL(mq_timedsend)(queue, from, size, priority, time);
}
EXPORTED ssize_t mq_receive(mqd_t queue, char *to, size_t size, unsigned *priority) {
    return is_on() ? receive_from(queue, to, size, priority, NEVER)
                   : REAL(mq_receive)(queue, to, size, priority);
}
EXPORTED ssize_t mq_timedreceive(mqd_t queue, char *to, size_t size, unsigned *priority,
                                 const timespec *time) {
    return is_on() ? receive_from(queue, to, size, priority, until(time, true))
                   : REAL(mq_timedreceive)(queue, to, size, priority, time);
}

// ---- queues and semaphores of System V -----------------------------------------------------

EXPORTED int msgsnd(int queue, const void *from, size_t size, int flags) {
    if (!is_on())
        return REAL(msgsnd)(queue, from, size, flags);
    return retry("msgsnd", flags & IPC_NOWAIT ? AT_ONCE : NEVER, EAGAIN,
                 [&] { return REAL(msgsnd)(queue, from, size, flags | IPC_NOWAIT); });
}
EXPORTED ssize_t msgrcv(int queue, void *to, size_t size, long type, int flags) {
    if (!is_on())
        return REAL(msgrcv)(queue, to, size, type, flags);
    return retry("msgrcv", flags & IPC_NOWAIT ? AT_ONCE : NEVER, ENOMSG,
                 [&] { return REAL(msgrcv)(queue, to, size, type, flags | IPC_NOWAIT); });
}
// The waits for a queue that is removed fail.
EXPORTED int msgctl(int queue, int command, msqid_ds *status) noexcept {
    const int result = REAL(msgctl)(queue, command, status);
    if (is_on())
        descriptors_changed();
    return result;
}

// If one of the operations may not block, none does.
EXPORTED int semtimedop(int set, sembuf *operations, size_t count,
                        const timespec *time) noexcept {
    constexpr timespec NONE = {};
    const bool blocks = std::none_of(operations, operations + count, [](const sembuf &each) {
        return (each.sem_flg & IPC_NOWAIT) != 0;
    });
    if (!is_on())
        return REAL(semtimedop)(set, operations, count, time);
    return retry("semop", blocks ? after(time) : AT_ONCE, EAGAIN,
                 [&] { return REAL(semtimedop)(set, operations, count, &NONE); });
}
EXPORTED int semop(int set, sembuf *operations, size_t count) noexcept {
    return semtimedop(set, operations, count, nullptr);
}
EXPORTED int semctl(int set, int number, int command, ...) noexcept {
    va_list list;
    va_start(list, command);
    void *const argument = va_arg(list, void *);
    va_end(list);
    const int result = REAL(semctl)(set, number, command, argument);
    if (is_on())
        descriptors_changed();
    return result;
}
