// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma_perf.cc -- rpma-perf: measures access to the memory of another machine

#include "failure.hh"
#include "report.hh"
#include "standard_descriptors.hh"
#include "waiting.hh"

#include <sys/resource.h>

// Each connection needs a descriptor. The soft limit of 1024 exists for users of select(2)
// only.
static void raise_descriptor_limit() {
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void discard_message(rpma_log_level, const char *, int, const char *, const char *,
                            ...) {}

int main(int argc, char *argv[]) {
    occupy_standard_descriptors();
    try {
        const Options options = read_options(argc, argv);
        // Keeps failures out of syslog, because the program prints them.
        (void)rpma_log_set_function(discard_message);
        signals_init();
        raise_descriptor_limit();
        return options.is_server ? run_server(options) : run_client(options);
    } catch (const std::exception &why) {
        clear_progress();
        print_error(why.what());
        return EXIT_FAILURE;
    }
}
