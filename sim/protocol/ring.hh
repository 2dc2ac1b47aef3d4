// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// ring.hh -- requests in memory that a process shares with the fabric.
//
// A process may also send a request on its socket: the fabric executes those of the ring first.
// The process can write to all of the memory, so the fabric copies a request before it reads
// it, keeps the values of its own members elsewhere, and never uses one as an index unchecked.

#pragma once

#include "protocol.hh"

#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sim {

// How many units a process may post to the send queue of a QP without a reply. Both sides count
// from the creation of the QP.
struct Credit {
    uint32_t queue; // the handle of the QP; 0: none
    uint32_t limit;
};

// Precedes a request in the ring.
struct RingEntry {
    uint32_t length; // of the request; 0: the rest of the ring is unused
    uint32_t units;  // of a send without a reply; 0: it has a reply
};

struct RequestRing {
    static constexpr uint32_t SIZE = 65536, MAX_REQUEST = 16384, MAX_REPLY = 4096,
                              CREDITS = 1024;
    // ---- written by the process ----
    alignas(64) uint32_t produced; // bytes of requests, and of the rests that are unused
    uint32_t waits;                // it waits until `consumed` is `target`, or more
    uint32_t target;
    // ---- written by the fabric ----
    alignas(64) uint32_t consumed; // a futex
    uint32_t is_asleep;            // it waits for the eventfd; the process sets it to 0
    uint32_t needs_replies;        // no send is without a reply now
    uint32_t is_closed;
    // ---- the reply to the last request that has one ----
    int32_t error;
    uint32_t reply_length;
    uint32_t is_on_socket; // the socket has the reply, which is large or passes a descriptor
    alignas(64) std::byte reply[MAX_REPLY];
    Credit credits[CREDITS]; // by the number of the queue modulo CREDITS
    alignas(64) std::byte bytes[SIZE];

    static uint32_t bytes_of(size_t request) {
        return static_cast<uint32_t>(sizeof(RingEntry) + ((request + 7) & ~size_t{7}));
    }
};

// Counters only grow, and wrap.
inline bool has_reached(uint32_t counter, uint32_t target) {
    return static_cast<int32_t>(counter - target) >= 0;
}

// The reply passes the descriptor of the memory, and an eventfd.
struct OpenRing : Request<OP_OPEN_RING> {
    using Reply = Empty;
};

inline long futex(uint32_t *word, int operation, uint32_t value, const timespec *timeout) {
    return syscall(SYS_futex, word, operation, value, timeout, nullptr, 0);
}

} // namespace sim
