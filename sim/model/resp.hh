// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// resp.hh -- the responder: the effects of a request on memory and on the other side.

#pragma once

#include "fabric.hh"

namespace sim {

// Reads and atomic operations: the response has data, and a fence waits for it.
inline bool returns_data(uint32_t opcode) {
    return opcode == IBV_WR_RDMA_READ || sim_is_atomic(opcode);
}

enum Result { DONE, NO_RECEIVE, NO_RESPONSE };

// A range of a program's memory, or of the fabric's own (no program).
struct MemoryRange {
    std::shared_ptr<Program> program;
    uint64_t address, length;
    bool may_fail;       // on-demand paging: the memory may be missing; otherwise it is pinned
    bool is_persistent;  // the memory is, or may be, persistent
    uint64_t rest = 0;   // of a region: the bytes from the address to its end
    uint32_t writer = 0; // the handle of the queue pair whose request accesses it
};
using MemoryRanges = std::vector<MemoryRange>;
enum Copied { COPIED, NO_SOURCE, NO_TARGET };

bool has_imm(uint32_t opcode); // of a request

// Executes a request unless the link to its target is interrupted. Sets its status if the
// result is DONE.
Result transmit(Fabric &fabric, Qp &qp, Send &send);
// Writes the data of an executed read or atomic operation, which has arrived now.
void land(Fabric &fabric, Qp &qp, Send &send);
// Executes a part of the next request, a plain write, which a failure of its target interrupts.
void execute_part(Fabric &fabric, Qp &qp);
// Returns the data of a request that is in the memory of its program.
std::vector<std::byte> data_in_program(Fabric &fabric, const Qp &qp, const Send &send);

} // namespace sim
