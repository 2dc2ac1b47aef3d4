// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// nonblocking.hh -- descriptors whose events a program polls

#pragma once

#include <cerrno>
#include <fcntl.h>
#include <system_error>

inline void make_nonblocking(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        throw std::system_error(errno, std::generic_category(), "fcntl");
}
