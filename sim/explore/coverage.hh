// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// coverage.hh -- what a schedule has met, and the summary of all schedules

#pragma once

#include <bitset>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "../model/weaknesses.hh"
#include "choices.hh"
#include "trace.hh"

struct Exploration;

struct Coverage {
    static constexpr size_t KINDS = 32, CALLS = 128, NO_CALL = CALLS - 1;
    std::bitset<CALLS> calls;          // that programs have made: indices of sim::call_names()
    std::bitset<32> statuses;          // of completions: enum ibv_wc_status
    std::bitset<KINDS * CALLS> faults; // kind * CALLS + the call at which one occurred
    sim::Weaknesses weaknesses;        // with an effect
    // Of the calls, completions, weaknesses and faults, in their order.
    uint64_t digest = 0;
    uint64_t turns = 0, threads = 0; // threads: also the clock
    uint64_t posts = 0;              // of sends
    bool overlapped = false;         // two clients ran at the same time
    bool waited = false;             // programs wait forever after the last fault
    void add_to_digest(uint64_t value) {
        digest ^= value;
        digest = sim::next_random(digest);
    }
};
static_assert(std::is_trivially_copyable_v<Coverage>); // processes send it to each other

// The result of a schedule.
struct Result {
    std::string finding;     // empty: none
    std::vector<Step> steps; // empty unless the schedule is traced
    std::vector<sim::Choice> choices;
    std::vector<sim::Point> points;   // of Chooser
    uint64_t faults = 0, reached = 0; // reached: of the choices to replay
    Coverage coverage;
};

// Shows what "nothing found" means.
class Summary {
  public:
    explicit Summary(const Exploration &exploration) : exploration_(exploration) {}
    void add(const Result &result, bool is_order_only);
    std::string first_line() const; // without the findings
    std::string text() const;
    uint64_t schedules() const { return schedules_; }
    bool overlapped() const { return overlapped_; }

  private:
    struct Row {
        uint64_t schedules = 0;
        std::bitset<Coverage::CALLS> calls;
        std::bitset<32> statuses;
    };
    std::string table() const;
    std::string missed() const;
    std::string bound() const;

    const Exploration &exploration_;
    uint64_t schedules_ = 0, with_faults_ = 0, waited_ = 0, order_only_ = 0, bounded_ = 0;
    uint64_t least_turns_ = UINT64_MAX, most_turns_ = 0, threads_ = 0;
    bool overlapped_ = false;
    std::bitset<Coverage::CALLS> calls_;
    std::bitset<32> statuses_;
    sim::Weaknesses weaknesses_;
    std::set<uint64_t> digests_;
    Row without_faults_, rows_[Coverage::KINDS];
};
