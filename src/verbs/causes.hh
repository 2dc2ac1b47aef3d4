// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// causes.hh -- common causes of failures, and the advice that ends the log line of a failure

#pragma once

#include "verbs/text.hh"

namespace rpma {

// The step that failed.
enum Step : unsigned {
    PD = 1 << 0,
    MR = 1 << 1,
    CQ = 1 << 2,
    QP = 1 << 3,
    SRQ = 1 << 4,
    COMP_CHANNEL = 1 << 5,
    EVENT_CHANNEL = 1 << 6,
    ID = 1 << 7,                 // a CM ID on a channel
    ID_WITHOUT_CHANNEL = 1 << 8, // a CM ID for which librdmacm opens a channel
    NAME = 1 << 9,               // a name or a service; the error is a code of getaddrinfo()
    DEVICE = 1 << 10,            // an address without a device: ENODEV
    BIND = 1 << 11,              // binding or listening
    ADDRESS = 1 << 12,           // resolving an address
    ROUTE = 1 << 13,             // resolving a route
    CONNECT = 1 << 14,
    ACCEPT = 1 << 15,
    REJECT = 1 << 16,
    DISCONNECT = 1 << 17,
};

// The side of the connection that failed.
enum Role : unsigned {
    CLIENT = 1 << 0, // a connection that this side requests
    SERVER = 1 << 1, // an endpoint, or a connection that another machine has requested
    LOOKUP = 1 << 2, // rpma_utils_get_ibv_context(), which has no configuration
    NO_SIDE = 1 << 3,
};

// ROCE if it is not known yet.
enum Transport : unsigned { INFINIBAND = 1 << 0, ROCE = 1 << 1, IWARP = 1 << 2 };
Transport transport_of(const rdma_cm_id &id);

inline constexpr unsigned ANY = ~0U;

// The known facts about a failure; the members after transport are used by some steps only.
struct Failure {
    Step step;
    int error;
    Role role = NO_SIDE;
    Transport transport = ROCE;
    const ibv_context *device = nullptr;    // the peer's
    const ibv_context *id_device = nullptr; // the connection's
    uint32_t objects = 0; // the device's limit of objects of this kind for all programs
    struct Size {
        const char *parameter, *attribute; // names for the log: of the call, of the device
        uint64_t requested, limit;
        const char *setter; // name of the setter, or nullptr
    } sizes[2] = {};
    uint32_t inline_size = 0;
    unsigned access = 0; // access flags of a memory region
    const sockaddr *source = nullptr;
    const char *name = nullptr;
    int family = 0;    // the requested family of the name
    uint32_t data = 0; // bytes of private data
};

// The advice for the cause of a failure, "" if there is no common cause.
Text advice_for(const Failure &failure);

} // namespace rpma
