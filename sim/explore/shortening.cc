// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// shortening.cc -- removes the choices of a schedule that its finding does not need

#include "shortening.hh"
#include "limits.hh"

#include <algorithm>
#include <map>

namespace {

constexpr unsigned MAX_MOVES = 60; // of a fault to an earlier call

constexpr uint64_t MAX_RUNS = 1000, MAX_TRIES = 300; // of shorter schedules; of one removal
constexpr size_t MAX_LAST = 500;                     // turns, in which the mistake is
constexpr size_t FEW = 4; // choices for which no other schedule is tried

class Shortening {
  public:
    Shortening(std::vector<sim::Choice> choices, const Fails &fails)
        : choices_(Chooser(std::move(choices)).choices), fails_(fails) {}
    std::vector<sim::Choice> run();

  private:
    bool still_fails(const std::vector<sim::Choice> &choices) {
        if (tries_ == 0 || runs_ == 0)
            return false;
        tries_--;
        runs_--;
        return fails_(choices, nullptr);
    }
    bool replace_if_fails(std::vector<sim::Choice> fewer);
    void remove_end();
    template <class GroupOf> void remove_groups(GroupOf group_of);
    void remove();
    std::vector<sim::Choice> with_held_threads(const std::vector<sim::Point> &turns,
                                               size_t last, bool is_order_only) const;
    bool hold_threads();
    void keep_only_fault();

    std::vector<sim::Choice> choices_;
    const Fails &fails_;
    uint64_t tries_ = 0, runs_ = MAX_RUNS;
};

bool Shortening::replace_if_fails(std::vector<sim::Choice> fewer) {
    if (!still_fails(fewer))
        return false;
    choices_ = std::move(fewer);
    return true;
}

// Removes the choices after the moment of the mistake: a finding is often its late effect.
void Shortening::remove_end() {
    size_t passes = 0; // so many choices are too few
    while (passes + 1 < choices_.size() && tries_ > 0) {
        const size_t middle = passes + (choices_.size() - passes) / 2;
        std::vector<sim::Choice> fewer = choices_;
        fewer.resize(middle);
        if (!replace_if_fails(std::move(fewer)))
            passes = middle;
    }
}

// Removes all choices of a group, the largest group first.
template <class GroupOf> void Shortening::remove_groups(GroupOf group_of) {
    std::map<uint64_t, size_t> sizes;
    for (const sim::Choice &each : choices_)
        sizes[group_of(each)]++;
    std::vector<std::pair<size_t, uint64_t>> groups;
    for (const auto &[group, size] : sizes)
        if (size > 1 && size < choices_.size())
            groups.emplace_back(size, group);
    std::ranges::sort(groups, std::greater());
    for (const auto &[size, group] : groups) {
        std::vector<sim::Choice> fewer = choices_;
        std::erase_if(fewer, [&, left = group](const sim::Choice &each) {
            return group_of(each) == left;
        });
        replace_if_fails(std::move(fewer));
    }
}

// Removes all choices but a fault, for which earlier calls are tried: without the others, the
// same moment comes earlier.
void Shortening::keep_only_fault() {
    const auto fault = std::ranges::find_if(choices_, [](const sim::Choice &each) {
        return Chooser::Place::of(each).kind == Chooser::FAULT;
    });
    if (choices_.size() < 2 || fault == choices_.end())
        return;
    sim::Choice moved = *fault;
    Chooser::Place place = Chooser::Place::of(moved);
    for (unsigned moves = 0; moves < MAX_MOVES; moves++, place.call--) {
        moved.position = place.position();
        if (replace_if_fails({moved}))
            return;
        if (place.call == 0)
            break;
        place.index = 0;
    }
}

void Shortening::remove() {
    const auto kind_of = [](const sim::Choice &each) { return Chooser::Place::of(each).kind; };
    // Another thread continues, or something else happens, after turns of this thread.
    const auto thread_of = [](const sim::Choice &each) {
        return Chooser::Place::of(each).thread;
    };
    // This thread continues; of another kind: none.
    const auto next_of = [&](const sim::Choice &each) {
        return kind_of(each) == Chooser::TURN ? each.option : 0;
    };
    tries_ = MAX_TRIES;
    for (size_t before = 0; before != choices_.size();) {
        before = choices_.size();
        remove_end();
        remove_groups(kind_of);
        remove_groups(thread_of);
        remove_groups(next_of);
    }
    choices_ = sim::shorten(choices_, tries_,
                            [this](const auto &fewer) { return still_fails(fewer); });
}

// Returns choices that have the last turns, after turns in the usual order in which each thread
// continues only up to the call that it has made before them.
std::vector<sim::Choice> Shortening::with_held_threads(const std::vector<sim::Point> &turns,
                                                       size_t last, bool is_order_only) const {
    const auto first = turns.end() - static_cast<std::ptrdiff_t>(last);
    std::map<uint64_t, uint64_t> held; // by thread: its calls
    for (auto turn = turns.begin(); turn != first; turn++)
        if (const auto place = Chooser::Place::of({turn->position, 0}); place.thread != 0)
            held[place.thread] = place.call;
    std::vector<uint64_t> order; // of their next turns
    for (auto turn = first; turn != turns.end(); turn++)
        if (turn->first > 1 && std::ranges::find(order, turn->first - 1) == order.end())
            order.push_back(turn->first - 1);
    for (const auto &[thread, count] : held)
        if (std::ranges::find(order, thread) == order.end())
            order.push_back(thread);
    std::vector<sim::Choice> all;
    for (size_t i = 0; i < order.size(); i++)
        all.push_back(
            {Chooser::Place{Chooser::PRIORITY, order[i], held[order[i]], 0}.position(),
             Chooser::option_of(-1 - static_cast<int64_t>(i))});
    for (const sim::Choice &each : choices_)
        if (const auto kind = Chooser::Place::of(each).kind;
            !is_order_only && kind != Chooser::TURN && kind != Chooser::PRIORITY)
            all.push_back(each);
    for (auto turn = first; turn != turns.end(); turn++)
        all.push_back({turn->position, turn->first});
    return all;
}

// Many choices can remain of which each one only moves the others to their moments. Replaces
// those before the mistake by one for each thread. Returns false if this does not help.
bool Shortening::hold_threads() {
    std::vector<sim::Point> turns;
    const std::vector<sim::Choice> before = choices_;
    fails_(choices_, &turns);
    for (size_t last = 1; last < turns.size() && last <= MAX_LAST; last += 1 + last / 8)
        for (const bool is_order_only : {true, false}) {
            tries_ = 1;
            if (!replace_if_fails(with_held_threads(turns, last, is_order_only)))
                continue;
            remove();
            if (choices_.size() < before.size())
                return true;
            choices_ = before;
        }
    return false;
}

std::vector<sim::Choice> Shortening::run() {
    if (choices_.empty() || fails_({}, nullptr))
        return {};
    remove();
    while (choices_.size() > FEW && hold_threads())
        ;
    runs_ = MAX_MOVES;
    tries_ = MAX_MOVES;
    keep_only_fault();
    return choices_;
}

} // namespace

std::vector<sim::Choice> shorten_schedule(std::vector<sim::Choice> choices,
                                          const Fails &fails) {
    return Shortening(std::move(choices), fails).run();
}
