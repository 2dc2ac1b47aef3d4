// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// word_order.hh -- words of executed writes that become visible one by one.

#pragma once

#include "resp.hh"

namespace sim {

// Executes a plain write: the words that the scheduler chooses become visible later. `data`:
// the bytes of the write to `to`.
Copied write_words(Fabric &fabric, const Qp &qp, const Qp &peer, const MemoryRange &to,
                   const std::vector<std::byte> &data);
// Executes a part of a write that is interrupted: only the chosen words arrive, all of them
// late.
void write_part(Fabric &fabric, const Qp &qp, const Qp &peer, const MemoryRange &to,
                const std::vector<std::byte> &data);

// The words of a read that the target reads later, but before its next request.
struct TornRead {
    MemoryRange from;
    std::vector<bool> late;
};

// Lets the target read the words that the schedule chooses later.
void tear_read(Fabric &fabric, Send &send, const MemoryRange &from);
void read_late_words(Send &send); // now

// These make late words visible.
void show_written(Fabric &fabric, const Qp &qp); // those that the queue pair has written
void show_written(Fabric &fabric, const Qp &qp, const MemoryRange &place);
void show_received(Fabric &fabric, const Qp &qp); // those that it has received
// Before the registration ends; also reads late words.
void show_words(Fabric &fabric, const Region &region);

} // namespace sim
