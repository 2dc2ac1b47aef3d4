// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// report_test.cc -- compares the devices of reports with profiles: report_test [FILE NAME]... A
// line names each report whose device differs from the profile in a member other than the
// names, the transport and the sizing, which a report does not have.

#include <cstdio>
#include <cstring>

#include "../../run/sim.hh"

void refuse(const char *format, ...) {
    throw Exit{EXIT_USAGE, format};
}

std::string printable(std::string_view text) {
    return std::string(text);
}

int main(int argc, char *argv[]) {
    for (int i = 1; i + 1 < argc; i += 2) {
        sim_profile found = *read_report(argv[i]);
        const sim_profile &wanted = *sim_find_profile(argv[i + 1]);
        found.name = wanted.name;
        found.driver = wanted.driver;
        found.prefix = wanted.prefix;
        found.transport = wanted.transport;
        found.sizing = wanted.sizing;
        for (size_t at = 0; at < sizeof(found); at++)
            if (reinterpret_cast<const char *>(&found)[at] !=
                reinterpret_cast<const char *>(&wanted)[at]) {
                printf("%s: byte %zu is not that of %s. A report is that of the first device "
                       "of its "
                       "driver and transport in devices.tsv\n",
                       argv[i], at, argv[i + 1]);
                break;
            }
    }
    return 0;
}
