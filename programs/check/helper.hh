// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// helper.hh -- a process that forks others: it has not used a device, so that its children may

#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "check.hh"

class Helper {
  public:
    Helper();
    Helper(const Helper &) = delete;
    ~Helper();

    // Runs a case of sim/tests/conformance in a process of its own, at most for some seconds.
    // Returns {"output": lines, "end": "" or why the process ended early}.
    Json run_case(const std::string &name, size_t index, const std::string &address);
    // Starts a process that accepts one connection and sends its region. Returns its port.
    std::string start_victim(const std::string &address);
    void kill_victim();

  private:
    Json request(const Json &what);

    int socket_ = -1;
    pid_t child_ = -1;
};

size_t case_count(const std::string &name);
