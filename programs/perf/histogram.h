// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// histogram.h -- counts of durations, in buckets whose width grows with the value
//
// Each value below 2^HISTOGRAM_BITS has a bucket of its own. Above, each power of two is split
// into 2^(HISTOGRAM_BITS - 1) buckets, and a bucket is reported as its greatest value. So a
// reported value is never below the counted one, and at most 1/256 of it above.

#ifndef RPMA_PERF_HISTOGRAM_H
#define RPMA_PERF_HISTOGRAM_H 1

#include <stdint.h>

#define HISTOGRAM_BITS 9
#define HISTOGRAM_HALF (1u << (HISTOGRAM_BITS - 1))
#define HISTOGRAM_MAX_BITS 44 // 2^44 ns are almost five hours; longer durations count as that
#define HISTOGRAM_BUCKETS ((HISTOGRAM_MAX_BITS - HISTOGRAM_BITS + 2) * HISTOGRAM_HALF)

struct histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t min, max; // exact
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_reset(struct histogram *histogram);
void histogram_add(struct histogram *histogram, uint64_t value);
void histogram_merge(struct histogram *histogram, const struct histogram *other);

// The least bucket value such that at least this part (0 to 1) of all values is not greater;
// never more than the maximum; 0 when the histogram is empty.
uint64_t histogram_at(const struct histogram *histogram, double part);
double histogram_mean(const struct histogram *histogram);

#endif
