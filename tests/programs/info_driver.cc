// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// info_driver.cc -- prints the facts that rpma-info states about a driver on a transport

#include <cstdio>

#include "info.hh"

std::string kernel_files() {
    return "";
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    json device = {{"driver", argv[1]}, {"transport", argv[2]}};
    add_traps(device);
    std::puts(device.dump().c_str());
    return 0;
}
