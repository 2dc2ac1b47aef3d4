// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// fork_server.cc -- for "rdma-sim explore": a program whose libraries are loaded is forked for
// each schedule, because loading takes most of the time of a short schedule

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control.hh"

namespace {

// A copy has one thread.
bool has_one_thread() {
    struct stat status;
    return stat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
}

// Creates a child of the parent of this process, which waits for it and may trace it. As
// fork(), without its handlers: the child has not begun. `tid`: where the C library keeps the
// number of the thread.
pid_t fork_sibling(pid_t *tid, void *robust, size_t robust_size) {
    const auto pid = static_cast<pid_t>(REAL(syscall)(
        SYS_clone,
        CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | static_cast<long>(SIGCHLD),
        0L, 0L,
#ifdef __x86_64__
        tid, 0L
#else
        0L, tid
#endif
        ));
    if (pid == 0)
        (void)REAL(syscall)(SYS_set_robust_list, robust, robust_size);
    return pid;
}

} // namespace

void control::fork_for_each_schedule() {
    char *const number = getenv("LIBRDMA_SIM_FORKS");
    if (number == nullptr || *number == '\0')
        return;
    const int fd = atoi(number);
    const pid_t parent = getppid();
    pid_t pid = 0, *tid = nullptr;
    void *robust = nullptr;
    size_t robust_size = 0;
    char request;
    // In place: programs that read the initial stack, such as those of Go, find what follows
    // the environment by it, and bash has a setenv() of its own, which it cannot call yet.
    *number = '\0';
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (!has_one_thread() || prctl(PR_GET_TID_ADDRESS, &tid) != 0 || tid == nullptr ||
        REAL(syscall)(SYS_get_robust_list, 0L, &robust, &robust_size) != 0)
        _exit(EXIT_FAILURE); // it is executed for each schedule
    do {
        if (REAL(send)(fd, &pid, sizeof(pid), MSG_NOSIGNAL) != sizeof(pid) ||
            REAL(recv)(fd, &request, sizeof(request), 0) != sizeof(request))
            _exit(EXIT_SUCCESS);
        pid = fork_sibling(tid, robust, robust_size);
    } while (pid != 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    (void)setpgid(0, 0);
    REAL(close)(fd);
}
