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

// The world of the test that runs; empty at its beginning.
extern struct world decisions_world;

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

void A1(void **state), A2(void **state), A3(void **state), A4(void **state), A5(void **state);
void B1(void **state), B2(void **state), B3(void **state), C1(void **state), C2(void **state);
void D1(void **state), D2(void **state), D3(void **state), D4(void **state), D5(void **state);
void D6(void **state), D7(void **state), D8(void **state), D12(void **state), D13(void **state);
void D14(void **state);
void E1(void **state), E2(void **state), E3(void **state), E4(void **state), E5(void **state);
void E6(void **state), E7(void **state), E10(void **state), E11(void **state);
void E12(void **state), F1(void **state), F2(void **state), F3(void **state), F4(void **state);
void F5(void **state), F6(void **state), resources(void **state);

#endif // DECISIONS_H
