// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// waiting.c -- waits of the main thread, the only one that receives signals

#include "waiting.h"

#include "failure.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t stopping;
static sigset_t while_waiting;

static void stop(int number) {
    (void)number;
    stopping = 1;
}

static void wake(int number) {
    (void)number;
}

// Without SA_RESTART, so that a signal interrupts waits.
static void handle(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(number, &action, NULL);
}

void signals_init(void) {
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &held, &while_waiting);
    sigdelset(&while_waiting, SIGINT);
    sigdelset(&while_waiting, SIGTERM);
    handle(SIGINT, stop);
    handle(SIGTERM, stop);
    handle(WAKE_SIGNAL, wake);
    handle(SIGPIPE, SIG_IGN);
}

bool is_stopping(void) {
    return stopping;
}

int wait_for(struct pollfd *fds, nfds_t count, int milliseconds) {
    struct timespec time = {.tv_sec = milliseconds / 1000,
                            .tv_nsec = milliseconds % 1000 * 1000000L};
    int ready = ppoll(fds, count, &time, &while_waiting);
    return ready < 0 ? 0 : ready;
}

bool wait_readable(int fd, int milliseconds) {
    struct pollfd poll = {.fd = fd, .events = POLLIN};
    return wait_for(&poll, 1, milliseconds) > 0;
}

bool make_nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
        return fail("fcntl: %s", strerror(errno));
    return true;
}

static uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t now_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}
uint64_t cpu_ns(void) {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}
