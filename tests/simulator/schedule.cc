// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// schedule.cc -- makes choices at random, replays recorded ones, or lists all of them

#include "schedule.hh"

#include <fstream>

using sim::next_random;

// The frequency and the kinds of events differ between schedules: some have few faults and run
// long, some have many faults in a short time, and some repeat a few kinds.
Schedule Schedule::random(uint64_t seed, uint32_t kinds) {
    Schedule schedule;
    uint64_t state = seed;
    schedule.salt = next_random(state);
    schedule.random_ = true;
    schedule.faults_ = static_cast<unsigned>(next_random(state) % 7);
    schedule.fault_limit_ = (uint64_t{1} << 32) / (uint64_t{16} << next_random(state) % 5);
    schedule.other_limit_ = (uint64_t{1} << 32) / (uint64_t{2} << next_random(state) % 7);
    schedule.kinds_ = static_cast<uint32_t>(next_random(state) | next_random(state));
    if (kinds != UINT32_MAX)
        schedule.kinds_ = kinds;
    schedule.state_ = state;
    return schedule;
}

bool Schedule::is_default() {
    if (listed)
        return false;
    if (random_) {
        uint64_t draw = next_random(state_);
        fault_ = faults_ && draw >> 32 < fault_limit_;
        if (fault_ || (draw & UINT32_MAX) < other_limit_)
            return false;
    } else if (next_ < choices.size() && choices[next_].position == position_) {
        return false;
    }
    position_++;
    return true;
}

void Schedule::stop() {
    if (random_)
        choices.push_back({position_, 0});
}

// Chooses each kind of event with the same probability, for any number of connections.
uint32_t Schedule::pick(const std::vector<Event> &options) {
    size_t found = 0, end;
    uint64_t kinds = 0;
    for (size_t begin = 0; begin < options.size(); begin = end) {
        Event::Kind kind = options[begin].kind;
        for (end = begin; end < options.size() && options[end].kind == kind;)
            end++;
        if (fault_ && kind < Event::FIRST_FAULT)
            continue;
        uint64_t draw = next_random(state_);
        if (kinds_ >> kind & 1 && (draw >> 32) % ++kinds == 0)
            found = begin + (draw & UINT32_MAX) % (end - begin) + 1;
    }
    return static_cast<uint32_t>(found);
}

bool Schedule::choose(const std::vector<Event> &options, Event &event) {
    if (listed)
        listed->push_back(options);
    uint32_t position = position_++, option = 0;
    if (random_ && (option = pick(options))) {
        if (!choices.empty() && choices.back().position == position)
            choices.pop_back(); // the choice that stop() has recorded
        choices.push_back({position, option});
        faults_ -= fault_;
    } else if (!random_ && next_ < choices.size() && choices[next_].position == position) {
        option = choices[next_++].option;
    }
    if (option == 0 || option > options.size())
        return false;
    event = options[option - 1];
    return true;
}

bool Schedule::save(const std::string &name, const std::string &configuration) const {
    std::ofstream file(name);
    file << configuration << ' ' << salt << '\n';
    for (const Choice &choice : choices)
        file << choice.position << ' ' << choice.option << '\n';
    return !file.flush().fail();
}

bool Schedule::load(const std::string &name, std::string &configuration) {
    std::ifstream file(name);
    bool good = static_cast<bool>(file >> configuration >> salt);
    for (Choice choice; file >> choice.position >> choice.option;)
        choices.push_back(choice);
    return good && file.eof();
}
