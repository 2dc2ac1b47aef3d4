// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// standard_descriptors.hh -- a program that starts with closed standard descriptors

#pragma once

#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

// Called first in main(): otherwise a device gets the number of a closed standard descriptor,
// and the output of the program goes to the device. /dev/null is opened in the wrong mode, so
// that a read or write of the closed descriptor still fails, with EBADF.
inline void occupy_standard_descriptors() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            exit(EXIT_FAILURE);
}
