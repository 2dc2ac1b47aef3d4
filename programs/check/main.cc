// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.cc -- rpma-check: asks a device whether it does what the manual and the library promise

#include <csignal>

#include "run.hh"
#include "server.hh"
#include "standard_descriptors.hh"
#include "wire.hh"

static void discard_message(rpma_log_level, const char *, int, const char *, const char *,
                            ...) {}

static int run_check(const Options &options) {
    if (!options.verify.empty())
        return verify_records(options);
    // Keeps failures out of syslog, because the program prints them.
    (void)rpma_log_set_function(discard_message);
    if (!options.power_cut.empty())
        return options.is_server ? serve_records(options) : write_records(options);
    Helper helper; // before the first use of a device
    handle_stop_signals();
    (void)std::signal(SIGPIPE, SIG_IGN);
    return options.is_server ? run_server(options, helper) : run_client(options, helper);
}

int main(int argc, char *argv[]) {
    occupy_standard_descriptors();
    int status = EXIT_NOT_RUN;
    try {
        status = run_check(read_options(argc, argv));
    } catch (const std::exception &why) {
        print_error(why.what());
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        print_error("cannot write to the standard output");
        return EXIT_NOT_RUN;
    }
    return status;
}
