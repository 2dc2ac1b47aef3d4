/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* sum.h -- the client sends numbers, the server replies with sums of them */

#ifndef SUM_H
#define SUM_H 1

#include "common.h"

#define NUMBERS 8
#define USAGE (RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV)

struct content {
    uint64_t numbers[NUMBERS]; /* big-endian, one message each */
    uint64_t sums[2];          /* big-endian: of the first half of the numbers, of all */
};

#endif
