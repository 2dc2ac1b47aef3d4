// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// executable.hh -- the executables into which the dynamic linker does not load the fabric's
// libraries

#pragma once

#include <climits>
#include <link.h>

namespace sim {

constexpr int MAX_INTERPRETERS = 4; // nested scripts, as in Linux

struct Executable {
    bool is_elf;
    char interpreter[PATH_MAX]; // of a script, or the dynamic linker; empty: none
    // Why the program would run outside the fabric; NULL: it would not, or the file is no ELF.
    const char *problem;
};
void read_executable(int fd, Executable &executable);

} // namespace sim
