// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// waiting.hh -- waits of the main thread, the only one that receives signals, and the clocks

#pragma once

#include <csignal>
#include <cstdint>
#include <span>
#include <sys/epoll.h>

constexpr int PEER_TIMEOUT_MS = 60000; // a peer that sends nothing for this long is lost
constexpr int WAKE_SIGNAL = SIGUSR1;   // interrupts a worker's wait for completions

// SIGINT and SIGTERM stop the program. They are blocked except while wait_for() waits.
void signals_init();
bool is_stopping();

// Descriptors to wait for, each with a number. Closing a descriptor removes it.
struct Epoll {
    Epoll();
    ~Epoll();
    Epoll(Epoll &&) = delete;
    void add(int readable, uint64_t number) const;

    const int fd;
};

// Returns the readable descriptors, like epoll_wait(); none after a timeout or a signal.
std::span<epoll_event> wait_for(const Epoll &epoll, std::span<epoll_event> events,
                                int milliseconds);

uint64_t now_ns();
// Returns true if this much time has passed.
inline bool is_past(uint64_t since_ns, int milliseconds) {
    return now_ns() - since_ns >= static_cast<uint64_t>(milliseconds) * 1000000;
}
// The processor time of all threads of this process, in user and kernel mode.
uint64_t cpu_ns();
