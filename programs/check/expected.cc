// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// expected.cc -- the expected results of a device, and the severity of differences

#include "expected.hh"

#include <cstdio>
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
#include "attributes.inc"
#include "expected.inc"
};

// The kernels of which rows have results: those of OLD are for the device NAME-6.1.
constexpr int OLD[] = {6, 1}, NEW[] = {7, 3};
constexpr char OLD_SUFFIX[] = "-6.1";

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

static bool is_before(const std::string &kernel, const int (&other)[2], int least) {
    int major = 0, minor = 0;
    if (std::sscanf(kernel.c_str(), "%d.%d", &major, &minor) != 2)
        return false;
    return std::pair(major, minor) < std::pair(other[0], other[1] + least);
}

std::vector<Expected> expected_of(const std::string &device, const std::string &kernel) {
    const bool is_old = is_before(kernel, OLD, 1), is_between = is_before(kernel, NEW, 0);
    std::vector<Expected> found;
    std::map<std::string, size_t> places;
    std::map<std::string, std::set<std::string>> results;
    for (const auto &row : RESULTS) {
        const std::string name = row.device;
        if (!name.ends_with(OLD_SUFFIX))
            results[row.question].insert(row.result);
        const bool is_of_old = name == device + OLD_SUFFIX;
        if (name != "*" && name != device && !(is_of_old && (is_old || is_between)))
            continue;
        const bool is_alternative = is_of_old && !is_old; // it is not known when it changed
        if (is_alternative && !places.contains(row.question))
            continue;
        const auto [place, is_new] = places.emplace(row.question, found.size());
        if (is_new)
            found.push_back({row.question, row.result, row.source, false});
        else if (is_alternative)
            found[place->second].result += fmt::format(" | {}", row.result);
        else
            found[place->second] = {row.question, row.result, row.source, false};
    }
    for (Expected &each : found) {
        each.is_common = results[each.question].size() == 1;
        if (device.empty() && !each.is_common)
            each.result = "any";
    }
    return found;
}

bool agrees(const std::string &result, const std::string &expected) {
    const std::string all = fmt::format(" | {} | ", expected);
    return all.find(" | any | ") != std::string::npos ||
           all.find(fmt::format(" | {} | ", result)) != std::string::npos;
}

// A failure that is reported as a success, or the reverse.
static bool changes_success(const std::string &expected, const std::string &found) {
    return expected.find("opcode") != found.find("opcode");
}

// What no driver has recorded, and devices do differently, shows at most that a page is wrong.
std::string severity_of(const Expected &expected, const std::string &found) {
    const std::string &question = expected.question;
    const bool is_completion = question.ends_with(": completion"),
               is_recorded = !expected.source.starts_with("not recorded");
    if (is_completion ? !changes_success(expected.result, found)
                      : !is_recorded && !expected.is_common)
        return PAGE;
    for (const auto &[pattern, severity] : SEVERITIES)
        if (fnmatch(pattern, question.c_str(), 0) == 0)
            return severity;
    return PAGE;
}
