// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// random.h -- random numbers of the tests that run over the fakes of the unit tests, and their
// main()

#ifndef RANDOM_H
#define RANDOM_H 1

#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

static uint64_t seed = 1;

// splitmix64
static uint64_t random_64(void) {
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline unsigned below(unsigned limit) {
    return (unsigned)(random_64() % limit);
}

// The first argument of the program, if any, is another seed.
#define RANDOM_MAIN(tests)                                 \
    int main(int argc, char **argv) {                      \
        if (argc > 1)                                      \
            seed = strtoull(argv[1], NULL, 0);             \
        printf("seed %#llx\n", (unsigned long long)seed);  \
        const char *trouble = fake_hook_allocator();       \
        if (trouble) {                                     \
            fprintf(stderr, "%s: %s\n", argv[0], trouble); \
            return 1;                                      \
        }                                                  \
        return cmocka_run_group_tests(tests, NULL, NULL);  \
    }

#endif // RANDOM_H
