// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_report.cc -- rpma-perf with a client that measures nothing and reports the fixed results
// below

#include "failure.hh"
#include "plot.hh"

#include <csignal>
#include <fstream>
#include <sys/resource.h>

static Result with(Result result, std::initializer_list<uint64_t> latencies_ns) {
    for (const uint64_t latency : latencies_ns)
        result.latency.add(latency);
    return result;
}

// The operations have their index in operations[]: flush-persistent, read, send and connect.
static std::vector<Result> make_results() {
    std::vector<Result> results;
    results.push_back(with({.operation = 3,
                            .size = 64,
                            .operations = 3,
                            .seconds = 0.0015,
                            .client_cpu_ns = 3000,
                            .server_cpu_ns = 1500,
                            .served = 3,
                            .is_verified = true,
                            .interval_ns = 500000,
                            .intervals = {{1, 400, 400}, {1, 3000, 3000}, {1, 500, 500}}},
                           {400, 3000, 500}));
    results.push_back(with({.operation = 1,
                            .size = 1 << 20,
                            .operations = 1,
                            .seconds = 0.5,
                            .client_cpu_ns = 4000,
                            .server_operations = 3,
                            .server_ns = 250000000},
                           {1000, 5000000}));
    results.push_back(with({.operation = 5,
                            .size = 4096,
                            .operations = 1000000,
                            .seconds = 2.5,
                            .client_cpu_ns = 12500000000,
                            .gaps = {{1000000000, 4400000000}, {2250000000, 100400000}},
                            .interval_ns = 1000000000,
                            .intervals = {{400000, 240000000000, 900000}, {}, {1, 5000, 5000}}},
                           {1000004, 600000}));
    results.push_back({.operation = 10});
    return results;
}

// True if main() has executed its steps before the client.
static bool is_prepared() {
    rlimit descriptors;
    sigset_t blocked;
    return getrlimit(RLIMIT_NOFILE, &descriptors) == 0 &&
           descriptors.rlim_cur == descriptors.rlim_max &&
           sigprocmask(SIG_BLOCK, nullptr, &blocked) == 0 && sigismember(&blocked, SIGTERM);
}

int run_client(const Options &options) {
    const Side server = {"1.4.0", "7.3", "rxe1", "devdax", !options.plan.both};
    const auto report = begin_report(options, describe_side("mlx5_0", "dram"), server);
    const std::vector<Result> results = make_results();
    show_progress(options.plan, 7, 1.25);
    if (!is_prepared() || options.address == "nowhere")
        fail("the server is unreachable");
    for (const Result &result : results)
        report->add(result);
    report->add_interval(options.plan, 500000000, 1500000000, 3000);
    report->end();
    std::ofstream(options.plot) << plot(results);
    return EXIT_SUCCESS;
}
