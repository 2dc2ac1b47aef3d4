// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// turn_order.hh -- which program has the next turn

#pragma once

#include "chooser.hh"

#include <optional>
#include <vector>

// Programs may repeat requests, for example to get a lock: none repeats them for ever while
// time or another program does not continue.
class TurnOrder {
  public:
    struct Turn {
        unsigned thread;                               // 0: the clock
        unsigned instead;                              // of this thread, which is the default
        const std::vector<Chooser::Priority> &changed; // before the turn
    };
    // Returns the time until which the clock advances before the next turn, if it must.
    std::optional<uint64_t> due_time(uint64_t now, uint64_t next_timer) const;
    // `ready`: the numbers of threads, from 1, in the order of their turns.
    Turn choose(Chooser &chooser, std::vector<unsigned> ready, bool has_timer);
    void time_passes() { timeless_turns_ = 0; }

  private:
    uint64_t timeless_turns_ = 0;
    std::vector<uint64_t> passed_over_; // by thread: turns of others in which it was ready
};
