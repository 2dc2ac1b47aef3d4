// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// choices.hh -- the choices of a schedule, and how a schedule with a finding is shortened

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sim {

// At a position with several options, option 0 is the default.
struct Choice {
    uint64_t position;
    uint32_t option;
};

// What can be chosen at a position.
struct Point {
    uint64_t position;
    uint32_t first, last; // options
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

// Removes choices that the failure does not need: parts of them, from large ones to single
// ones, with at most `tries` calls of still_fails(choices). At first, the parts do not overlap.
template <class Predicate>
std::vector<Choice> shorten(std::vector<Choice> choices, uint64_t tries,
                            Predicate still_fails) {
    bool overlaps = false;
    for (size_t part = choices.size(); part > 0;) {
        bool is_shorter = false;
        for (size_t end = choices.size(); end > 0;) {
            const size_t begin = end - std::min(part, end);
            if (tries-- == 0)
                return choices;
            std::vector<Choice> fewer = choices;
            fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(begin),
                        fewer.begin() + static_cast<ptrdiff_t>(end));
            end = overlaps ? end - 1 : begin;
            if (!still_fails(fewer))
                continue;
            choices = std::move(fewer);
            end = std::min(end, choices.size());
            is_shorter = true;
        }
        part = part > 1 ? part / 2 : is_shorter;
        if (part == 0 && !std::exchange(overlaps, true))
            part = choices.size() / 2;
    }
    return choices;
}

} // namespace sim

inline std::string count_of(uint64_t count, const char *what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}
