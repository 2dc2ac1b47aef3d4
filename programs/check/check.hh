// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// check.hh -- the parts of rpma-check that have no state

#pragma once

#include "visible.hh"

#include <cstdio>
#include <fmt/format.h>
#include <infiniband/verbs.h>
#include <librpma.hpp>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// Keeps the order of the members.
using Json = nlohmann::ordered_json;

enum ExitStatus { EXIT_AS_EXPECTED = 0, EXIT_DIFFERENCES = 1, EXIT_NOT_RUN = 2 };

// Ends the program with this line.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <class... Values>
[[noreturn]] void fail(fmt::format_string<Values...> format, Values &&...values) {
    throw Failure(fmt::format(format, std::forward<Values>(values)...));
}

// Prints one line on standard error.
inline void print_error(const std::string &line) {
    (void)std::fputs(fmt::format("rpma-check: {}\n", one_line(line)).c_str(), stderr);
}

// What follows the path of memory that is refused.
constexpr char NOT_PERSISTENT[] = "is not persistent memory: a device DAX, or a file on a file "
                                  "system that is mounted with dax";

// command_line.cc
struct Options {
    std::string address, port = "7206", report, memory, power_cut, verify;
    bool is_server = false, once = false, json = false, port_down = false, no_flush = false;
};
// Exits after --help, --version and wrong arguments.
Options read_options(int argc, char *argv[]);

// power_cut*.cc: the client, the server, and the comparison after the power cut
int write_records(const Options &options);
int serve_records(const Options &options);
int verify_records(const Options &options);
