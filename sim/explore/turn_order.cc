// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "turn_order.hh"
#include "limits.hh"

#include <algorithm>

namespace {

constexpr uint64_t MAX_TURNS = 1'000; // without time, or while another program could continue

} // namespace

// Programs may repeat requests until something late arrives, or until another one has slept.
std::optional<uint64_t> TurnOrder::due_time(uint64_t now, uint64_t next_timer) const {
    if (timeless_turns_ < MAX_TURNS)
        return std::nullopt;
    return std::min(next_timer, now + std::ranges::max(LATE));
}

TurnOrder::Turn TurnOrder::choose(Chooser &chooser, std::vector<unsigned> ready,
                                  bool has_timer) {
    passed_over_.resize(
        std::max<size_t>(passed_over_.size(), size_t{std::ranges::max(ready)} + 1));
    const auto starved = std::ranges::max_element(
        ready, {}, [this](unsigned thread) { return passed_over_[thread]; });
    if (passed_over_[*starved] >= MAX_TURNS) {
        chooser.raise(*starved);
        std::rotate(ready.begin(), starved, ready.end());
    }
    if (has_timer)
        ready.push_back(0);
    const auto [thread, instead] = chooser.choose_turn(ready);
    if (thread == 0)
        return {thread, instead, chooser.changed()};
    timeless_turns_++;
    for (const unsigned each : ready)
        passed_over_[each]++;
    passed_over_[thread] = 0;
    return {thread, instead, chooser.changed()};
}
