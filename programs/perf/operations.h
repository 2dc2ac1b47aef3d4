// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.h -- the operations that a load can be made of

#ifndef RPMA_PERF_OPERATIONS_H
#define RPMA_PERF_OPERATIONS_H 1

#include <librpma.h>

// Where an operation is and where it goes; batch NULL: to the device at once.
struct step {
    struct rpma_conn *conn;
    struct rpma_batch *batch;
    struct rpma_mr_local *local;
    struct rpma_mr_remote *remote;
    struct rpma_sge *elements;
    int element_count;
    size_t offset;        // in local, unless there are several elements
    size_t remote_offset; // in remote
    size_t size;
    const char *bytes; // of an atomic write
    int flags;         // RPMA_F_INLINE or 0
    const void *context;
};

struct operation {
    const char *name;
    int (*post)(const struct step *step, int flags);
    int flush; // type of the flush behind it, or NO_FLUSH
    bool is_atomic;
    bool is_read;
    bool is_message;
    bool is_echoed;
    bool has_receive_cq;
};

#define NO_FLUSH (-1)
#define OPERATION_COUNT 8
extern const struct operation operations[OPERATION_COUNT];

// Posts the operation, with its flush if it has one; completion: RPMA_F_COMPLETION_*.
int operation_post(const struct operation *operation, const struct step *step, int completion);
int step_flush(const struct step *step, enum rpma_flush_type type, int flags);

#endif
