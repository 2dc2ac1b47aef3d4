// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.cc -- rpma-check: asks a device whether it does what the manual and the library promise

#include "check.hh"
#include "standard_descriptors.hh"

#include <cstdio>

int main(int argc, char *argv[]) {
    occupy_standard_descriptors();
    try {
        const Options options = read_options(argc, argv);
        if (!options.verify.empty())
            return verify_records(options);
        if (!options.power_cut.empty())
            return options.is_server ? serve_records(options) : write_records(options);
        fail("not implemented");
    } catch (const std::exception &why) {
        (void)std::fprintf(stderr, "rpma-check: %s\n", one_line(why.what()).c_str());
        return EXIT_NOT_RUN;
    }
}
