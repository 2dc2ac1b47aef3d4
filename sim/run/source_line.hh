// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// source_line.hh -- the lines of a program's source in which it calls the fabric

#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

// Addresses are recorded while their process exists, and resolved later, all at once.
class SourceLines {
  public:
    // `libraries`: the directory of the fabric's libraries, whose callers are recorded.
    explicit SourceLines(std::string libraries) : libraries_(std::move(libraries)) {}
    // Returns a number for at(), or 0 if no address is in a file. `addresses`: the return
    // addresses of a thread, the innermost first. The process exists, and does not run.
    size_t add(pid_t pid, std::span<const uint64_t> addresses);
    // `offset`: as in the symbol table of the file.
    size_t add(std::string file, uint64_t offset);
    // Asks addr2line(1) for the lines of these places.
    void resolve(std::span<const size_t> numbers);
    // Returns "FILE:LINE" of the innermost call of the program, or of a
    // library that it uses; without debug information, "PROGRAM+0xOFFSET". Empty for 0.
    std::string at(size_t number) const;
    // Returns what the user can do to get a line in place of an offset; empty: it is a line.
    std::string hint(size_t number) const;

  private:
    struct Address {
        std::string file;
        uint64_t offset;                                   // as in the symbol table of the file
        auto operator<=>(const Address &) const = default; // NOLINT(modernize-use-nullptr)
    };
    // The callers, the innermost first, from the first one outside of the fabric's libraries.
    // `program`: index of the first one in the executable, or the number of callers.
    struct Call {
        std::vector<Address> callers;
        size_t program;
        auto operator<=>(const Call &) const = default; // NOLINT(modernize-use-nullptr)
    };
    size_t number_of(const Call &call);

    std::string libraries_;
    std::map<Call, size_t> numbers_;
    std::vector<Call> calls_;
    std::map<Address, std::string> lines_; // of those that have one
    bool has_tool_ = true;
};
