// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operation.h -- operations of every kind, and the ways to post one; request.h has the request
// that the device must get from each of them

#ifndef OPERATION_H
#define OPERATION_H 1

#include "fixture.h"

// Kinds are numbered from 1.
enum { OPERATION_LAST = RPMA_WORK_SEND_WITH_IMM, OPERATION_MOST_SGES = 8 };
#define OPERATION_EACH_KIND(kind)                                              \
    (enum rpma_work_type kind = RPMA_WORK_READ; (int)(kind) <= OPERATION_LAST; \
     (kind) = (enum rpma_work_type)((int)(kind) + 1))

// A valid operation of that kind, of one piece, on the regions of the fixture. Members that the
// kind does not read have wrong values.
struct rpma_work operation_of(const struct fixture *w, enum rpma_work_type kind);
// The same with number SGEs, of which the third is empty.
struct rpma_work operation_of_sges(const struct fixture *w, enum rpma_work_type kind,
                                   uint32_t number);

// The name and a call of the plain function, as "rpma_read"; for operations without a list.
const char *operation_plain_name(enum rpma_work_type kind);
int operation_plain(const struct rpma_work *o, struct rpma_conn *conn);

enum post_method {
    OPERATION_POST,  // rpma_post(), the only operation
    OPERATION_ARRAY, // rpma_post(), between others, as are the next two
    OPERATION_ADD,   // rpma_batch_add()
    OPERATION_SET,   // rpma_batch_set(), in place of another operation
    POST_METHODS
};
// The function that takes or refuses the operation, and the element that its log line names.
extern const struct operation_names {
    const char *function, *element;
} operation_names[POST_METHODS];
// Posts the operation by that method, with the others; batches are w->h.batch, which must have
// room for three. Returns the code of the function that refused it, or of the post.
int operation_by(enum post_method method, const struct rpma_work *o, struct fixture *w);
// The request that the device got for it.
struct fake_post operation_got(enum post_method method);

// The nth request in a form for comparison: without the address of inline data, which was
// copied, and without SGEs of 0 bytes.
struct fake_post operation_posted(unsigned nth);
// Fails the test unless both are equal.
void operation_compare(const struct fake_post *got, const struct fake_post *expected,
                       const char *what);

#endif // OPERATION_H
