// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pattern.c -- data that depends on its connection, operation and position

#include "pattern.h"

#include <string.h>

#define WORD sizeof(uint64_t)

// The finalizer of splitmix64: each bit of the input changes half of the output.
static uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

static uint64_t seed_of(uint64_t connection, uint64_t number) {
    return mix(mix(connection + 1) + number);
}

static uint64_t word_of(uint64_t seed, size_t place) {
    return mix(seed + (place + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

void pattern_fill(void *memory, size_t size, uint64_t connection, uint64_t number) {
    uint64_t seed = seed_of(connection, number);
    for (size_t done = 0; done < size; done += WORD) {
        uint64_t word = word_of(seed, done / WORD);
        memcpy((char *)memory + done, &word, size - done < WORD ? size - done : WORD);
    }
}

static size_t first_difference(const unsigned char *memory, const unsigned char *wanted,
                               size_t size) {
    size_t place = 0;
    while (place < size && memory[place] == wanted[place])
        place++;
    return place;
}

size_t pattern_check(const void *memory, size_t size, uint64_t connection, uint64_t number) {
    uint64_t seed = seed_of(connection, number);
    for (size_t done = 0; done < size; done += WORD) {
        uint64_t word = word_of(seed, done / WORD);
        size_t part = size - done < WORD ? size - done : WORD;
        const unsigned char *found = (const unsigned char *)memory + done;
        if (memcmp(found, &word, part))
            return done + first_difference(found, (const unsigned char *)&word, part);
    }
    return size;
}

size_t zero_check(const void *memory, size_t size) {
    const unsigned char *bytes = memory;
    size_t place = 0;
    while (place < size && bytes[place] == 0)
        place++;
    return place;
}
