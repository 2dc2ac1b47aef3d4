// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// loopback.h -- lets a program be both sides of its connection.
//
// On a device the calls below do nothing, because the device executes operations. Over the
// fakes of tests/unit, which only record, they execute posted operations in memory and deliver
// events. They look up the fakes at run time, so that one binary runs in both places.

#ifndef LOOPBACK_H
#define LOOPBACK_H 1

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

bool loopback_open(void); // false: no fakes, a real device
// An event with this private data arrives at the endpoint or the connection with this
// descriptor.
void loopback_event(int fd, enum rdma_cm_event_type type, const void *data, uint8_t len);
// Executes the operations posted since the last call, and completes them.
void loopback_run(void);
// Returns the library's mistakes and leaks; "" if there are none.
const char *loopback_close(void);

#endif // LOOPBACK_H
