// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// loops.h -- one loop for each data call, counted and timed by the same code in all variants

#ifndef LOOPS_H
#define LOOPS_H 1

#ifdef __cplusplus
extern "C" {
#endif

enum { TRANSFER_BYTES = 64, ATOMIC_BYTES = 8 };

struct loop {
    const char *name;
    void (*run)(unsigned long times);
};

// Defined by each variant; ends with an entry without a name. Loops after an entry without a
// function are counted, but not timed.
extern const struct loop loops[];
void create_objects(void);

__attribute__((noreturn)) void fail(const char *call);

// Ends the program unless the call returned the expected value.
static inline void must(int is_expected, const char *call) {
    if (!is_expected)
        fail(call);
}

#ifdef __cplusplus
}
#endif

#endif /* LOOPS_H */
