// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// workers.hh -- runs schedules, several at a time in processes

#pragma once

#include <functional>
#include <list>
#include <optional>
#include <sys/types.h>

#include "coverage.hh"
#include "enumeration.hh"

using RunJob = std::function<Result(const Job &)>;

class Workers {
  public:
    // `prepare` returns the function that runs jobs: in a process of its own if `count` is
    // more than 1.
    Workers(unsigned count, Exploration &exploration, const std::function<RunJob()> &prepare);
    // Calls `work` with the function of each process.
    ~Workers();
    Workers(const Workers &) = delete;
    Workers &operator=(const Workers &) = delete;
    bool has_idle() const;
    bool runs_before(uint64_t number) const; // returns true if a job before it runs
    void start(Job job);
    std::pair<uint64_t, Result> wait(); // for a job that runs

  private:
    struct Worker {
        pid_t pid = -1;
        int fd = -1;
        std::optional<Job> job{};
    };
    Exploration &exploration_;
    RunJob run_{}; // in this process
    std::list<Worker> workers_;
};
