// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.h -- the operations that a load can consist of

#ifndef RPMA_PERF_OPERATIONS_H
#define RPMA_PERF_OPERATIONS_H 1

#include <librpma.h>

struct operation {
    const char *name;
    enum rpma_work_type type;
    int flush; // type of the flush after each operation, or NO_FLUSH
    bool is_atomic;
    bool is_read;
    bool is_message;
    bool is_echoed;
    bool has_receive_cq;
};

#define NO_FLUSH (-1)
#define OPERATION_COUNT 8
extern const struct operation operations[OPERATION_COUNT];

#endif
