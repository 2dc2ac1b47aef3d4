// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pattern.cc -- test data that depends on the connection, the operation and the position

#include "pattern.hh"

#include "plan.hh"

#include <algorithm>
#include <cstring>

static constexpr size_t WORD = sizeof(uint64_t);

static uint64_t seed_of(uint64_t connection, uint64_t number) {
    return mix(mix(connection + 1) + number);
}

static uint64_t word_of(uint64_t seed, size_t index) {
    return mix(seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

void pattern_fill(std::span<char> memory, uint64_t connection, uint64_t number) {
    const uint64_t seed = seed_of(connection, number);
    for (size_t done = 0; done < memory.size(); done += WORD) {
        const uint64_t word = word_of(seed, done / WORD);
        std::memcpy(&memory[done], &word, std::min(memory.size() - done, WORD));
    }
}

size_t first_difference(std::span<const char> memory, const void *expected) {
    const auto *bytes = static_cast<const char *>(expected);
    return static_cast<size_t>(std::mismatch(memory.begin(), memory.end(), bytes).first -
                               memory.begin());
}

size_t pattern_check(std::span<const char> memory, uint64_t connection, uint64_t number) {
    const uint64_t seed = seed_of(connection, number);
    for (size_t done = 0; done < memory.size(); done += WORD) {
        const uint64_t word = word_of(seed, done / WORD);
        const auto part = memory.subspan(done, std::min(memory.size() - done, WORD));
        if (std::memcmp(part.data(), &word, part.size()) != 0)
            return done + first_difference(part, &word);
    }
    return memory.size();
}
