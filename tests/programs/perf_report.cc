// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_report.cc -- prints results that stand here as rpma-perf would:
// perf_report table|json|plot

#include "report.hh"

#include "plot.hh"

#include <cstdio>
#include <cstring>

static Result with(Result result, std::initializer_list<uint64_t> latencies_ns) {
    for (const uint64_t latency : latencies_ns)
        result.latency.add(latency);
    return result;
}

// By numbers of operations[]: flush-persistent, read and send.
static std::vector<Result> make_results() {
    std::vector<Result> results;
    results.push_back(with({.operation = 3,
                            .size = 64,
                            .operations = 3,
                            .seconds = 0.0015,
                            .client_cpu_ns = 3000,
                            .server_cpu_ns = 1500,
                            .served = 3,
                            .is_verified = true},
                           {400, 3000, 500}));
    results.push_back({.operation = 1,
                       .size = 1 << 20,
                       .operations = 1,
                       .seconds = 0.5,
                       .client_cpu_ns = 4000,
                       .server_operations = 3,
                       .server_ns = 250000000});
    results.push_back(with({.operation = 5,
                            .size = 4096,
                            .operations = 1000000,
                            .seconds = 2.5,
                            .client_cpu_ns = 12500000000,
                            .gaps = {{1000000000, 400000000}, {2250000000, 100400000}},
                            .interval_ns = 1000000000},
                           {1000004, 600000}));
    results.back().intervals = {{400000, 240000000000, 900000}, {}, {1, 5000, 5000}};
    return results;
}

int main(int argc, char *argv[]) {
    const Side client = {"1.3.0", "6.1", "mlx5_0", "dram", false};
    const Side server = {"1.4.0", "7.3", "rxe1", "devdax", true};
    Options options;
    options.address = "192.0.2.1";
    options.port = "7471";
    options.json = argc > 1 && !std::strcmp(argv[1], "json");
    options.plan = {.depth = 16,
                    .batch = 4,
                    .prepared = 1,
                    .elements = 2,
                    .inline_size = 64,
                    .connections = 3,
                    .threads = 5,
                    .verify = 1,
                    .region = 1 << 20,
                    .random = 1,
                    .reads = 30,
                    .both = 1,
                    .rate = 1000};
    options.limits.duration_ns = 2500000000;
    options.shows_intervals = options.json;
    options.reconnect = true;
    const std::vector<Result> results = make_results();
    const auto report = begin_report(options, client, server);
    for (const Result &result : results)
        report->add(result);
    report->add_interval(options.plan, 500000000, 1500000000, 3000);
    report->end();
    if (argc > 1 && !std::strcmp(argv[1], "plot"))
        fputs(plot(results).c_str(), stdout);
}
