// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// chooser.cc -- the choices of a schedule: those of a seed, or recorded ones
//
// Priorities with change points: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized
// scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010. The program with the
// highest priority continues; at DEPTH - 1 random turns it gets the lowest one.

#include "chooser.hh"

#include <algorithm>
#include <iterator>

namespace {

constexpr uint64_t CERTAIN = uint64_t{1} << 32;
constexpr uint32_t FAULTS[] = {0, 0, 1, 1, 2, 2, 3, 4}; // of a schedule

// The probability of a fault in a window.
uint64_t limit_in(Chooser::Window window, uint64_t limit) {
    switch (window) {
    case Chooser::Window::NOT_PERSISTENT:
        return std::min(8 * limit, CERTAIN / 4);
    case Chooser::Window::RECOVERY:
        return std::max(4 * limit, CERTAIN / 8);
    case Chooser::Window::IN_FLIGHT:
        return 2 * limit;
    case Chooser::Window::NONE:
        return limit / 2;
    }
    return limit;
}

} // namespace

std::optional<SearchOption> find_search(std::string_view text) {
    constexpr std::string_view LIMITED = "exhaustive:";
    constexpr std::pair<const char *, Search> KINDS[] = {{"mixed", Search::MIXED},
                                                         {"random", Search::RANDOM},
                                                         {"pct", Search::PRIORITIES},
                                                         {"exhaustive", Search::EXHAUSTIVE}};
    if (text.starts_with(LIMITED))
        return SearchOption{Search::EXHAUSTIVE, text.substr(LIMITED.size())};
    for (const auto &[name, kind] : KINDS)
        if (text == name)
            return SearchOption{kind, std::nullopt};
    return std::nullopt;
}

bool Plan::uses_priorities(uint64_t seed) const {
    return search == Search::PRIORITIES ||
           (search == Search::MIXED && (seed % 4 == 2 || is_order_only(seed)));
}

bool Plan::is_order_only(uint64_t seed) const {
    return search == Search::PRIORITIES ? seed % 2 == 0
                                        : search == Search::MIXED && seed % 8 == 0;
}

Chooser::Chooser(uint64_t seed, const Plan &plan)
    : is_random_(true), uses_priorities_(plan.uses_priorities(seed)) {
    for (size_t kind = 0; kind < KINDS; kind++) {
        uint64_t mixed = seed;
        states_[kind] = sim::next_random(mixed) + kind;
        limits_[kind] = CERTAIN / (uint64_t{2} << sim::next_random(states_[kind]) % 4);
    }
    faults_left_ = FAULTS[sim::next_random(states_[FAULT]) % std::size(FAULTS)];
    limits_[DELAY] += limits_[DELAY] / 2;
    // As many faults as there may be, on average, but more or fewer in one schedule.
    limits_[FAULT] = std::min((CERTAIN / 2 << sim::next_random(states_[FAULT]) % 4) *
                                  faults_left_ / std::max<uint64_t>(plan.turns, 1),
                              CERTAIN / 8);
    limits_[POWER] = limits_[START] = CERTAIN / 2;
    if (plan.is_order_only(seed))
        std::ranges::fill(limits_, 0);
    if (!uses_priorities_)
        return;
    uint64_t &state = states_[TURN];
    for (size_t i = 0; i < plan.threads; i++)
        priorities_.insert(priorities_.begin() +
                               static_cast<ptrdiff_t>(sim::next_random(state) % (i + 1)),
                           static_cast<int64_t>(i) + 1);
    const uint64_t depth =
        plan.is_order_only(seed) ? Plan::DEPTH : 2 + sim::next_random(state) % 4;
    for (uint64_t i = 1; i < depth; i++)
        change_points_.push_back(sim::next_random(state) % Plan::most_turns(plan.turns));
}

Chooser::Window Chooser::window_of(const Moment &moment) {
    constexpr uint64_t RECOVERY = 20; // turns after a start
    if (moment.has_unpersisted)
        return Window::NOT_PERSISTENT;
    if (moment.restarted_at != 0 && moment.turn < moment.restarted_at + RECOVERY)
        return Window::RECOVERY;
    return moment.has_timer || (moment.posted_at != 0 && moment.posted_at == moment.turn)
               ? Window::IN_FLIGHT
               : Window::NONE;
}

uint32_t Chooser::recorded(uint32_t position, size_t options) {
    const auto found = std::ranges::find(choices, position, &sim::Choice::position);
    if (found == choices.end() || found->option > options)
        return 0;
    reached++;
    return found->option;
}

void Chooser::record(uint32_t position, uint32_t option) {
    if (option != 0)
        choices.push_back({position, option});
}

void Chooser::add_fault() {
    if (is_random_ && limits_[FAULT] != 0)
        faults_left_ = std::max<uint32_t>(faults_left_, 1);
}

uint32_t Chooser::choose(Kind kind, size_t options, const sim::ExploredFaults *faults,
                         Window window) {
    const bool is_fault = kind == FAULT || kind == POWER;
    if (options == 0)
        return 0;
    const uint32_t position = next_position(kind);
    if (records_points)
        points.push_back({position, static_cast<uint32_t>(options)});
    if (!is_random_)
        return recorded(position, options);
    uint64_t &state = states_[kind];
    const uint64_t limit = kind == FAULT ? limit_in(window, limits_[kind]) : limits_[kind];
    if (sim::next_random(state) >> 32 >= limit || (is_fault && faults_left_ == 0))
        return 0;
    faults_left_ -= is_fault;
    const uint64_t random = sim::next_random(state);
    uint64_t option = faults != nullptr ? faults->choose(random) : random % options;
    if (window >= Window::RECOVERY && (random >> 63) == 0)
        option = faults->choose("power-off", random).value_or(option);
    record(position, static_cast<uint32_t>(option) + 1);
    return choices.back().option;
}

void Chooser::add_priorities(unsigned most) {
    while (priorities_.size() <= most) // another thread
        priorities_.push_back(
            1 + static_cast<int64_t>(sim::next_random(states_[TURN]) % priorities_.size()));
}

void Chooser::raise(unsigned thread) {
    if (!uses_priorities_)
        return;
    add_priorities(thread);
    priorities_[thread] = std::ranges::max(priorities_) + 1;
}

uint32_t Chooser::choose_turn(std::span<const unsigned> ready) {
    const uint64_t turn = turns_++;
    if (!uses_priorities_)
        return choose(TURN, ready.size() - 1);
    add_priorities(std::ranges::max(ready));
    const auto highest = [&] {
        return std::ranges::max_element(ready, {},
                                        [&](unsigned each) { return priorities_[each]; });
    };
    for (size_t i = 0; i < change_points_.size(); i++)
        if (change_points_[i] == turn)
            priorities_[*highest()] = -static_cast<int64_t>(i);
    if (ready.size() < 2)
        return 0;
    const auto option = static_cast<uint32_t>(highest() - ready.begin());
    record(next_position(TURN), option);
    return option;
}
