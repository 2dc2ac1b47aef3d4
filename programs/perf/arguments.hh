// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// arguments.hh -- the command line

#pragma once

#include "plan.hh"

#include <string>
#include <vector>

constexpr int EXIT_USAGE = 2;
constexpr uint64_t DURATION_MAX_S = 86400;
constexpr uint64_t INTERVALS_MAX = 100000;

// How much a connection executes; count 0: until the duration has passed.
struct Limits {
    uint64_t warmup = 100;
    uint64_t count = 0;
    uint64_t duration_ns = 3000000000;
    uint64_t interval_ns = 0; // reports at such intervals; 0: none
};

struct Options {
    bool is_server = false;
    std::string address, port = "7204";
    std::string memory;                 // path; "": DRAM
    bool direct_write = false;          // direct write to memory, as stated by the operator
    uint64_t limit = UINT64_C(1) << 30; // bytes of DRAM for the loads of all clients
    bool once = false;
    bool json = false;
    bool shows_intervals = false;
    bool reconnect = false; // reconnects after a break, instead of failing
    std::string plot;       // path; "": none
    std::vector<uint64_t> operations;
    bool includes_all =
        false; // "all": the client skips operations that the server does not allow
    std::vector<uint64_t> sizes;
    Plan plan; // operation and size vary
    Limits limits;

    // The plans of an operation: one for each size; atomics and connections have one plan.
    std::vector<Plan> plans(uint64_t operation) const;
};

// Ends the program with one line if the arguments are wrong.
Options read_options(int argc, char *argv[]);

// listener.cc and measurement.cc: return the exit status; throw a Failure if they fail.
int run_server(const Options &options);
int run_client(const Options &options);
