// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// output.hh -- the output of programs with the host before each line (--prefix)

#pragma once

#include <list>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

// Pipes of programs, whose lines are printed to the outputs of rdma-sim. Only close_all() reads
// more than one part of each pipe, and only what an output accepts is written to it, so that
// neither a fast program nor a slow reader delays the fabric.
class PrefixedOutput {
  public:
    PrefixedOutput() = default;
    ~PrefixedOutput();
    PrefixedOutput(const PrefixedOutput &) = delete;
    PrefixedOutput &operator=(const PrefixedOutput &) = delete;
    // Returns the write end of a new pipe, whose lines are printed to descriptor `to`: 1 or 2.
    int add(unsigned host, int to);
    void add_events(std::vector<pollfd> &events) const;
    void serve();     // reads and writes what needs no waiting; throws an Exit if a write fails
    void close_all(); // reads the rest, after the programs have ended
    bool is_written() const { return sinks_[0].pending.empty() && sinks_[1].pending.empty(); }

  private:
    struct Sink {
        int fd;
        const char *name;
        std::string pending{};
        unsigned unfinished = 0; // the pipe whose line has no end yet, or 0
    };
    struct Pipe {
        int fd;
        unsigned number, host;
        Sink *sink;
        std::string line{}; // without an end
    };
    bool read_part(Pipe &pipe); // returns false after the last part
    static void take(Pipe &pipe, std::string_view part);
    static void print(const Pipe &pipe, std::string_view text, bool ends_line);
    static void end_line(Pipe &pipe);
    static void write_pending(Sink &sink);

    Sink sinks_[2] = {{STDOUT_FILENO, "standard output"}, {STDERR_FILENO, "standard error"}};
    std::list<Pipe> pipes_;
    unsigned count_ = 0;
};
