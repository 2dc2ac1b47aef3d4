// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lists.h -- the functions that take memory lists, as one table, and a world for them with
// several regions

#ifndef LISTS_H
#define LISTS_H 1

#include "world.h"

enum { LIST_MOST = 5, LIST_IMM = 0x12345678 };
#define LIST_CONTEXT ((void *)0x1234567890)

struct list_function {
    // Through its world's connection, request or shared receive queue, with LIST_CONTEXT and
    // RPMA_F_COMPLETION_ALWAYS; a remote region is accessed from offset 8 on.
    int (*run)(const struct rpma_sge *sgl, int nsge);
    const char *name, *call, *cause;
    int opcode; // of a send; -1 for a receive
    bool remote, imm, srq;
};

extern struct world list_world;
extern struct rpma_mr_local *list_regions[3];
extern const unsigned char *const list_memories[3];

void list_world_new(bool with_srq, uint32_t max_sge);
void list_world_drop(void);

// Calls what for each function, in a world of its own.
void list_for_each(void (*what)(const struct list_function *f));

// Element i: of region i % 3, at offset 10 + i, with 20 + i bytes.
struct rpma_sge list_element(int i);

// Calls the function and fails the test unless it succeeds.
void list_must(const struct list_function *f, const struct rpma_sge *sgl, int nsge);

#endif // LISTS_H
