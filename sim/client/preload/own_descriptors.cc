// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// own_descriptors.cc -- descriptors of the fabric's libraries are not open to the program: a
// daemon that closes all descriptors closes its own

#include <cerrno>
#include <climits>
#include <unistd.h>

#include "../own_descriptors.hh"
#include "preload.hh"

bool rdma_sim_descriptors[OWN_DESCRIPTORS];

namespace {

bool is_own(unsigned fd) {
    return fd < OWN_DESCRIPTORS && rdma_sim_descriptors[fd];
}

} // namespace

EXPORTED int close(int fd) {
    if (!is_own(static_cast<unsigned>(fd)))
        return REAL(close)(fd);
    errno = EBADF;
    return -1;
}
EXPORTED int close_range(unsigned first, unsigned last, int flags) noexcept {
    for (unsigned fd = first; fd <= last && fd < OWN_DESCRIPTORS; fd++) {
        if (!is_own(fd))
            continue;
        if (fd > first && REAL(close_range)(first, fd - 1, flags) != 0)
            return -1;
        if (fd == last)
            return 0;
        first = fd + 1;
    }
    return REAL(close_range)(first, last, flags);
}
EXPORTED void closefrom(int lowest) noexcept {
    (void)close_range(lowest < 0 ? 0 : static_cast<unsigned>(lowest), UINT_MAX, 0);
}
EXPORTED int dup3(int from, int to, int flags) noexcept {
    if (!is_own(static_cast<unsigned>(to)))
        return REAL(dup3)(from, to, flags);
    errno = EBADF;
    return -1;
}
EXPORTED int dup2(int from, int to) noexcept {
    if (!is_own(static_cast<unsigned>(to)))
        return REAL(dup2)(from, to);
    errno = EBADF;
    return -1;
}
