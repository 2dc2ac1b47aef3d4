// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// report.hh -- the results, as a table or as JSON

#pragma once

#include "arguments.hh"
#include "histogram.hh"

#include <memory>

inline double us_of(uint64_t ns) {
    return static_cast<double>(ns) / 1000;
}

// The software, device and memory of a side.
struct Side {
    std::string librpma, kernel, device;
    std::string memory;        // kind: "dram", "file", "fsdax" or "devdax"
    bool direct_write = false; // direct write to memory, as stated by the server's operator
    bool has_atomics = false;  // the device
};
Side describe_side(const std::string &device, const std::string &memory);

struct Gap { // time without service; begin_ns is relative to the measurement
    uint64_t begin_ns = 0, length_ns = 0;
};

struct Result {
    uint64_t operation = 0, size = 0;
    uint64_t operations = 0; // completed operations of all connections
    double seconds = 0;
    uint64_t client_cpu_ns = 0, server_cpu_ns = 0;
    std::vector<Gap> gaps{}; // gaps of service, with --reconnect
    uint64_t served = 0;     // operations covered by the server's processor time
    bool is_verified = false;
    uint64_t server_operations = 0, server_ns = 0; // results of the server's load, with --both
    Histogram latency{};
    uint64_t interval_ns = 0;
    std::vector<Interval> intervals{};

    const Operation &op() const { return ::operations[operation]; }
    double rate() const; // operations per second, of both directions
    double server_rate() const;
    double mib_per_second() const;
    double gbit_per_second() const;
    double us(double part) const; // the latency's quantile in microseconds
    double client_cpu_us() const; // processor time per operation
    double server_cpu_us() const;
    uint64_t without_service_ns() const;
    // Returns true if the data is persistent, as stated by the server's operator.
    bool is_persistent() const { return op().is_persistent(); }
};

class Report {
  public:
    virtual ~Report() = default;
    virtual void add(const Result &result) = 0;
    // Reports the operations of a running load between two times.
    virtual void add_interval(const Plan &, uint64_t /*from*/, uint64_t /*to*/,
                              uint64_t /*operations*/) {}
    virtual void end() {}
};
// The table prints a line for each result, JSON one object at the end.
std::unique_ptr<Report> begin_report(const Options &options, const Side &client,
                                     const Side &server);

// Shows the progress, on a terminal only, until the next line of the table.
void show_progress(const Plan &plan, uint64_t operations_done, double seconds);
void clear_progress();
