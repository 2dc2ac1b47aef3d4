// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// services.c -- the functions of the C library and of librdmacm that the programs of examples
// 14 and 15 call, besides those of calls.c

#include "calls.h"

#include <rdma-sim.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <sys/eventfd.h>

#define RESOLVE_MAX_MS 500 // a program with several peers does not wait longer for one of them

int signals_fd;
static sigset_t blocked;

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old) {
    if (how == SIG_BLOCK && !old)
        blocked = *set;
    return 0;
}

// A signal that is not blocked would end the program.
int __wrap_signalfd(int fd, const sigset_t *set, int flags);
int __wrap_signalfd(int fd, const sigset_t *set, int flags) {
    for (int signal = 1; signal < NSIG; signal++)
        if ((signal == SIGINT || signal == SIGTERM) != sigismember(set, signal) ||
            (sigismember(set, signal) && !sigismember(&blocked, signal)) || fd != -1)
            report(
                "a program does not wait for SIGINT and SIGTERM alone, or does not block them");
    signals_fd = eventfd(0, flags & EFD_CLOEXEC);
    handle_signals(this_program, signals_fd);
    return signals_fd;
}

static const struct rdma_cm_id *slow; // whose address may take longer

int __real_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
                             int milliseconds);
int __wrap_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
                             int milliseconds);
int __wrap_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
                             int milliseconds) {
    if (milliseconds > RESOLVE_MAX_MS)
        slow = id;
    else if (slow == id)
        slow = NULL;
    return __real_rdma_resolve_addr(id, from, to, milliseconds);
}

int __real_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int __wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int __wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param) {
    if (slow == id)
        report("a program with several peers waits too long for the address of one");
    return __real_rdma_connect(id, param);
}
