// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// expected.cc -- the expected results of a device, and the severity of differences

#include "expected.hh"

#include <fnmatch.h>
#include <map>
#include <set>

namespace {

// The tables that tables.py makes.
struct {
    const char *driver, *transport, *name;
} const DEVICES[] = {
#include "devices.inc"
};

struct {
    const char *question, *device, *result, *source;
} const RESULTS[] = {
#include "expected.inc"
};

struct {
    const char *device, *property, *value, *source;
} const ATTRIBUTES[] = {
#include "attributes.inc"
};

constexpr char RISK[] = "data at risk", WORKED_AROUND[] = "the library works around it",
               PAGE[] = "page is wrong";

// The first pattern that matches a question, an attribute or a promise.
struct {
    const char *pattern, *severity;
} const SEVERITIES[] = {
    {"completions: *", RISK},
    {"exchange [0-9]*", RISK}, // no result: a program would wait for ever
    {"refusal: *", PAGE},
    {"leak: *", PAGE},
    {"*: data", RISK},
    {"*, data", RISK},
    {"*data*process", RISK},
    {"flush of writes: *", RISK},
    {"path: *", RISK},
    {"order: *", RISK},
    {"full queue: each message arrives once", RISK},
    {"full queue: no further message", RISK},
    {"full queue: completions", RISK},
    {"batch: messages *", RISK},
    {"concurrent: aligned 8 bytes are whole", RISK},
    {"inline data: *", RISK},
    {"atomics: *unchanged", RISK},
    {"atomics: *exact*", RISK},
    {"*remote *: completion", RISK}, // a failed operation without an error
    {"*local *: completion", RISK},
    {"*: next", RISK},
    {"killed peer: event", RISK},
    {"silent peer: status", RISK},
    {"fences_writes", RISK},
    {"checks_*", RISK},
    {"overrun_is_fatal", RISK},
    {"*CQ overrun*", RISK},
    {"unsignaled: *", RISK},
    {"has_native_*", WORKED_AROUND},
    {"has_qp_ex", WORKED_AROUND},
    {"has_odp", WORKED_AROUND},
    {"attr.max_*", WORKED_AROUND},
    {"max_recv_sge", WORKED_AROUND},
    {"device: *", WORKED_AROUND},
    {"mr: *", WORKED_AROUND},
    {"cq: *entries", WORKED_AROUND},
    {"qp: no extended queue pair", WORKED_AROUND},
    {"qp: native operations", WORKED_AROUND},
    {"built: *", WORKED_AROUND},
    {"flush*", WORKED_AROUND},
    {"qp: *full", WORKED_AROUND},
    {"full queue: status", WORKED_AROUND},
};

} // namespace

std::string device_name(const std::string &driver, const std::string &transport) {
    for (const auto &row : DEVICES)
        if (driver == row.driver && transport == row.transport)
            return row.name;
    return "";
}

std::vector<Expected> expected_results(const std::string &device) {
    std::vector<Expected> found;
    std::map<std::string, size_t> places;
    for (const auto &row : RESULTS) {
        const bool is_common = row.device == std::string("*");
        if (!is_common && row.device != device && !device.empty())
            continue;
        const std::string result = is_common || row.device == device ? row.result : "any";
        const auto [place, is_new] = places.emplace(row.question, found.size());
        if (is_new)
            found.push_back({row.question, result, row.source});
        else
            found[place->second] = {row.question, result, row.source};
    }
    return found;
}

std::vector<Expected> expected_attributes(const std::string &device) {
    std::vector<Expected> found;
    for (const auto &row : ATTRIBUTES)
        if (row.device == device)
            found.push_back({row.property, row.value, row.source});
    return found;
}

bool agrees(const std::string &result, const std::string &expected) {
    if (expected == "any" || result == expected)
        return true;
    return (" | " + expected + " | ").find(" | " + result + " | ") != std::string::npos;
}

std::string severity_of(const std::string &question) {
    for (const auto &[pattern, severity] : SEVERITIES)
        if (fnmatch(pattern, question.c_str(), 0) == 0)
            return severity;
    return PAGE;
}
