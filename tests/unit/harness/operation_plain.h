// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operation_plain.h -- the plain function and the opcode of an operation, for tests with the
// fakes and over drivers

#ifndef OPERATION_PLAIN_H
#define OPERATION_PLAIN_H 1

#include <infiniband/verbs.h>
#include <librpma.h>

// Calls the plain function of the type, such as rpma_read(), for an operation without a list.
// Types without a plain function are posted with rpma_post().
int operation_plain(const struct rpma_work *o, struct rpma_conn *conn);

// The opcode of each type on a device without native operations, by enum rpma_work_type.
extern const enum ibv_wr_opcode operation_opcodes[];

#endif // OPERATION_PLAIN_H
