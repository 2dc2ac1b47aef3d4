// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// expected.hh -- the expected results of a device, and the severity of differences

#ifndef RPMA_CHECK_EXPECTED_HH
#define RPMA_CHECK_EXPECTED_HH 1

#include "check.hh"

struct Expected {
    std::string question, result, source;
};

// The name in contract/devices.tsv of a device with a driver and a transport; "" if unknown.
std::string device_name(const std::string &driver, const std::string &transport);
// The results of questions, and the properties, of a device; of an unknown one those that all
// devices share.
std::vector<Expected> expected_results(const std::string &device);
std::vector<Expected> expected_attributes(const std::string &device);
// Returns true if a result agrees with an expected one: "any", or several between " | ".
bool agrees(const std::string &result, const std::string &expected);
std::string severity_of(const std::string &question);

#endif
