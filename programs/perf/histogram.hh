// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// histogram.hh -- counts of durations, in buckets whose width grows with the value
//
// Each value below 2^BITS has a bucket of its own. Above, each power of two is split into
// 2^(BITS - 1) buckets, and a bucket is reported as its greatest value. So a reported value is
// not below the counted one, and exceeds it by at most 1/256.

#pragma once

#include <array>
#include <cstdint>

// Completions of an interval.
struct Interval {
    uint64_t count = 0, sum = 0, max = 0; // of durations; exact

    void add(uint64_t value);
    void merge(const Interval &other);
    bool operator==(const Interval &) const = default;
};

struct Histogram : Interval {
    static constexpr unsigned BITS = 9, HALF = 1U << (BITS - 1);
    // 2^44 ns are almost five hours; longer durations count as this maximum.
    static constexpr unsigned MAX_BITS = 44;
    static constexpr unsigned BUCKETS = (MAX_BITS - BITS + 2) * HALF;

    void add(uint64_t value);
    void merge(const Histogram &other);

    // The quantile (0 to 1), rounded up to a bucket value, but at most the maximum; 0 if the
    // histogram is empty.
    uint64_t at(double part) const;
    double mean() const;
    bool operator==(const Histogram &) const = default;

    static uint64_t greatest_of(unsigned bucket);

    uint64_t min = UINT64_MAX; // exact
    std::array<uint64_t, BUCKETS> buckets{};
};
