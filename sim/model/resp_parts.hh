// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// resp_parts.hh -- what the files of the responder share: memory of requests, windows,
// receives.

#pragma once

#include "resp.hh"

namespace sim {

// ---- resp_memory.cc ----

uint64_t length_of(const MemoryRanges &places);
// They return false if memory with on-demand paging is missing.
bool read_range(const MemoryRange &place, uint64_t offset, void *to, size_t length);
bool write_range(const MemoryRange &place, uint64_t offset, const void *from, size_t length);
// Copies up to the length of the shorter list.
Copied copy(const MemoryRanges &from, const MemoryRanges &to);
ibv_wc_status local_ranges(Fabric &fabric, const Qp &qp, const std::vector<ibv_sge> &sges,
                           bool is_written, MemoryRanges &places);
ibv_wc_status source_of(Fabric &fabric, const Qp &qp, const Send &send, MemoryRanges &places);
MemoryRange data_of(Send &send);
ibv_wc_status remote_range(Fabric &fabric, const Qp &qp, const Qp &peer, const SendWr &wr,
                           uint64_t length, MemoryRanges &places);
void record_write(Fabric &fabric, Qp &qp, const MemoryRanges &places, uint64_t length);
// Makes earlier writes of the QP persistent. `range`: of the request; `length`: its bytes.
void make_persistent(Fabric &fabric, Qp &qp, const Send &send, const MemoryRanges &range,
                     uint64_t length);
bool invalidate_window(Fabric &fabric, uint32_t key);
Result execute_window(Fabric &fabric, Qp &qp, Send &send);

// ---- resp.cc ----

inline Result done(Send &send, ibv_wc_status status) {
    send.status = status;
    return DONE;
}
ibv_wc received(const Send &send, uint64_t length, ibv_wc_opcode opcode);
ibv_wc failed(ibv_wc_status status);
// Takes the next receive of the queue pair. Returns false if there is none.
bool take_receive(Fabric &fabric, Qp &qp, Receive &receive);
void return_receive(Qp &qp, Receive receive);
// Copies a message into a receive, which stays posted if one of the programs has ended.
Copied fill_receive(Qp &qp, const Receive &receive, const MemoryRanges &from,
                    const MemoryRanges &to);

// ---- datagram.cc ----

Result execute_datagram(Fabric &fabric, Qp &qp, Send &send);

} // namespace sim
