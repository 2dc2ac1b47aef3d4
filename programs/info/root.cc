// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// root.cc -- where the files of the kernel are, in the installed program

#include "info.hh"

std::string kernel_files() {
    return "";
}
