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

static void discard_message(rpma_log_level, const char *, int, const char *, const char *,
                            ...) {}

int main(int argc, char *argv[]) {
    try {
        const Options options = read_options(argc, argv);
        // A failure is shown with its message, so syslog does not get it.
        (void)rpma_log_set_function(discard_message);
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
