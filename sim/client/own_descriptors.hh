// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// own_descriptors.hh -- descriptors of the fabric's libraries, which the program cannot close

#pragma once

#include <cstring>
#include <fcntl.h>
#include <unistd.h>

constexpr int FIRST_OWN_DESCRIPTOR = 800, OWN_DESCRIPTORS = 1024;

extern "C" {
// In the library that rdma-sim preloads, whose close() uses it.
extern __attribute__((weak, visibility("default"))) bool rdma_sim_descriptors[OWN_DESCRIPTORS];
}

inline void mark(int fd, bool is_own) {
    if (&rdma_sim_descriptors && fd >= 0 && fd < OWN_DESCRIPTORS)
        rdma_sim_descriptors[fd] = is_own;
}
// Returns a descriptor that replaces this one: a program may close all of its own, and those
// that it opens get the lowest numbers, which it may replace by dup2().
inline int kept(int fd) {
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN_DESCRIPTOR);
    if (moved >= 0) {
        close(fd);
        fd = moved;
    }
    mark(fd, true);
    return fd;
}
inline void close_kept(int fd) {
    mark(fd, false);
    close(fd);
}
// In a child, which has copies of the parent's.
inline void mark_none() {
    if (&rdma_sim_descriptors)
        memset(rdma_sim_descriptors, 0, sizeof(rdma_sim_descriptors));
}
