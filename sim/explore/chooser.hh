// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// chooser.hh -- the choices of a schedule: random ones of a seed, or recorded ones

#pragma once

#include "../model/faults.hh"
#include "choices.hh"

// The choices of a schedule: random ones, or recorded ones.
class Chooser {
  public:
    // The seed determines the number of faults, and how likely other options than the default
    // are.
    explicit Chooser(uint64_t seed);
    explicit Chooser(std::vector<sim::Choice> recorded) : choices(std::move(recorded)) {}
    enum Kind {
        TURN,
        DELAY,
        FAULT,
        POWER,
        WEAKNESS,
        KINDS = WEAKNESS + (int)sim::Weakness::COUNT
    };
    // Returns an option from 1 to `options`, or 0 for the default.
    uint32_t choose(Kind kind, size_t options) { return choose(kind, options, nullptr); }
    uint32_t choose(sim::Weakness weakness, size_t options) {
        return choose(static_cast<Kind>(WEAKNESS + static_cast<int>(weakness)), options);
    }
    // Returns NULL for no fault.
    const sim::Fault *choose(Kind kind, const sim::ExploredFaults &faults) {
        const uint32_t option = choose(kind, faults.size(), &faults);
        return option == 0 ? nullptr : &faults[option - 1];
    }

    std::vector<sim::Choice> choices; // the recorded choices, or those to replay
    size_t reached = 0;               // how many of those to replay were made
  private:
    // The choices of weaknesses do not change the others.
    uint64_t &state_of(size_t kind) { return kind < WEAKNESS ? state_ : weak_state_; }
    // `faults`: the options, which have weights; NULL: all options are alike.
    uint32_t choose(Kind kind, size_t options, const sim::ExploredFaults *faults);
    bool is_random_ = false;
    uint64_t state_ = 0, weak_state_ = 0; // weak_state_: of the weaknesses
    uint32_t positions_[KINDS] = {}, faults_left_ = 0;
    uint64_t limits_[KINDS] = {}; // probabilities in units of 2^-32
};
