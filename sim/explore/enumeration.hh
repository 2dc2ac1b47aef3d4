// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// enumeration.hh -- --search exhaustive: all schedules with one choice, then with two ...

#pragma once

#include <map>
#include <optional>

#include "choices.hh"

struct Job {
    uint64_t number = 0;              // of jobs, in the order of their start; or a seed
    std::vector<sim::Choice> choices; // of an enumeration
};

// Each schedule is one before it, and a choice after its last one: so none is enumerated twice.
// A schedule with a finding is not continued.
class Enumeration {
  public:
    explicit Enumeration(uint64_t most) : most_(most) {} // choices of a schedule
    // Returns nothing if there is none, or none until a job has completed.
    std::optional<Job> next();
    // `points`: all that the job could have chosen.
    void completed(uint64_t number, const std::vector<sim::Point> &points, bool has_finding);
    std::string text() const; // what was enumerated

  private:
    struct Node {
        std::vector<sim::Choice> choices;
        std::vector<sim::Point> points; // after the last choice
    };
    std::optional<Job> child();

    static constexpr uint64_t MAX_POINTS = 1 << 23; // 128 MiB
    const uint64_t most_;
    uint64_t number_ = 0, points_ = 0, of_level_ = 0, complete_level_ = 0;
    size_t level_ = 0; // how many choices the jobs have
    bool is_begun_ = false, is_truncated_ = false, is_complete_ = false;
    std::vector<Node> parents_{};
    size_t parent_ = 0, point_ = 0;
    uint32_t option_ = 0;
    std::map<uint64_t, std::vector<sim::Choice>> running_{};
    std::map<uint64_t, Node> children_{}; // by their jobs: the order does not depend on time
};
