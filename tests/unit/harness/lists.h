// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lists.h -- what takes local memory in pieces, as one table: the kinds of rpma_post(), and the
// queues that take receives; and a world for them with several regions

#ifndef LISTS_H
#define LISTS_H 1

#include "world.h"

enum { LIST_MOST = 5, LIST_IMM = 0x12345678 };
#define LIST_CONTEXT ((void *)0x1234567890)

struct list_function {
    enum rpma_work_type kind; // of rpma_post(); 0: receives
    // Of receives: through its world's connection, request or shared receive queue.
    int (*receive)(const struct rpma_receive *receives, uint32_t count, uint32_t *posted);
    const char *name, *call, *cause;
    const char *element; // what its array is called
    int opcode;          // of a send
    bool remote, imm, srq;
};

extern struct world list_world;
extern struct rpma_mr_local *list_regions[3];
extern const unsigned char *const list_memories[3];

void list_world_new(bool with_srq, uint32_t max_sge);
void list_world_drop(void);

// Calls what for each function, in a world of its own.
void list_for_each(void (*what)(const struct list_function *f));
// The same for the three functions of receives.
void list_for_each_receive(void (*what)(const struct list_function *f));

// One operation or receive with the pieces, with LIST_CONTEXT and, if it is an operation, with
// RPMA_F_COMPLETION_ALWAYS; a remote region is accessed from offset 8 on.
int list_run(const struct list_function *f, const struct rpma_sge *sgl, uint32_t nsge);
// The same with a single piece as local.
int list_run_local(const struct list_function *f, struct rpma_sge piece);

// Element i: of region i % 3, at offset 10 + i, with 20 + i bytes.
struct rpma_sge list_element(int i);

// Calls the function and fails the test unless it succeeds.
void list_must(const struct list_function *f, const struct rpma_sge *sgl, uint32_t nsge);

#endif // LISTS_H
