// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// decisions.h -- tests of what this library does differently from the original, one for each
// id of NEWS.md, named like it.
//
// They run over any librpma.so.0, so they take nothing for granted but the public header of
// 1.0, and each says in one line what it found. decisions_check.py runs them over binaries of
// the original and compares the lines with decisions.tsv.

#ifndef DECISIONS_H
#define DECISIONS_H 1

#include "world.h"

// Ends the test with "name: got instead of wanted", in figures or as codes.
#define EXPECT_EQUAL(what, got, wanted) \
    decisions_expect(what, (long long)(got), (long long)(wanted), __FILE__, __LINE__)
#define EXPECT_CODE(call, wanted) decisions_code((call), wanted, #call, __FILE__, __LINE__)
// How often a provider call was made since unit_begin().
#define EXPECT_COUNT(name, wanted) EXPECT_EQUAL(name "()", fake_count(name), wanted)

void decisions_expect(const char *what, long long got, long long wanted, const char *file,
                      int line);
// No allocation of the library succeeds until fake_faults_off().
void decisions_without_memory(void);
void decisions_code(int got, int wanted, const char *call, const char *file, int line);

#endif // DECISIONS_H
