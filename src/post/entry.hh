// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// entry.hh -- an operation of an array or a batch as a work request
//
// An entry is filled from a struct rpma_work. Flushes and atomic writes store what is necessary
// to fill them again if the other side advertises other capabilities.

#pragma once

#include "core/peer.hh"
#include "post/sges.hh"
#include "post/work_request.hh"

namespace rpma {

struct Entry {
    ibv_send_wr wr;     // the first member: a work request is cast to its entry
    uint64_t value;     // of an atomic write; the offset of a flush beyond its region
    uint32_t flush_len; // of a native flush
    FlushMasks flush;   // the methods that the region allows
    uint8_t type;       // enum rpma_work_type
    uint8_t read_len;   // bytes that an emulated flush reads; 0: the offset is beyond the
                        // region
    uint8_t flush_type; // enum rpma_flush_type
    bool is_aligned;    // of an atomic write
    ibv_sge sges[1];    // in a batch, as many as an operation of the connection may have
};

inline bool is_known(rpma_flush_type type) {
    return type == RPMA_FLUSH_TYPE_PERSISTENT || type == RPMA_FLUSH_TYPE_VISIBILITY;
}

// The size of a remote atomic.
inline constexpr std::size_t ATOMIC_SIZE = 8;

// Properties of a list's operations. Sticky: replacing an operation does not clear its flag.
enum ListFlag : uint32_t {
    HAS_NATIVE = 1,    // an operation needs an extended queue pair
    HAS_MANY_SGES = 2, // an operation has several SGEs
    HAS_METHODS = 4,   // a flush or atomic write: see FlushMethods::generation()
};
using ListFlags = uint32_t;

// SGEs for operations with several SGEs, in entries with room for one.
struct SpareSges {
    ibv_sge *next;
    uint32_t left;
};

// A type of operation. It takes RPMA_F_COMPLETION_* and the flags that are not in
// refused_flags.
struct WorkKind {
    ibv_wr_opcode opcode;
    int refused_flags;
    uint32_t imm_mask; // 0: it carries no immediate data
    bool has_remote;
    bool is_special; // flushes and atomics: their SGE is not local
};

constexpr int flags_beside(int flags) {
    return ~(flags | IBV_SEND_SIGNALED);
}
inline constexpr int MESSAGE_FLAGS = RPMA_F_INLINE | RPMA_F_SOLICITED;

// Indexed by enum rpma_work_type; the first entry is not a type, and no flags are valid for it.
inline constexpr WorkKind WORK_KINDS[] = {
    {},
    {IBV_WR_RDMA_READ, flags_beside(0), 0, true, false},
    {IBV_WR_RDMA_WRITE, flags_beside(RPMA_F_INLINE), 0, true, false},
    {IBV_WR_RDMA_WRITE_WITH_IMM, flags_beside(MESSAGE_FLAGS), UINT32_MAX, true, false},
    {IBV_WR_RDMA_WRITE, flags_beside(0), 0, true, true},
    {IBV_WR_RDMA_READ, flags_beside(0), 0, true, true},
    {IBV_WR_SEND, flags_beside(MESSAGE_FLAGS), 0, false, false},
    {IBV_WR_SEND_WITH_IMM, flags_beside(MESSAGE_FLAGS), UINT32_MAX, false, false},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, flags_beside(0), 0, true, true},
    {IBV_WR_ATOMIC_CMP_AND_SWP, flags_beside(0), 0, true, true},
};

inline bool has_valid_flags(const WorkKind &kind, const rpma_work &work) {
    return (work.flags & kind.refused_flags) == RPMA_F_COMPLETION_ON_ERROR;
}

// Fills an entry with any operation, valid or not. The caller sets the link of the work request
// and its pointer to the SGEs. If spare is given, several SGEs are taken from it. 0, or
// RPMA_E_INVAL or RPMA_E_NOSUPP, which are logged unless earlier operations are posted first;
// then RPMA_E_INVAL may also mean that spare is used up. On failure the entry is unusable.
[[gnu::noinline]] int fill(const CallSite &site, rpma_conn &conn, Entry &entry,
                           const rpma_work &work, ListFlags &list, SpareSges *spare);

// Fills the flush or atomic write of an entry for the method that the connection uses now. 0,
// RPMA_E_INVAL, RPMA_E_NOSUPP.
int choose_again(const CallSite &site, rpma_conn &conn, Entry &entry, ListFlags &list);

// Logs the reason why there is no method for a flush. Returns its code.
[[gnu::cold, gnu::noinline]] int refuse_flush(const CallSite &site, const rpma_conn &conn,
                                              FlushMasks region, rpma_flush_type type);
// The same for remote atomics.
[[gnu::cold, gnu::noinline]] int refuse_atomic(const CallSite &site, const rpma_conn &conn);

#ifdef RPMA_NATIVE_FLUSH
constexpr uint8_t native_flush_type(rpma_flush_type type) {
    return type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL;
}
#endif

} // namespace rpma

// Log message: the offset of an emulated flush is beyond the region, whose size follows.
#define RPMA_BEYOND_REGION(name) \
    name " is %zu, the remote region has %" PRIu64 " bytes; possible: less than that"
