// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lists.h -- all that takes local memory in pieces, as one table: the kinds of rpma_post(), and
// the queues that take receives; with a fixture of several regions for them

#ifndef LISTS_H
#define LISTS_H 1

#include "fixture.h"

enum { LIST_MAX = 5 };
#define LIST_CONTEXT ((void *)0x1234567890)

struct list_function {
    enum rpma_work_type kind; // of rpma_post(); 0: receives
    // Posts receives to the connection, request or shared receive queue of its fixture.
    int (*receive)(const struct rpma_receive *receives, uint32_t count, uint32_t *posted);
    const char *name, *call, *cause;
    const char *element; // the name of its array in log lines
    bool remote, srq;
};

extern struct rpma_mr_local *list_regions[3];

void list_fixture_new(bool with_srq, uint32_t max_sge);
void list_fixture_delete(void);

// Calls what() for each function, each time in a new fixture.
void list_for_each(void (*what)(const struct list_function *f));
// The same for the three functions of receives.
void list_for_each_receive(void (*what)(const struct list_function *f));

// Posts one operation or receive of these pieces, or with nsge 0 of the piece at sgl alone,
// with LIST_CONTEXT. An operation has RPMA_F_COMPLETION_ALWAYS and accesses a remote region
// from offset 8 on.
int list_run(const struct list_function *f, const struct rpma_sge *sgl, uint32_t nsge);

// Element i: of region i % 3, at offset 10 + i, with 20 + i bytes.
struct rpma_sge list_sge(int i);

#endif // LISTS_H
