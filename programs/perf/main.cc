// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.cc -- rpma-perf: measures how fast this network reaches the memory of another machine

#include "failure.hh"
#include "ledger.hh"
#include "report.hh"
#include "sides.hh"
#include "waiting.hh"

int main(int argc, char *argv[]) {
    try {
        const Options options = read_options(argc, argv);
        rpma::keep_log_lines();
        signals_init();
        if (options.is_check())
            return check_ledger(options.ledger, options.memory);
        return options.is_server ? run_server(options) : run_client(options);
    } catch (const std::exception &why) {
        clear_progress();
        complain(why.what());
        return EXIT_FAILURE;
    }
}
