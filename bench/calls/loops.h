// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// loops.h -- one loop for each data call, counted and timed in the same way in all variants

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

// Defined by each variant; ends with NULL. Loops after an entry without a function
// are only counted.
extern const struct loop loops[];
void connect_side(void);

__attribute__((noreturn)) void give_up(const char *call);

// Ends the program unless the call returned the expected value.
static inline void must(int is_so, const char *call) {
    if (!is_so)
        give_up(call);
}

#ifdef __cplusplus
}
#endif

#endif /* LOOPS_H */
