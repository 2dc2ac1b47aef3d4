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
#include <utility>

namespace {

constexpr uint64_t CERTAIN = uint64_t{1} << 32;
constexpr int64_t RAISED = 1 << 15;                                // above all that are chosen
constexpr uint32_t NUMBERS_OF_FAULTS[] = {0, 0, 1, 1, 2, 2, 3, 4}; // of a schedule

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
    : is_random_(true), uses_priorities_(plan.uses_priorities(seed)),
      precedes_posts_(plan.precedes_posts(seed)) {
    for (size_t kind = 0; kind < KINDS; kind++) {
        uint64_t mixed = seed;
        states_[kind] = sim::next_random(mixed) + kind;
        limits_[kind] = CERTAIN / (uint64_t{2} << sim::next_random(states_[kind]) % 4);
    }
    faults_left_ =
        NUMBERS_OF_FAULTS[sim::next_random(states_[FAULT]) % std::size(NUMBERS_OF_FAULTS)];
    limits_[DELAY] += limits_[DELAY] / 2;
    // As many faults as there may be, on average, but more or fewer in one schedule.
    limits_[FAULT] = std::min((CERTAIN / 2 << sim::next_random(states_[FAULT]) % 4) *
                                  faults_left_ / std::max<uint64_t>(plan.turns, 1),
                              CERTAIN / 8);
    if (precedes_posts_) {
        faults_left_ = std::max<uint32_t>(faults_left_, 1);
        limits_[FAULT] = std::min(CERTAIN * faults_left_ / plan.posts, CERTAIN / 2);
    }
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

Chooser::Chooser(std::vector<sim::Choice> recorded) : choices(std::move(recorded)) {
    for (const sim::Choice &each : choices) {
        options_[each.position] = each.option;
        uses_priorities_ |= Place::of(each).kind == PRIORITY;
    }
    // A thread that has got several priorities without a turn in between has the last one.
    std::erase_if(choices, [this](const sim::Choice &each) {
        return options_[each.position] != each.option;
    });
}

uint32_t Chooser::recorded(uint64_t position) const {
    const auto found = options_.find(position);
    return found == options_.end() ? 0 : found->second;
}

void Chooser::add_fault() {
    if (is_random_ && limits_[FAULT] != 0)
        faults_left_ = std::max<uint32_t>(faults_left_, 1);
}

bool Chooser::is_other_than_default(Kind kind, uint64_t limit) {
    return sim::next_random(states_[kind]) >> 32 < limit;
}

uint32_t Chooser::choose(Kind kind, size_t options, const sim::ExploredFaults *faults,
                         Window window, unsigned posting) {
    const bool is_fault = kind == FAULT || kind == POWER;
    if (options == 0)
        return 0;
    const uint64_t position = next_position(kind);
    if (records_points)
        points.push_back({position, 1, static_cast<uint32_t>(options)});
    if (!is_random_) {
        const uint32_t option = recorded(position);
        const bool is_valid = option != 0 && option <= options;
        reached += is_valid;
        return is_valid ? option : 0;
    }
    uint64_t limit = limits_[kind];
    if (kind == FAULT)
        limit = !precedes_posts_ ? limit_in(window, limit) : posting != 0 ? limit : 0;
    if (!is_other_than_default(kind, limit) || (is_fault && faults_left_ == 0))
        return 0;
    faults_left_ -= is_fault;
    const uint64_t random = sim::next_random(states_[kind]);
    uint64_t option = faults != nullptr ? faults->choose(random) : random % options;
    if (window >= Window::RECOVERY && (random >> 63) == 0)
        option = faults->choose("power-off", random).value_or(option);
    else if (kind == FAULT && precedes_posts_ && random >> 62 != 0)
        option = faults->choose("freeze", random, posting).value_or(option);
    choices.push_back({position, static_cast<uint32_t>(option) + 1});
    return choices.back().option;
}

Chooser::Thread &Chooser::thread(uint64_t number) {
    threads_.resize(std::max<size_t>(threads_.size(), number + 1));
    return threads_[number];
}

void Chooser::add_call() {
    const uint64_t before = thread(last_).calls;
    threads_[last_] = {.calls = before + 1};
}

uint64_t Chooser::place_of_priority(unsigned number) {
    return Place{PRIORITY, number, thread(number).calls, thread(number).waits}.position();
}

// Gives threads that were created meanwhile a priority. By default, the clock has the lowest
// one.
void Chooser::add_priorities(unsigned most) {
    while (priorities_.size() <= most)
        priorities_.push_back(
            is_random_
                ? 1 + static_cast<int64_t>(sim::next_random(states_[TURN]) % priorities_.size())
            : priorities_.empty() ? -RAISED
                                  : 0);
}

void Chooser::raise(unsigned thread) {
    if (!uses_priorities_)
        return;
    add_priorities(thread);
    priorities_[thread] = RAISED + raised_++;
}

void Chooser::set_priority(unsigned thread, int64_t value) {
    priorities_[thread] = value;
    changed_.push_back({thread, value});
    if (is_random_)
        choices.push_back({place_of_priority(thread), option_of(value)});
}

// Returns the first one with the highest priority.
unsigned Chooser::highest_of(std::span<const unsigned> ready) const {
    return *std::ranges::max_element(ready, {},
                                     [&](unsigned each) { return priorities_[each]; });
}

unsigned Chooser::highest(std::span<const unsigned> ready) {
    add_priorities(std::ranges::max(ready));
    for (const unsigned each : ready) {
        if (std::exchange(thread(each).is_prioritized, true))
            continue;
        if (is_random_ && thread(each).calls + thread(each).waits == 0)
            set_priority(each, priorities_[each]);
        if (const uint32_t option = recorded(place_of_priority(each))) {
            reached++;
            set_priority(each, int64_t{option} - option_of(0));
        }
    }
    for (size_t i = 0; i < change_points_.size(); i++)
        if (change_points_[i] == turns_)
            set_priority(highest_of(ready), -static_cast<int64_t>(i) - 1);
    return highest_of(ready);
}

Chooser::Turn Chooser::choose_turn(std::span<const unsigned> ready) {
    changed_.clear();
    const Place place = {TURN, last_, thread(last_).calls, thread(last_).indices[TURN]};
    const Turn turn = choose_thread(ready);
    if (records_turns)
        points.push_back({place.position(), turn.thread + 1, turn.thread + 1});
    turns_++;
    thread(turn.thread).waits++;
    thread(turn.thread).is_prioritized = false;
    if (turn.thread != 0)
        last_ = turn.thread;
    return turn;
}

Chooser::Turn Chooser::choose_thread(std::span<const unsigned> ready) {
    const unsigned usual = uses_priorities_ ? highest(ready) : ready[0];
    if (ready.size() < 2)
        return {usual, usual};
    const uint64_t position = next_position(TURN);
    if (records_points)
        for (const unsigned each : ready.subspan(1))
            points.push_back({position, each + 1, each + 1});
    if (!is_random_) {
        const uint32_t option = recorded(position);
        const bool is_valid =
            option != 0 && std::ranges::find(ready, option - 1) != ready.end();
        reached += is_valid;
        return {is_valid ? option - 1 : usual, usual};
    }
    if (uses_priorities_ || !is_other_than_default(TURN, limits_[TURN]))
        return {usual, usual};
    const unsigned other = ready[1 + sim::next_random(states_[TURN]) % (ready.size() - 1)];
    choices.push_back({position, other + 1});
    return {other, usual};
}
