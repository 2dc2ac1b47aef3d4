// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// messages.cc -- several messages of a socket by one call
//
// In a file of their own, the loops call the functions of the first library that replaces them,
// which is that of "rdma-sim explore" if there is one.

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <sys/socket.h>

#include "preload.hh"

namespace {

constexpr unsigned MOST = 1024; // UIO_MAXIOV

uint64_t monotonic_time() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return nanoseconds(time);
}

} // namespace

EXPORTED int sendmmsg(int fd, mmsghdr *messages, unsigned count, int flags) {
    count = std::min(count, MOST);
    for (unsigned i = 0; i < count; i++) {
        const ssize_t sent = sendmsg(fd, &messages[i].msg_hdr, flags);
        if (sent < 0)
            return i > 0 ? static_cast<int>(i) : -1;
        messages[i].msg_len = static_cast<unsigned>(sent);
    }
    return static_cast<int>(count);
}
// recvmmsg(2), BUGS: the time counts only after each datagram.
EXPORTED int recvmmsg(int fd, mmsghdr *messages, unsigned count, int flags, timespec *timeout) {
    const uint64_t begin = timeout == nullptr ? 0 : monotonic_time();
    const bool waits_for_one = (flags & MSG_WAITFORONE) != 0;
    flags &= ~MSG_WAITFORONE;
    count = std::min(count, MOST);
    for (unsigned i = 0; i < count; i++) {
        const ssize_t received = recvmsg(fd, &messages[i].msg_hdr, flags);
        if (received < 0)
            return i > 0 ? static_cast<int>(i) : -1;
        messages[i].msg_len = static_cast<unsigned>(received);
        if (waits_for_one)
            flags |= MSG_DONTWAIT;
        if (timeout != nullptr && monotonic_time() - begin >= nanoseconds(*timeout))
            return static_cast<int>(i + 1);
    }
    return static_cast<int>(count);
}
