// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// info_cxl.cc -- prints what rpma-info states about the memory of a device DAX, from its
// directory in sysfs, which is below $MACHINE

#include <cstdio>
#include <cstdlib>

#include "info.hh"

std::string kernel_files() {
    return std::getenv("MACHINE");
}

int main(int argc, char **argv) {
    memory memory;
    if (argc != 2)
        return 2;
    memory.kind = memory_kind::devdax;
    memory.look_at_regions(argv[1]);
    std::puts(json{{"cxl", cxl(memory)}}.dump().c_str());
    return 0;
}
