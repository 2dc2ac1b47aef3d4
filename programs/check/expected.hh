// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// expected.hh -- the expected results of a device, and the severity of differences

#pragma once

#include "check.hh"

struct Expected {
    std::string question, result, source;
    bool is_common; // no other device has another result
};

// The name in sim/device/devices.tsv of a device with a driver and a transport; "" if unknown.
std::string device_name(const std::string &driver, const std::string &transport);
// The attributes and results of a device; of an unknown one those that all devices share. They
// may depend on the kernel.
std::vector<Expected> expected_of(const std::string &device, const std::string &kernel);
// Returns true if a result agrees with an expected one: "any", or several between " | ".
bool agrees(const std::string &result, const std::string &expected);
std::string severity_of(const Expected &expected, const std::string &found);
