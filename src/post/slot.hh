// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// slot.hh -- an operation of an array or a batch as a work request
//
// A slot is filled from a struct rpma_work. Flushes and atomic writes keep what they need to be
// described again when the other side states that it serves them in another way.

#pragma once

#include "core/conn.hh"
#include "core/peer.hh"
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

// Bytes that a remote atomic works on.
inline constexpr std::size_t ATOMIC_SIZE = 8;

// Whether the device of this side has remote atomics, and the region states that it takes them.
inline bool serves_atomics(const rpma_conn &conn, const rpma_mr_remote &region) {
    return (region.usage & RPMA_MR_USAGE_ATOMIC) != 0 && conn.device->atomics;
}

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
           (work.reserved0 | work.nsge | work.reserved1 |
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

// Remote atomics are the last two kinds.
inline bool is_atomic(const rpma_work &work) {
    return (static_cast<unsigned>(work.type) | 1) == RPMA_WORK_COMPARE_SWAP;
}

// A remote atomic with nothing wrong about it, which both sides serve.
[[gnu::always_inline]] inline bool is_usual_atomic(const rpma_conn &conn,
                                                   const rpma_work &work) {
    return has_valid_flags(work.flags, 0) && work.local.mr != nullptr &&
           work.remote != nullptr &&
           (work.reserved0 | work.nsge | work.reserved1 |
            reinterpret_cast<uintptr_t>(work.sgl) | (work.local.len ^ ATOMIC_SIZE) |
            (work.remote->addr + work.remote_offset) % ATOMIC_SIZE) == 0 &&
           serves_atomics(conn, *work.remote);
}

// Fills a slot with such an operation. It is fenced: it takes effect behind all reads and
// flushes before it, as an atomic write does.
[[gnu::always_inline]] inline void fill_usual_atomic(Slot &slot, const rpma_work &work) {
    const bool is_swap = work.type == RPMA_WORK_COMPARE_SWAP;
    slot.sges[0] = slice(*work.local.mr, work.local.offset, ATOMIC_SIZE);
    slot.type = static_cast<uint8_t>(work.type);
    describe(slot.wr, is_swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD, 1,
             signaled(work.flags) | IBV_SEND_FENCE, 0, work.op_context);
    // init_send_wqe() of rxe copies the swap of an addition, too.
    slot.wr.wr.atomic = {work.remote->addr + work.remote_offset,
                         is_swap ? work.compare : work.value, work.value, work.remote->rkey};
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
