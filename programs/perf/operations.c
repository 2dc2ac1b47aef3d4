// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.c -- the operations that a load can be made of

#include "operations.h"

static int post_write(const struct step *s, int flags) {
    if (s->element_count == 1)
        return s->batch ? rpma_batch_write(s->batch, s->remote, s->remote_offset, s->local,
                                           s->offset, s->size, flags, s->context)
                        : rpma_write(s->conn, s->remote, s->remote_offset, s->local, s->offset,
                                     s->size, flags, s->context);
    return s->batch ? rpma_batch_writev(s->batch, s->remote, s->remote_offset, s->elements,
                                        s->element_count, flags, s->context)
                    : rpma_writev(s->conn, s->remote, s->remote_offset, s->elements,
                                  s->element_count, flags, s->context);
}

static int post_read(const struct step *s, int flags) {
    if (s->element_count == 1)
        return s->batch ? rpma_batch_read(s->batch, s->local, s->offset, s->remote,
                                          s->remote_offset, s->size, flags, s->context)
                        : rpma_read(s->conn, s->local, s->offset, s->remote, s->remote_offset,
                                    s->size, flags, s->context);
    return s->batch ? rpma_batch_readv(s->batch, s->elements, s->element_count, s->remote,
                                       s->remote_offset, flags, s->context)
                    : rpma_readv(s->conn, s->elements, s->element_count, s->remote,
                                 s->remote_offset, flags, s->context);
}

static int post_atomic_write(const struct step *s, int flags) {
    return s->batch ? rpma_batch_atomic_write(s->batch, s->remote, s->remote_offset, s->bytes,
                                              flags, s->context)
                    : rpma_atomic_write(s->conn, s->remote, s->remote_offset, s->bytes, flags,
                                        s->context);
}

static int post_send(const struct step *s, int flags) {
    if (s->element_count == 1)
        return s->batch
                   ? rpma_batch_send(s->batch, s->local, s->offset, s->size, flags, s->context)
                   : rpma_send(s->conn, s->local, s->offset, s->size, flags, s->context);
    return s->batch
               ? rpma_batch_sendv(s->batch, s->elements, s->element_count, flags, s->context)
               : rpma_sendv(s->conn, s->elements, s->element_count, flags, s->context);
}

const struct operation operations[OPERATION_COUNT] = {
    {.name = "write", .post = post_write, .flush = NO_FLUSH},
    {.name = "read", .post = post_read, .flush = NO_FLUSH, .is_read = true},
    {.name = "flush-visibility", .post = post_write, .flush = RPMA_FLUSH_TYPE_VISIBILITY},
    {.name = "flush-persistent", .post = post_write, .flush = RPMA_FLUSH_TYPE_PERSISTENT},
    {.name = "atomic-write", .post = post_atomic_write, .flush = NO_FLUSH, .is_atomic = true},
    {.name = "send", .post = post_send, .flush = NO_FLUSH, .is_message = true},
    {.name = "ping-pong",
     .post = post_send,
     .flush = NO_FLUSH,
     .is_message = true,
     .is_echoed = true},
    {.name = "ping-pong-rcq",
     .post = post_send,
     .flush = NO_FLUSH,
     .is_message = true,
     .is_echoed = true,
     .has_receive_cq = true},
};

int step_flush(const struct step *s, enum rpma_flush_type type, int flags) {
    return s->batch ? rpma_batch_flush(s->batch, s->remote, s->remote_offset, s->size, type,
                                       flags, s->context)
                    : rpma_flush(s->conn, s->remote, s->remote_offset, s->size, type, flags,
                                 s->context);
}

int operation_post(const struct operation *operation, const struct step *step, int completion) {
    if (operation->flush == NO_FLUSH)
        return operation->post(step, completion | step->flags);
    int ret = operation->post(step, RPMA_F_COMPLETION_ON_ERROR | step->flags);
    return ret ? ret : step_flush(step, (enum rpma_flush_type)operation->flush, completion);
}
