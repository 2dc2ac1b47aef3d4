// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// histogram.cc -- counts of durations, in buckets whose width grows with the value

#include "histogram.hh"

#include <algorithm>
#include <bit>
#include <cmath>

static unsigned bucket_of(uint64_t value) {
    value = std::min(value, (UINT64_C(1) << Histogram::MAX_BITS) - 1);
    const auto bits = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = bits > Histogram::BITS ? bits - Histogram::BITS : 0;
    return shift * Histogram::HALF + static_cast<unsigned>(value >> shift);
}

uint64_t Histogram::greatest_of(unsigned bucket) {
    if (bucket < 2 * HALF)
        return bucket;
    const unsigned shift = bucket / HALF - 1;
    const uint64_t first = uint64_t{bucket - shift * HALF} << shift;
    return first + (UINT64_C(1) << shift) - 1;
}

void Histogram::add(uint64_t value) {
    Interval::add(value);
    min = std::min(min, value);
    buckets[bucket_of(value)]++;
}

void Histogram::merge(const Histogram &other) {
    Interval::merge(other);
    min = std::min(min, other.min);
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        buckets[bucket] += other.buckets[bucket];
}

uint64_t Histogram::at(double part) const {
    const auto rank = static_cast<uint64_t>(std::ceil(part * static_cast<double>(count)));
    const uint64_t target = std::max(rank, UINT64_C(1));
    uint64_t seen = 0;
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
        seen += buckets[bucket];
        if (seen >= target)
            return std::min(greatest_of(bucket), max);
    }
    return max;
}

double Histogram::mean() const {
    return count ? static_cast<double>(sum) / static_cast<double>(count) : 0;
}

void Interval::add(uint64_t value) {
    count++;
    sum += value;
    max = std::max(max, value);
}

void Interval::merge(const Interval &other) {
    count += other.count;
    sum += other.sum;
    max = std::max(max, other.max);
}
