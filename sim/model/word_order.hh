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

// These make late words visible.
void show_written(Fabric &fabric, const Qp &qp); // those that the queue pair has written
void show_written(Fabric &fabric, const Qp &qp, const MemoryRange &place);
void show_received(Fabric &fabric, const Qp &qp); // those that it has received
void show_words(Fabric &fabric, const Region &region);

} // namespace sim
