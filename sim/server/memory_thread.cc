// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "memory_thread.hh"

#include "../model/memory.hh"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/mman.h>

namespace sim {

char state_of(int pid) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *const opened = fopen(path, "re");
    if (!opened && errno != ENOENT && errno != ESRCH)
        throw Failure(std::string(path) + ": " + strerror(errno));
    if (!opened)
        return 'X';
    text[fread(text, 1, sizeof(text) - 1, opened)] = '\0';
    fclose(opened);
    // After the name, which may contain any character. proc_pid_stat(5): the ninth field has
    // the flags of Linux, include/linux/sched.h.
    const char *const rest = strrchr(text, ')');
    constexpr unsigned PF_EXITING = 4;
    char state;
    unsigned flags;
    if (!rest || sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2 ||
        strchr("ZX", state) || (flags & PF_EXITING))
        return 'X';
    return state;
}

MemoryThread::~MemoryThread() {
    __atomic_store_n(&mailbox_.state, Mailbox::CLOSED, __ATOMIC_SEQ_CST);
    futex(&mailbox_.state, FUTEX_WAKE, 1, nullptr);
    munmap(&mailbox_, sizeof(mailbox_));
}

// A process that executes another program keeps its number, but has closed the socket.
bool MemoryThread::is_running() const {
    struct pollfd closed {
        socket_, POLLRDHUP, 0
    };
    return !strchr("TtX", state_of(pid_)) && poll(&closed, 1, 0) == 0;
}

bool MemoryThread::execute(Mailbox::Kind kind, const iovec *ranges, size_t count) {
    constexpr timespec INTERVAL = {0, 10'000'000};
    uint32_t state = __atomic_load_n(&mailbox_.state, __ATOMIC_RELAXED);
    is_stopped_ = is_stopped_ && !is_running();
    if (is_stopped_ || state == Mailbox::CLOSED)
        return false;
    mailbox_.kind = kind;
    mailbox_.count = static_cast<uint32_t>(count);
    memcpy(mailbox_.ranges, ranges, count * sizeof(*ranges));
    __atomic_store_n(&mailbox_.state, Mailbox::REQUESTED, __ATOMIC_SEQ_CST);
    futex(&mailbox_.state, FUTEX_WAKE, 1, nullptr);
    while ((state = __atomic_load_n(&mailbox_.state, __ATOMIC_ACQUIRE)) != Mailbox::DONE) {
        // The process has overwritten the state.
        if (state != Mailbox::REQUESTED && state != Mailbox::TAKEN)
            return false;
        if (!futex(&mailbox_.state, FUTEX_WAIT, state, &INTERVAL) || errno != ETIMEDOUT ||
            is_running())
            continue;
        // A thread that was stopped in the middle would execute a later request too early.
        const uint32_t after = state == Mailbox::REQUESTED ? Mailbox::EMPTY : Mailbox::CLOSED;
        is_stopped_ = __atomic_compare_exchange_n(&mailbox_.state, &state, after, false,
                                                  __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
        if (is_stopped_)
            return false;
    }
    return true;
}

ssize_t MemoryThread::access(const iovec *ranges, size_t count, char *data, size_t bytes,
                             bool is_write) {
    if (is_write)
        memcpy(mailbox_.data, data, bytes);
    if (!execute(is_write ? Mailbox::WRITE : Mailbox::READ, ranges, count))
        return -1;
    const size_t done = std::min<size_t>(mailbox_.done, bytes);
    if (!is_write)
        memcpy(data, mailbox_.data, done);
    return static_cast<ssize_t>(done);
}

int MemoryThread::check(const iovec &range, bool is_written) {
    return execute(is_written ? Mailbox::CHECK_WRITABLE : Mailbox::CHECK, &range, 1)
               ? mailbox_.error
               : EACCES;
}

} // namespace sim
