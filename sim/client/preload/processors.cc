// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// processors.cc -- for "rdma-sim explore": the number of processors, and sets of them

#include <cerrno>
#include <pthread.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "control.hh"

namespace {

using namespace control;

// rdma-sim and its programs run on one processor, but a program may start a thread for each.
// The same number on each machine.
constexpr unsigned PROCESSORS = 4;
__thread unsigned own_processors = (1U << PROCESSORS) - 1; // the set of the thread

} // namespace

EXPORTED int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) noexcept {
    if (!is_on())
        return REAL(sched_getaffinity)(pid, size, set);
    CPU_ZERO_S(size, set);
    for (unsigned i = 0; i < PROCESSORS; i++)
        if ((own_processors >> i & 1) != 0)
            CPU_SET_S(i, size, set);
    return 0;
}
// One processor runs all programs. A set of another thread has no effect.
EXPORTED int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set) noexcept {
    unsigned chosen = 0;
    if (!is_on())
        return REAL(sched_setaffinity)(pid, size, set);
    for (unsigned i = 0; i < PROCESSORS; i++)
        chosen |= CPU_ISSET_S(i, size, set) ? 1U << i : 0;
    if (chosen == 0) {
        errno = EINVAL;
        return -1;
    }
    if (pid == 0 || pid == gettid())
        own_processors = chosen;
    return 0;
}
EXPORTED int pthread_setaffinity_np(pthread_t thread, size_t size,
                                    const cpu_set_t *set) noexcept {
    if (!is_on())
        return REAL(pthread_setaffinity_np)(thread, size, set);
    const pid_t pid = pthread_equal(thread, pthread_self()) != 0 ? 0 : -1;
    return sched_setaffinity(pid, size, set) == 0 ? 0 : errno;
}
EXPORTED int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set) noexcept {
    return is_on() ? sched_getaffinity(0, size, set)
                   : REAL(pthread_getaffinity_np)(thread, size, set);
}
// The machine may have fewer processors.
EXPORTED int pthread_attr_setaffinity_np(pthread_attr_t *attr, size_t size,
                                         const cpu_set_t *set) noexcept {
    return is_on() ? 0 : REAL(pthread_attr_setaffinity_np)(attr, size, set);
}
EXPORTED int sched_getcpu() noexcept {
    return is_on() ? __builtin_ctz(own_processors) : REAL(sched_getcpu)();
}
EXPORTED int get_nprocs() noexcept {
    return is_on() ? PROCESSORS : REAL(get_nprocs)();
}
EXPORTED int get_nprocs_conf() noexcept {
    return is_on() ? PROCESSORS : REAL(get_nprocs_conf)();
}
EXPORTED long sysconf(int name) noexcept {
    const bool is_number = name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF;
    return is_on() && is_number ? static_cast<long>(PROCESSORS) : REAL(sysconf)(name);
}
