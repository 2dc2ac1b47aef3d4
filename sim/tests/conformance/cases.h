// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cases.h -- the cases of conformance.c, exchange.c and datagram.c, for the tests and for
// programs that check a device

#ifndef CONFORMANCE_CASES_H
#define CONFORMANCE_CASES_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cases {
    const char *name;
    // Called once in a process: the address is an IPv4 address of an RDMA device of this
    // machine.
    bool (*prepare)(const char *address);
    size_t count;
    void (*run)(size_t index); // prints a line per result; a failed step ends the process
};

#ifdef __cplusplus
extern "C" {
#endif

extern const struct cases conformance_cases, exchange_cases, datagram_cases;
// Delivers the message of a connection request to a listener; NULL: the device does.
extern void (*conformance_deliver)(int fd, const void *data, uint8_t length);

#ifdef __cplusplus
}
#endif

#endif // CONFORMANCE_CASES_H
