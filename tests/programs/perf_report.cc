// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_report.cc -- prints results that stand here as rpma-perf would: perf_report table|json

#include "report.hh"

#include <cstring>

// By numbers of operations[]: flush-persistent, read and send.
static const struct {
    Result result;
    std::vector<uint64_t> latencies; // in ns
} results[] = {
    {{.operation = 3,
      .size = 64,
      .operations = 3,
      .seconds = 0.0015,
      .client_cpu_ns = 3000,
      .server_cpu_ns = 1500,
      .is_verified = true},
     {400, 3000, 500}},
    {{.operation = 1, .size = 1 << 20}, {}},
    {{.operation = 5,
      .size = 4096,
      .operations = 1000000,
      .seconds = 2.5,
      .client_cpu_ns = 12500000000},
     {1000004, 600000}},
};

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
                    .verify = 1};
    options.limits.duration_ns = 2500000000;
    const auto report = begin_report(options, client, server);
    for (const auto &[plain, latencies] : results) {
        Result result = plain;
        for (const uint64_t latency : latencies)
            result.latency.add(latency);
        report->add(result);
    }
    report->end();
}
