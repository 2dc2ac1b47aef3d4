// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// chooser.cc -- the choices of a schedule: random ones of a seed, or recorded ones

#include "chooser.hh"

#include <algorithm>

Chooser::Chooser(uint64_t seed) : is_random_(true), state_(seed), weak_state_(~seed) {
    faults_left_ = static_cast<uint32_t>(sim::next_random(state_) % 3);
    for (size_t kind = 0; kind < KINDS; kind++)
        limits_[kind] =
            (uint64_t{1} << 32) / (uint64_t{2} << sim::next_random(state_of(kind)) % 4);
    limits_[DELAY] += limits_[DELAY] / 2;
    limits_[FAULT] /= 16;
    limits_[POWER] = uint64_t{1} << 31;
}

uint32_t Chooser::choose(Kind kind, size_t options, const sim::ExploredFaults *faults) {
    const bool is_fault = kind == FAULT || kind == POWER;
    if (options == 0)
        return 0;
    // Each kind counts its own positions, so that an omitted choice does not shift those of
    // others.
    const uint32_t position = positions_[kind]++ * KINDS + kind;
    if (!is_random_) {
        const auto found = std::ranges::find(choices, position, &sim::Choice::position);
        if (found == choices.end() || found->option > options)
            return 0;
        reached++;
        return found->option;
    }
    uint64_t &state = state_of(kind);
    if (sim::next_random(state) >> 32 >= limits_[kind] || (is_fault && faults_left_ == 0))
        return 0;
    faults_left_ -= is_fault;
    const uint64_t random = sim::next_random(state);
    const uint64_t option = faults != nullptr ? faults->choose(random) : random % options;
    choices.push_back({position, static_cast<uint32_t>(option) + 1});
    return choices.back().option;
}
