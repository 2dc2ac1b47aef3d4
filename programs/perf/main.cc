// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.cc -- rpma-perf: measures access to the memory of another machine

#include "failure.hh"
#include "ledger.hh"
#include "report.hh"
#include "sides.hh"
#include "waiting.hh"

#include <sys/resource.h>

// Each connection has a descriptor, and the usual limit of 1024 serves old uses of select(2).
static void take_descriptors() {
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char *argv[]) {
    try {
        const Options options = read_options(argc, argv);
        rpma::keep_log_lines();
        signals_init();
        take_descriptors();
        if (options.is_check())
            return check_ledger(options.ledger, options.memory);
        return options.is_server ? run_server(options) : run_client(options);
    } catch (const std::exception &why) {
        clear_progress();
        complain(why.what());
        return EXIT_FAILURE;
    }
}
