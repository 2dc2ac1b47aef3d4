// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// mailbox.hh -- accesses to the memory of a process that a thread of its own executes, because
// the fabric may not. The process can write to all of the mailbox.

#pragma once

#include "ring.hh"

#include <sys/uio.h>

namespace sim {

// The reply passes the descriptor of the mailbox.
struct OpenMailbox : Request<OP_OPEN_MAILBOX> {
    using Reply = Empty;
};

struct Mailbox {
    // The thread only executes what it has taken; the fabric may withdraw what is not taken.
    enum State : uint32_t { EMPTY, REQUESTED, TAKEN, DONE, CLOSED };
    // The checks return EFAULT unless the range is mapped, and writable.
    enum Kind : uint32_t { READ, WRITE, CHECK, CHECK_WRITABLE };
    static constexpr size_t MAX_RANGES = 64, MAX_BYTES = 65536; // of the data of all ranges
    uint32_t state;                                             // a futex
    Kind kind;
    uint32_t count; // of the ranges; one for a check
    int32_t error;  // of a check
    uint64_t done;  // how many bytes were read or written before an error
    iovec ranges[MAX_RANGES];
    char data[MAX_BYTES]; // of the ranges, one after the other
};

} // namespace sim
