// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// loops.c -- runs the loops of a variant: for callgrind, or timed
//
//   PROGRAM count TIMES       runs each loop 0 to 3 times TIMES long and calls mark() after it,
//                             for callgrind --dump-before=mark
//   PROGRAM time TIMES        prints for each loop the nanoseconds per call

#include "loops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 1000, LENGTHS = 3, RUNS = 200 };

void fail(const char *call) {
    fprintf(stderr, "bench: %s returned an unexpected result\n", call);
    exit(EXIT_FAILURE);
}

// A separate function, so that callgrind can split its counts at each call.
__attribute__((noinline)) void mark(void);
void mark(void) {
    __asm__ volatile("");
}

static void count(const struct loop *loop, unsigned long times) {
    loop->run(1); // warm-up: excludes one-time costs
    // volatile: the loop around each length has the same instructions.
    for (volatile unsigned long length = 0; length <= LENGTHS; length++) {
        loop->run(length * times);
        mark();
    }
    puts(loop->name);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

// Reports the fastest of many runs, because other processes slow runs down.
static void take_time(const struct loop *loop, unsigned long times) {
    loop->run(WARM_UP);
    double fastest = 0;
    for (unsigned run = 0; run < RUNS; run++) {
        const double start = now();
        loop->run(times);
        const double taken = now() - start;
        if (run == 0 || taken < fastest)
            fastest = taken;
    }
    printf("%s\t%.4f\n", loop->name, fastest / (double)times);
}

int main(int argc, char *argv[]) {
    const unsigned long times = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    const int counts = argc == 3 && strcmp(argv[1], "count") == 0;
    if (times == 0 || (!counts && strcmp(argv[1], "time") != 0)) {
        fprintf(stderr, "usage: %s count|time TIMES\n", argv[0]);
        return 2;
    }
    create_objects();
    for (const struct loop *loop = loops; loop->name != NULL; loop++)
        if (loop->run != NULL)
            (counts ? count : take_time)(loop, times);
        else if (!counts)
            break;
    return 0;
}
