// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// causes.hh -- common causes of failures, and the advice that ends a failure's log line

#pragma once

#include "verbs/text.hh"

namespace rpma {

// What failed.
enum Step : unsigned {
    PD = 1 << 0,
    MR = 1 << 1,
    CQ = 1 << 2,
    QP = 1 << 3,
    SRQ = 1 << 4,
    COMP_CHANNEL = 1 << 5,
    EVENT_CHANNEL = 1 << 6,
    ID = 1 << 7,       // a CM ID on a channel
    ID_ALONE = 1 << 8, // a CM ID for which librdmacm opens a channel
    NAME = 1 << 9,     // a name or a service; the error is one of getaddrinfo()
    DEVICE = 1 << 10,  // an address without a device: ENODEV
    BIND = 1 << 11,    // binding or listening
    ADDRESS = 1 << 12, // resolving an address
    ROUTE = 1 << 13,   // resolving a route
    CONNECT = 1 << 14,
    ACCEPT = 1 << 15,
    REJECT = 1 << 16,
};

// How much of something is wanted, how much the device has, and the function that sets it.
struct Demand {
    uint32_t wanted, most;
    const char *setting;
    uint32_t objects = 0; // the device has for all programs
};

// What is known of a failure; the members behind error matter for some steps only.
struct Failure {
    Step step;
    int error;
    const ibv_context *device = nullptr;    // of the peer
    const ibv_context *id_device = nullptr; // of the connection
    uint32_t objects = 0; // of this kind, which the device has for all programs
    struct {
        const char *what, *limit; // name of the parameter, and of the device's limit for it
        uint64_t wanted, most;
        const char *setting;
    } sizes[2] = {};
    uint32_t inline_size = 0;
    unsigned access = 0; // of a memory region
    const sockaddr *source = nullptr;
    const char *name = nullptr;
    int family = 0;    // that the name is to have
    uint32_t data = 0; // bytes of private data
};

// The advice for the cause of a failure, "" if it has no common one.
Text advice_for(const Failure &failure);

} // namespace rpma
