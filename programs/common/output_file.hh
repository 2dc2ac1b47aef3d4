// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// output_file.hh -- a file that is complete, or has its old content

#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>

// Written to a new file next to the old one, which it then replaces. What is not a regular
// file, such as a device, is written directly.
class OutputFile {
  public:
    // Throws if the file cannot be written: before the first load, not after the
    // last.
    explicit OutputFile(const std::string &path);
    OutputFile(OutputFile &&) = delete;
    ~OutputFile(); // removes an incomplete file

    void write(std::string_view text);

  private:
    [[noreturn]] void fail_to_write() const;

    std::string path_, temporary_; // "": the path is written directly
    int fd_;
};
