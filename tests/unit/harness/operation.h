// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operation.h -- operations of every type, and the functions that post one; request.h has the
// request that the device must get for each of them

#ifndef OPERATION_H
#define OPERATION_H 1

#include "fixture.h"
#include "operation_plain.h"

// The types of operations are numbered from 1.
enum { OPERATION_LAST = RPMA_WORK_SEND_WITH_IMM, OPERATION_MAX_SGES = 8 };
#define OPERATION_EACH_KIND(kind)                                              \
    (enum rpma_work_type kind = RPMA_WORK_READ; (int)(kind) <= OPERATION_LAST; \
     (kind) = (enum rpma_work_type)((int)(kind) + 1))

// A valid operation of that type, with one SGE, on the regions of the fixture. Members that
// the type does not use have invalid values.
struct rpma_work operation_of(const struct fixture *w, enum rpma_work_type kind);
// The same with number SGEs, of which the third is empty.
struct rpma_work operation_of_sges(const struct fixture *w, enum rpma_work_type kind,
                                   uint32_t number);

// The name of the function that operation_plain() calls.
const char *operation_plain_name(enum rpma_work_type kind);

enum post_method {
    OPERATION_POST,  // rpma_post() of this operation only
    OPERATION_ARRAY, // rpma_post() of this operation between two others
    OPERATION_ADD,   // rpma_batch_add(), between two others
    OPERATION_SET,   // rpma_batch_set(), replacing another operation between two others
    POST_METHODS
};
// The function that accepts or rejects the operation, and how its log lines name the array
// element.
extern const struct operation_names {
    const char *function, *element;
} operation_names[POST_METHODS];
// Posts the operation by that method. Batches use w->h.batch, which must have room for three.
// Returns the code of the function that rejected the operation, or of the post.
int operation_by(enum post_method method, const struct rpma_work *o, struct fixture *w);
// The request that the device got for the operation.
struct fake_post operation_got(enum post_method method);

// The nth request in a form for comparison: inline data without its address, no SGEs of 0
// bytes.
struct fake_post operation_posted(unsigned nth);
// Fails the test if they differ.
void operation_compare(const struct fake_post *got, const struct fake_post *expected,
                       const char *what);

#endif // OPERATION_H
