// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// finding.hh -- the file of --save and --replay

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../model/weaknesses.hh"
#include "choices.hh"

struct SavedFile {
    std::string digest;
    std::string content{}; // of persistent memory, unless it is too large
    bool has_content = false;
};

struct Finding {
    std::string directory, text; // text: the finding
    std::vector<std::string> arguments;
    std::map<std::string, std::string> variables;
    std::map<std::string, std::string> secrets; // digests of the values
    std::map<std::string, std::string> files;   // programs and libraries: digests
    std::map<std::string, SavedFile> pmem;      // by the argument of --pmem
    uint64_t seed = 0;
    std::vector<sim::Choice> choices;
    sim::Weaknesses strong{}; // those that the finding does not need, and that are off
};

std::string digest_of(std::string_view bytes);
std::string digest_of_file(const std::string &path); // empty: it cannot be read
// Adds the working directory and the environment of this process.
void add_environment(Finding &finding);
// Restores both. Returns the differences, as text.
std::vector<std::string> restore_environment(const Finding &finding);
void add_pmem(Finding &finding, const std::string &path, const std::string &content);
void write_finding(const std::string &path, const Finding &finding); // throws an Exit
Finding read_finding(const std::string &path);                       // throws an Exit
