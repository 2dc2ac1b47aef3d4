// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// info_parts.cc -- prints the report of rpma-info about a driver on a transport, or about a
// device DAX whose sysfs directory is below $MACHINE; usage: info_parts DRIVER TRANSPORT |
// DIRECTORY

#include <cstdio>
#include <cstdlib>

#include "info.hh"

std::string kernel_root() {
    return std::getenv("MACHINE");
}

rpma::peer_cfg::served served_by(const rpma::peer &) {
    return {};
}

int main(int argc, char **argv) {
    Json stated;
    if (argc == 3) {
        stated = {{"driver", argv[1]}, {"transport", argv[2]}};
        add_driver(stated);
    } else {
        memory memory;
        memory.kind = MemoryKind::devdax;
        memory.find_region(argv[1]);
        stated = {{"cxl", cxl(memory)}};
    }
    std::puts(stated.dump().c_str());
    return 0;
}
