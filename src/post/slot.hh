// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// slot.hh -- an operation of an array or a batch as a work request
//
// A slot is filled from a struct rpma_work. Flushes and atomic writes store what is necessary
// to fill them again if the other side advertises other capabilities.

#pragma once

#include "core/conn.hh"
#include "core/peer.hh"
#include "post/pieces.hh"

namespace rpma {

struct Slot {
    ibv_send_wr wr;      // the first member: a work request is cast to its slot
    uint64_t value;      // of an atomic write; the offset of a flush beyond its region
    uint32_t flush_len;  // of a native flush
    uint32_t flush_ways; // the methods that the region allows
    uint8_t flush_type;  // enum rpma_flush_type
    uint8_t read_len;    // bytes that an emulated flush reads; 0: the offset is beyond the
                         // region
    uint8_t type;        // enum rpma_work_type
    bool is_aligned;     // of an atomic write
    ibv_sge sges[1];     // in a batch, as many as an operation of the connection may have
};

// The size of a remote atomic.
inline constexpr std::size_t ATOMIC_SIZE = 8;

// Is true if this side's device has remote atomics and the region advertises that it accepts
// them.
inline bool serves_atomics(const rpma_conn &conn, const rpma_mr_remote &region) {
    return (region.usage & RPMA_MR_USAGE_ATOMIC) != 0 && conn.device->atomics;
}

// The kinds of operations in a list. Sticky: replacing an operation does not clear its kind.
struct Kinds {
    bool has_natives : 1 = false; // the list needs an extended queue pair
    bool has_pieces : 1 = false;  // an operation has several SGEs
    bool has_ways : 1 = false;    // it has a flush or atomic write: see FlushWays::generation()
};

// SGEs for operations with several SGEs, in slots with room for one.
struct SpareElements {
    ibv_sge *next;
    uint32_t left;
};

// Is true if flags are RPMA_F_COMPLETION_* and, optionally, flags of allowed.
constexpr bool has_valid_flags(int flags, int allowed) {
    return (flags & ~(allowed | IBV_SEND_SIGNALED)) == RPMA_F_COMPLETION_ON_ERROR;
}

// Selects the fast path: a valid write with one SGE.
inline bool is_usual_write(const rpma_work &work) {
    return work.type == RPMA_WORK_WRITE && has_valid_flags(work.flags, RPMA_F_INLINE) &&
           (work.reserved0 | work.nsge | work.reserved1 |
            reinterpret_cast<uintptr_t>(work.sgl)) == 0 &&
           work.local.mr != nullptr && work.local.len <= UINT32_MAX && work.remote != nullptr;
}

// Fills a slot with such a write. The caller sets the slot's link and its pointer to the SGEs.
[[gnu::always_inline]] inline void fill_usual_write(Slot &slot, const rpma_work &work) {
    slot.sges[0] = slice(*work.local.mr, work.local.offset, work.local.len);
    slot.type = RPMA_WORK_WRITE;
    describe(slot.wr, IBV_WR_RDMA_WRITE, 1, carrying(work.flags), 0, work.op_context);
    address(slot.wr, *work.remote, work.remote_offset);
}

// Remote atomics are the last two types.
inline bool is_atomic(const rpma_work &work) {
    return (static_cast<unsigned>(work.type) | 1) == RPMA_WORK_COMPARE_SWAP;
}

// Selects the fast path: a valid remote atomic that both sides serve.
[[gnu::always_inline]] inline bool is_usual_atomic(const rpma_conn &conn,
                                                   const rpma_work &work) {
    return has_valid_flags(work.flags, 0) && work.local.mr != nullptr &&
           work.remote != nullptr &&
           (work.reserved0 | work.nsge | work.reserved1 |
            reinterpret_cast<uintptr_t>(work.sgl) | (work.local.len ^ ATOMIC_SIZE) |
            (work.remote->addr + work.remote_offset) % ATOMIC_SIZE) == 0 &&
           serves_atomics(conn, *work.remote);
}

// Fills a slot with such an atomic. It is fenced: it takes effect after all earlier reads and
// flushes, like an atomic write.
[[gnu::always_inline]] inline void fill_usual_atomic(Slot &slot, const rpma_work &work) {
    const bool is_swap = work.type == RPMA_WORK_COMPARE_SWAP;
    slot.sges[0] = slice(*work.local.mr, work.local.offset, ATOMIC_SIZE);
    slot.type = static_cast<uint8_t>(work.type);
    describe(slot.wr, is_swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD, 1,
             signaled(work.flags) | IBV_SEND_FENCE, 0, work.op_context);
    // For an addition, too, init_send_wqe() of rxe copies the swap value.
    slot.wr.wr.atomic = {work.remote->addr + work.remote_offset,
                         is_swap ? work.compare : work.value, work.value, work.remote->rkey};
}

// Fills a slot with any operation, valid or not. If spare is given, several SGEs are taken from
// it. 0, or RPMA_E_INVAL or RPMA_E_NOSUPP, which are logged unless earlier operations are
// posted first; then RPMA_E_INVAL may also mean that spare is used up. On failure the slot is
// unusable.
[[gnu::noinline]] int fill(const Origin &origin, rpma_conn &conn, Slot &slot,
                           const rpma_work &work, Kinds &kinds, SpareElements *spare);

// Fills the flush or atomic write of a slot for the method that the connection uses now. 0,
// RPMA_E_INVAL, RPMA_E_NOSUPP.
int choose_way(const Origin &origin, rpma_conn &conn, Slot &slot, Kinds &kinds);

} // namespace rpma
