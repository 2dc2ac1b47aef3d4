// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_loops.h -- the loops over lists of both variants: LOOPS(length) of a variant defines
// method_what_length() for each method of posting and each operation; NATIVE_LOOPS(length)
// and NATIVE_CLEARED(length) do so for a device with native operations

#define SGES(length)                                       \
    static void sges_write_##length(unsigned long times) { \
        write_sges(length, times);                         \
    }

LOOPS(1)
LOOPS(4)
LOOPS(16)
LOOPS(64)
LOOP(ready, write, 1, conn, describe_write)
LOOP(ready, write, 16, conn, describe_write)
LOOP(cleared, write, 16, conn, clear_write)
LOOP(cleared, write_flush, 16, conn, clear_write_and_flush)
KIND(read)
KIND(send)
KIND(flush)
KIND(atomicwrite)
SGES(1)
SGES(2)
SGES(4)
SGES(8)
#ifdef PROVIDER_NATIVE
NATIVE_LOOPS(1)
NATIVE_LOOPS(4)
NATIVE_LOOPS(16)
NATIVE_LOOPS(64)
NATIVE_CLEARED(16)
#endif

#define NAME(method, what, length) {#method "_" #what "_" #length, method##_##what##_##length},
#define NAMES(what, length) \
    NAME(prepared, what, length) NAME(built, what, length) NAME(array, what, length)
#define KIND_NAMES(what) \
    NAME(ready, what, 1) NAME(ready, what, 16) NAME(built, what, 16) NAME(set, what, 16)
#define ALL_LENGTHS(what) NAMES(what, 1) NAMES(what, 4) NAMES(what, 16) NAMES(what, 64)

const struct loop loops[] = {
    // clang-format off
    ALL_LENGTHS(write)
    NAME(set, write, 1) NAME(set, write, 4) NAME(set, write, 16) NAME(set, write, 64)
    ALL_LENGTHS(write_flush)
#ifdef PROVIDER_NATIVE
    ALL_LENGTHS(write_native_flush)
    NAME(cleared, write_native_flush, 16)
#endif
    NAME(ready, write, 1) NAME(ready, write, 16) NAME(cleared, write, 16)
    NAME(cleared, write_flush, 16)
    KIND_NAMES(read) KIND_NAMES(send) KIND_NAMES(flush) KIND_NAMES(atomicwrite)
    // clang-format on
    NAME(sges, write, 1) NAME(sges, write, 2) NAME(sges, write, 4)
        NAME(sges, write, 8){"array_recv_16", receives},
    {"array_atomic_1", atomics_1},
    {"array_atomic_4", atomics_4},
    {"refused_write_1", refused},
    {"unlogged_write_1", refused_unlogged},
    {"split_wait_1", take_event_and_arm},
    {0},
};
