// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// pipes.cc -- for "rdma-sim explore": calls that move bytes between descriptors, and those of
// preadv2(2) and pwritev2(2) that do so at no offset

#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>

#include "control.hh"

namespace {

using namespace control;

// Moves bytes from one descriptor to another one, by a function that does not wait.
template <class Move>
ssize_t move(int from, int to, unsigned flags, const char *function, Move move_now) {
    const bool waits = (flags & SPLICE_F_NONBLOCK) == 0;
    if (waits && (!wait_for(from, POLLIN, 0, function) || !wait_for(to, POLLOUT, 0, function)))
        return -1;
    const ssize_t result = move_now();
    descriptors_changed();
    yield_after(function);
    return result;
}

} // namespace

EXPORTED ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size,
                        unsigned flags) {
    const auto move_now = [&] {
        return REAL(splice)(from, from_offset, to, to_offset, size, flags);
    };
    return is_on() ? move(from, to, flags, "splice", move_now) : move_now();
}
EXPORTED ssize_t tee(int from, int to, size_t size, unsigned flags) {
    const auto move_now = [&] { return REAL(tee)(from, to, size, flags); };
    return is_on() ? move(from, to, flags, "tee", move_now) : move_now();
}

#define AT_NO_OFFSET(name, without)                                                           \
    EXPORTED ssize_t name(int fd, const iovec *parts, int count, off64_t offset, int flags) { \
        return is_on() && offset == -1 ? without(fd, parts, count)                            \
                                       : REAL(name)(fd, parts, count, offset, flags);         \
    }
AT_NO_OFFSET(preadv2, readv)
AT_NO_OFFSET(preadv64v2, readv)
AT_NO_OFFSET(pwritev2, writev)
AT_NO_OFFSET(pwritev64v2, writev)
