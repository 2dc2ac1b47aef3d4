// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.c -- the operations that a load can consist of

#include "operations.h"

const struct operation operations[OPERATION_COUNT] = {
    {.name = "write", .type = RPMA_WORK_WRITE, .flush = NO_FLUSH},
    {.name = "read", .type = RPMA_WORK_READ, .flush = NO_FLUSH, .is_read = true},
    {.name = "flush-visibility", .type = RPMA_WORK_WRITE, .flush = RPMA_FLUSH_TYPE_VISIBILITY},
    {.name = "flush-persistent", .type = RPMA_WORK_WRITE, .flush = RPMA_FLUSH_TYPE_PERSISTENT},
    {.name = "atomic-write",
     .type = RPMA_WORK_ATOMIC_WRITE,
     .flush = NO_FLUSH,
     .is_atomic = true},
    {.name = "send", .type = RPMA_WORK_SEND, .flush = NO_FLUSH, .is_message = true},
    {.name = "ping-pong",
     .type = RPMA_WORK_SEND,
     .flush = NO_FLUSH,
     .is_message = true,
     .is_echoed = true},
    {.name = "ping-pong-rcq",
     .type = RPMA_WORK_SEND,
     .flush = NO_FLUSH,
     .is_message = true,
     .is_echoed = true,
     .has_receive_cq = true},
};
