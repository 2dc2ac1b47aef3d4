// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lists.h -- a table of all functions that use scatter/gather lists: operations of
// rpma_post(), and the functions that post receives; with a fixture of several regions

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

// Calls what() for each function, with a new fixture each time.
void list_for_each(void (*what)(const struct list_function *f));
// Calls what() for the three functions that post receives only.
void list_for_each_receive(void (*what)(const struct list_function *f));

// Posts one operation or receive with these SGEs (with nsge 0 the single SGE at sgl) and
// LIST_CONTEXT. An operation has RPMA_F_COMPLETION_ALWAYS, and its remote offset is 8.
int list_run(const struct list_function *f, const struct rpma_sge *sgl, uint32_t nsge);

// SGE i: in region i % 3, at offset 10 + i, with 20 + i bytes.
struct rpma_sge list_sge(int i);

#endif // LISTS_H
