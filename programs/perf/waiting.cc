// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// waiting.cc -- waits of the main thread, the only one that receives signals, and the clocks

#include "waiting.hh"

#include "failure.hh"

#include <algorithm>
#include <ctime>
#include <unistd.h>

static volatile sig_atomic_t stopping;
static sigset_t wait_mask;

// Does not set SA_RESTART, so that a signal interrupts waits.
static void set_handler(int number, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigaction(number, &action, nullptr);
}

void signals_init() {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &blocked, &wait_mask);
    for (int number : {SIGINT, SIGTERM}) {
        sigdelset(&wait_mask, number);
        set_handler(number, [](int) { stopping = 1; });
    }
    set_handler(WAKE_SIGNAL, [](int) {});
    set_handler(SIGPIPE, SIG_IGN);
}

bool is_stopping() {
    return stopping != 0;
}

Epoll::Epoll() : fd(epoll_create1(EPOLL_CLOEXEC)) {
    if (fd < 0)
        fail("epoll_create1: {}", strerror(errno));
}

Epoll::~Epoll() {
    close(fd);
}

void Epoll::add(int readable, uint64_t number) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = number;
    if (epoll_ctl(fd, EPOLL_CTL_ADD, readable, &event) != 0)
        fail("epoll_ctl: {}", strerror(errno));
}

std::span<epoll_event> wait_for(const Epoll &epoll, std::span<epoll_event> events,
                                int milliseconds) {
    const int found = epoll_pwait(epoll.fd, events.data(), static_cast<int>(events.size()),
                                  milliseconds, &wait_mask);
    return events.first(static_cast<size_t>(std::max(found, 0)));
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
