// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// release-0.13.0.c -- a program of release 0.13.0: the old and the new atomic write.

#include "atomic_write.h"
#include "wc.h"
#include "write_atomic.h"

int main(int argc, char *argv[]) {
    struct life life;
    life_open(&life, argc, argv);
    life_connect(&life, NULL, &life);
    life_exchange(&life, take_wc, &life);
    life_write_8(&life, write_atomic, take_wc);
    life_write_8(&life, atomic_write, take_wc);
    life_close(&life);
    return 0;
}
