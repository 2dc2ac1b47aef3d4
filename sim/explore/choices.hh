// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// choices.hh -- the choices of a schedule, and how a schedule with a finding is shortened

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sim {

// At a position with several options, option 0 is the default.
struct Choice {
    uint32_t position, option;
};

// SplitMix64.
inline uint64_t next_random(uint64_t &state) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// Two findings are the same if they differ only in numbers.
inline bool is_same_finding(std::string one, std::string other) {
    for (std::string *const finding : {&one, &other})
        std::erase_if(*finding, [](char byte) { return byte >= '0' && byte <= '9'; });
    return one == other;
}

// Removes choices that the failure does not need: first many at once, then single ones, with at
// most `tries` calls of still_fails(choices).
template <class Predicate>
std::vector<Choice> shorten(std::vector<Choice> choices, uint64_t tries,
                            Predicate still_fails) {
    for (size_t part = choices.size() / 2 + 1; part > 0;) {
        bool is_shorter = false;
        for (size_t i = choices.size(); i-- > 0;) {
            if (tries-- == 0)
                return choices;
            std::vector<Choice> fewer = choices;
            const auto begin = fewer.begin() + static_cast<ptrdiff_t>(i);
            fewer.erase(begin,
                        begin + static_cast<ptrdiff_t>(std::min(part, fewer.size() - i)));
            if (!still_fails(fewer))
                continue;
            choices = std::move(fewer);
            is_shorter = true;
        }
        part = part > 1 ? part / 2 : is_shorter;
    }
    return choices;
}

// Removes all choices but one, for which an earlier position is tried: without the others, the
// same moment comes earlier. `step`: the distance of its positions.
template <class Predicate>
void keep_only(Choice choice, uint32_t step, unsigned tries, std::vector<Choice> &choices,
               Predicate still_fails) {
    for (; tries > 0; tries--, choice.position -= step) {
        if (still_fails(std::vector<Choice>{choice})) {
            choices = {choice};
            return;
        }
        if (choice.position < step)
            break;
    }
}

} // namespace sim

inline std::string count_of(uint64_t count, const char *what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}
