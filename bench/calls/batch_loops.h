// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_loops.h -- the loops over lists, the same in both variants: LOOPS(length) of a variant
// defines way_what_length() for each way and operation; NATIVE_LOOPS(length) does so for a
// device with native operations

#define PIECES(length)                                       \
    static void pieces_write_##length(unsigned long times) { \
        pieces(length, times);                               \
    }

LOOPS(1)
LOOPS(4)
LOOPS(16)
LOOPS(64)
LOOP(ready, write, 1, conn, describe_write)
LOOP(ready, write, 16, conn, describe_write)
KIND(read)
KIND(send)
KIND(flush)
KIND(atomicwrite)
PIECES(1)
PIECES(2)
PIECES(4)
PIECES(8)
#ifdef PROVIDER_NATIVE
NATIVE_LOOPS(1)
NATIVE_LOOPS(4)
NATIVE_LOOPS(16)
NATIVE_LOOPS(64)
#endif

#define NAME(way, what, length) {#way "_" #what "_" #length, way##_##what##_##length},
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
#endif
    NAME(ready, write, 1) NAME(ready, write, 16)
    KIND_NAMES(read) KIND_NAMES(send) KIND_NAMES(flush) KIND_NAMES(atomicwrite)
    // clang-format on
    NAME(pieces, write, 1) NAME(pieces, write, 2) NAME(pieces, write, 4)
        NAME(pieces, write, 8){"array_recv_16", receives},
    {"array_atomic_1", atomics_1},
    {"array_atomic_4", atomics_4},
    {"refused_write_1", refused},
    {"unlogged_write_1", refused_unlogged},
    {"halves_wait_1", halves_of_wait},
    {0},
};
