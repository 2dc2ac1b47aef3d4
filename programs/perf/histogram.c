// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// histogram.c -- counts of durations, in buckets whose width grows with the value

#include "histogram.h"

#include <string.h>

void histogram_reset(struct histogram *histogram) {
    memset(histogram, 0, sizeof(*histogram));
    histogram->min = UINT64_MAX;
}

static unsigned bits_of(uint64_t value) {
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

static unsigned bucket_of(uint64_t value) {
    const uint64_t greatest = (UINT64_C(1) << HISTOGRAM_MAX_BITS) - 1;
    if (value > greatest)
        value = greatest;
    unsigned bits = bits_of(value);
    unsigned shift = bits > HISTOGRAM_BITS ? bits - HISTOGRAM_BITS : 0;
    return shift * HISTOGRAM_HALF + (unsigned)(value >> shift);
}

static uint64_t greatest_of(unsigned bucket) {
    if (bucket < 2 * HISTOGRAM_HALF)
        return bucket;
    unsigned shift = bucket / HISTOGRAM_HALF - 1;
    uint64_t first = (uint64_t)(bucket - shift * HISTOGRAM_HALF) << shift;
    return first + (UINT64_C(1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t value) {
    histogram->count++;
    histogram->sum += value;
    if (value < histogram->min)
        histogram->min = value;
    if (value > histogram->max)
        histogram->max = value;
    histogram->buckets[bucket_of(value)]++;
}

void histogram_merge(struct histogram *histogram, const struct histogram *other) {
    histogram->count += other->count;
    histogram->sum += other->sum;
    if (other->min < histogram->min)
        histogram->min = other->min;
    if (other->max > histogram->max)
        histogram->max = other->max;
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++)
        histogram->buckets[bucket] += other->buckets[bucket];
}

uint64_t histogram_at(const struct histogram *histogram, double part) {
    double exact = part * (double)histogram->count;
    uint64_t wanted = (uint64_t)exact;
    if ((double)wanted < exact || wanted == 0)
        wanted++;
    uint64_t seen = 0;
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        seen += histogram->buckets[bucket];
        if (seen >= wanted) {
            uint64_t value = greatest_of(bucket);
            return value < histogram->max ? value : histogram->max;
        }
    }
    return histogram->max;
}

double histogram_mean(const struct histogram *histogram) {
    return histogram->count ? (double)histogram->sum / (double)histogram->count : 0;
}
