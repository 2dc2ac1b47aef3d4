// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// waiting.cc -- waits of the main thread, the only one that receives signals, and the clocks

#include "waiting.hh"

#include <algorithm>
#include <ctime>

static volatile sig_atomic_t stopping;
static sigset_t while_waiting;

// Without SA_RESTART, so that a signal interrupts waits.
static void handle(int number, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigaction(number, &action, nullptr);
}

void signals_init() {
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &held, &while_waiting);
    for (int number : {SIGINT, SIGTERM}) {
        sigdelset(&while_waiting, number);
        handle(number, [](int) { stopping = 1; });
    }
    handle(WAKE_SIGNAL, [](int) {});
    handle(SIGPIPE, SIG_IGN);
}

bool is_stopping() {
    return stopping != 0;
}

int wait_for(std::span<pollfd> fds, int milliseconds) {
    const timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000L};
    return std::max(ppoll(fds.data(), fds.size(), &time, &while_waiting), 0);
}

bool wait_readable(int fd, int milliseconds) {
    pollfd poll{fd, POLLIN, 0};
    return wait_for({&poll, 1}, milliseconds) > 0;
}

static uint64_t clock_ns(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 +
           static_cast<uint64_t>(time.tv_nsec);
}

uint64_t now_ns() {
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t cpu_ns() {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}
