// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// slot.hh -- an operation of an array or a batch as a work request
//
// A slot is filled from a struct rpma_work. Flushes and atomic writes keep what they need to be
// described again when the other side states that it serves them in another way.

#pragma once

#include "core/conn.hh"
#include "post/pieces.hh"

namespace rpma {

struct Slot {
    ibv_send_wr wr;      // stands first: a work request leads to its slot
    uint64_t value;      // of an atomic write; the offset of a flush behind the region
    uint32_t flush_len;  // of a native flush
    uint32_t flush_ways; // that the region allows
    uint8_t flush_type;  // enum rpma_flush_type
    uint8_t read_len;    // bytes for an emulated flush to read; 0: offset behind the region
    uint8_t type;        // enum rpma_work_type
    bool is_aligned;     // the address of an atomic write
    ibv_sge sges[1];     // in a batch, as many as an operation of the connection may have
};

// What a list of slots has in it. It says so, too, when such an operation has been replaced.
struct Kinds {
    bool has_natives : 1 = false; // only an extended queue pair can take the list
    bool has_pieces : 1 = false;  // an operation has several pieces
    bool has_ways : 1 = false;    // a flush or atomic write: see FlushWays::generation()
};

// Elements for operations of several pieces, for slots that have room for one.
struct SpareElements {
    ibv_sge *next;
    uint32_t left;
};

// Whether flags are RPMA_F_COMPLETION_* and, at most, what else is allowed.
constexpr bool has_valid_flags(int flags, int allowed) {
    return (flags & ~(allowed | IBV_SEND_SIGNALED)) == RPMA_F_COMPLETION_ON_ERROR;
}

// A write of one piece, with nothing unusual about it.
inline bool is_usual_write(const rpma_work &work) {
    return work.type == RPMA_WORK_WRITE && has_valid_flags(work.flags, RPMA_F_INLINE) &&
           (work.reserved0 | work.nsge | work.reserved[0] | work.reserved[1] |
            reinterpret_cast<uintptr_t>(work.sgl)) == 0 &&
           work.local.mr != nullptr && work.local.len <= UINT32_MAX && work.remote != nullptr;
}

// Fills a slot whose list of elements stands ready, and whose link is the caller's, with such a
// write.
[[gnu::always_inline]] inline void fill_usual_write(Slot &slot, const rpma_work &work) {
    slot.sges[0] = slice(*work.local.mr, work.local.offset, work.local.len);
    slot.type = RPMA_WORK_WRITE;
    describe(slot.wr, IBV_WR_RDMA_WRITE, 1, carrying(work.flags), 0, work.op_context);
    address(slot.wr, *work.remote, work.remote_offset);
}

// The same with any operation, valid or not. With spare, the elements of several pieces come
// from there. 0, or RPMA_E_INVAL or RPMA_E_NOSUPP, which are logged unless it is behind others
// (then the elements may be used up, too); the slot is unusable then.
[[gnu::noinline]] int fill(const Origin &origin, rpma_conn &conn, Slot &slot,
                           const rpma_work &work, Kinds &kinds, SpareElements *spare);

// Describes the flush or atomic write of a slot in the way that it goes now. 0, RPMA_E_INVAL,
// RPMA_E_NOSUPP.
int choose_way(const Origin &origin, rpma_conn &conn, Slot &slot, Kinds &kinds);

} // namespace rpma
