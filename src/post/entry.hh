// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// entry.hh -- an operation of an array or a batch as a work request
//
// Each operation has two functions that set the entry of a struct rpma_work: encode_*() is the
// fast path and rejects nothing, build_*() is the slow path, which checks and logs each value.
// The entry of a flush or atomic write holds all values for choosing its method again, if the
// other side advertises other capabilities.

#pragma once

#include <iterator>

#include "core/peer.hh"
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
    HAS_REST = 8,      // the first operations of a batch are already posted
    // The provider may return 0 although it rejected an operation, see plain_outcome().
    HIDES_REJECTIONS = 16,
};
using ListFlags = uint32_t;

// SGEs for operations with several SGEs, in entries with room for one.
struct SpareSges {
    ibv_sge *next;
    uint32_t left;
};

// A type of operation. RPMA_F_COMPLETION_* is valid for it, and so are the flags that are not
// in refused_flags.
struct WorkKind {
    ibv_wr_opcode opcode;
    uint64_t refused_flags; // of flag_bits()
    uint32_t imm_mask;      // 0: it carries no immediate data
    bool has_remote;
    bool is_special; // flushes and atomics: local is not their source or destination
};

constexpr uint64_t all_flags_except(unsigned flags) {
    return ~uint64_t{flags | IBV_SEND_SIGNALED};
}
inline constexpr int MESSAGE_FLAGS = RPMA_F_INLINE | RPMA_F_SOLICITED;

// Indexed by enum rpma_work_type; the first entry is not a type.
inline constexpr WorkKind WORK_KINDS[] = {
    {},
    {IBV_WR_RDMA_READ, all_flags_except(0), 0, true, false},
    {IBV_WR_RDMA_WRITE, all_flags_except(RPMA_F_INLINE), 0, true, false},
    {IBV_WR_RDMA_WRITE_WITH_IMM, all_flags_except(MESSAGE_FLAGS), UINT32_MAX, true, false},
    {IBV_WR_RDMA_WRITE, all_flags_except(0), 0, true, true},
    {IBV_WR_RDMA_READ, all_flags_except(0), 0, true, true},
    {IBV_WR_SEND, all_flags_except(MESSAGE_FLAGS), 0, false, false},
    {IBV_WR_SEND_WITH_IMM, all_flags_except(MESSAGE_FLAGS), UINT32_MAX, false, false},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, all_flags_except(0), 0, true, true},
    {IBV_WR_ATOMIC_CMP_AND_SWP, all_flags_except(0), 0, true, true},
};

// The flags of a work request, without the bit that every operation has, and reserved0, which
// is adjacent: compilers load both at once. Without this bit, bit 0 is set in the result.
constexpr uint64_t flag_bits(const rpma_work &work) {
    return (uint64_t{work.reserved0} << 32 | static_cast<uint32_t>(work.flags)) -
           RPMA_F_COMPLETION_ON_ERROR;
}

// 0 if the flags are valid and the reserved members are 0: then flag_bits() are send flags.
constexpr uint64_t invalid_bits(const WorkKind &kind, const rpma_work &work) {
    return (flag_bits(work) & kind.refused_flags) | work.reserved1;
}

// Builds the entry of any operation, valid or not. The caller sets the link of the work request
// and its pointer to the SGEs. Several SGEs are stored in spare, unless it is nullptr. Returns
// 0, or RPMA_E_INVAL or RPMA_E_NOSUPP, which are logged unless site.is_later is set;
// RPMA_E_INVAL then may also mean that spare is full. On failure the entry is unusable.
[[gnu::noinline]] int build_entry(const CallSite &site, rpma_conn &conn, Entry &entry,
                                  const rpma_work &work, ListFlags &list_flags,
                                  SpareSges *spare);

// Sets the flush or atomic write of an entry for the present method of the connection. 0,
// RPMA_E_INVAL, RPMA_E_NOSUPP.
int choose_method_again(const CallSite &site, rpma_conn &conn, Entry &entry,
                        ListFlags &list_flags);

#ifdef RPMA_NATIVE_FLUSH
constexpr uint8_t native_flush_type(rpma_flush_type type) {
    return type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL;
}
#endif

inline void set_native(Entry &entry, ibv_wr_opcode opcode, ListFlags &list_flags) {
    entry.wr.opcode = opcode;
    entry.wr.num_sge = 0;
    list_flags |= HAS_NATIVE;
}

inline void choose_write_method([[maybe_unused]] const rpma_conn &conn, Entry &entry,
                                [[maybe_unused]] ListFlags &list_flags) {
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    constexpr unsigned INLINE = IBV_SEND_INLINE;
    if (entry.is_aligned && conn.flush.has_native_write()) {
        set_native(entry, IBV_WR_ATOMIC_WRITE, list_flags);
        entry.wr.send_flags &= ~INLINE;
        return;
    }
    entry.wr.send_flags |= INLINE;
#endif
    entry.wr.opcode = IBV_WR_RDMA_WRITE;
    entry.wr.num_sge = 1;
    entry.sges[0] = {reinterpret_cast<uintptr_t>(&entry.value), sizeof(entry.value), 0};
}

[[gnu::always_inline]] inline void set_flush(Entry &entry, const rpma_work &work,
                                             const rpma_mr_remote &remote, ibv_wr_opcode opcode,
                                             int num_sge) {
    set_wr(entry.wr, opcode, num_sge, flag_bits(work), 0, work.op_context);
    set_remote(entry.wr, remote, work.remote_offset);
    entry.type = RPMA_WORK_FLUSH;
    entry.read_len = FLUSH_READ_SIZE;
#ifdef RPMA_NATIVE_FLUSH
    entry.flush_len = static_cast<uint32_t>(work.flush_len);
#endif
    entry.flush_type = static_cast<uint8_t>(work.flush_type);
    entry.flush = remote.flush;
}

[[gnu::always_inline]] inline void set_atomic_write(Entry &entry, const rpma_work &work,
                                                    const rpma_mr_remote &remote,
                                                    ListFlags &list_flags) {
    set_wr(entry.wr, IBV_WR_RDMA_WRITE, 1, flag_bits(work) | IBV_SEND_FENCE | IBV_SEND_INLINE,
           0, work.op_context);
    set_remote(entry.wr, remote, work.remote_offset);
    entry.type = RPMA_WORK_ATOMIC_WRITE;
    entry.value = work.value;
    list_flags |= HAS_METHODS;
}

// A remote atomic is fenced: it takes effect after all earlier reads and flushes, like an
// atomic write.
[[gnu::always_inline]] inline void set_atomic(Entry &entry, const rpma_work &work) {
    const bool is_swap = work.type == RPMA_WORK_COMPARE_SWAP;
    entry.sges[0] = make_sge(*work.local.mr, work.local.offset, ATOMIC_SIZE);
    entry.type = static_cast<uint8_t>(work.type);
    set_wr(entry.wr, WORK_KINDS[work.type].opcode, 1, flag_bits(work) | IBV_SEND_FENCE, 0,
           work.op_context);
    // init_send_wqe() of rxe copies the swap value of both atomics.
    entry.wr.wr.atomic = {work.remote->addr + work.remote_offset,
                          is_swap ? work.compare : work.value, work.value, work.remote->rkey};
}

// Returns true if this side's device has remote atomics and the region advertises that it
// accepts them.
inline bool has_atomics(const rpma_conn &conn, const rpma_mr_remote &region) {
    return (region.usage & RPMA_MR_USAGE_ATOMIC) != 0 && conn.peer.device().atomics;
}

// Sets all but the SGEs of a valid operation.
template <rpma_work_type type>
[[gnu::always_inline]] inline void encode_request(ibv_send_wr &wr, int num_sge,
                                                  const rpma_work &work,
                                                  const rpma_mr_remote *remote) {
    constexpr WorkKind kind = WORK_KINDS[type];
    set_wr(wr, kind.opcode, num_sge, flag_bits(work), work.imm & kind.imm_mask,
           work.op_context);
    if (kind.has_remote)
        set_remote(wr, *remote, work.remote_offset);
    else
        clear_remote(wr);
}

// The fast paths set an entry if the operation is valid and has one SGE, which is not empty.
// If not, the entry is unchanged. type is that of the operation.
template <rpma_work_type type>
[[gnu::always_inline]] inline bool encode_simple(Entry &entry, const rpma_work &work) {
    constexpr WorkKind kind = WORK_KINDS[type];
    if ((work.reserved1 | work.nsge | reinterpret_cast<uintptr_t>(work.sgl)) != 0) [[unlikely]]
        return false;
    if ((flag_bits(work) & kind.refused_flags) != 0) [[unlikely]]
        return false;
    const rpma_mr_local *const local = work.local.mr;
    const rpma_mr_remote *const remote = work.remote;
    if (local == nullptr || (kind.has_remote && remote == nullptr) ||
        work.local.len - 1 >= UINT32_MAX) [[unlikely]]
        return false;
    entry.sges[0] = make_sge(*local, work.local.offset, work.local.len);
    entry.type = type;
    encode_request<type>(entry.wr, 1, work, remote);
    return true;
}

[[gnu::always_inline]] inline bool encode_flush(const rpma_conn &conn, Entry &entry,
                                                const rpma_work &work, ListFlags &list_flags) {
    const rpma_mr_remote *const remote = work.remote;
    if (remote == nullptr || !is_known(work.flush_type) || work.flush_len > UINT32_MAX ||
        work.remote_offset >= remote->full_read_limit) [[unlikely]]
        return false;
    const FlushMethod method =
        choose_method(conn.flush.masks() & remote->flush, work.flush_type);
#ifdef RPMA_NATIVE_FLUSH
    if (method == FlushMethod::NATIVE) {
        set_flush(entry, work, *remote, IBV_WR_FLUSH, 0);
        list_flags |= HAS_METHODS | HAS_NATIVE;
        return true;
    }
#endif
    if (method == FlushMethod::NONE) [[unlikely]]
        return false;
    set_flush(entry, work, *remote, IBV_WR_RDMA_READ, 1);
    list_flags |= HAS_METHODS;
    entry.sges[0] = conn.flush_read;
    return true;
}

[[gnu::always_inline]] inline bool encode_atomic_write(const rpma_conn &conn, Entry &entry,
                                                       const rpma_work &work,
                                                       ListFlags &list_flags) {
    const rpma_mr_remote *remote = work.remote;
    if (remote == nullptr || work.remote_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0 ||
        remote->addr % RPMA_ATOMIC_WRITE_ALIGNMENT != 0) [[unlikely]]
        return false;
    set_atomic_write(entry, work, *remote, list_flags);
    entry.is_aligned = true;
    choose_write_method(conn, entry, list_flags);
    return true;
}

[[gnu::always_inline]] inline bool encode_atomic(const rpma_conn &conn, Entry &entry,
                                                 const rpma_work &work) {
    const rpma_mr_remote *remote = work.remote;
    if (remote == nullptr || work.local.mr == nullptr || work.local.len != ATOMIC_SIZE ||
        (work.nsge | reinterpret_cast<uintptr_t>(work.sgl)) != 0 ||
        (remote->addr + work.remote_offset) % ATOMIC_SIZE != 0 || !has_atomics(conn, *remote))
        [[unlikely]]
        return false;
    set_atomic(entry, work);
    return true;
}

// The fast path of a type, which is that of the operation.
template <rpma_work_type type>
[[gnu::always_inline]] inline bool encode(const rpma_conn &conn, Entry &entry,
                                          const rpma_work &work, ListFlags &list_flags) {
    constexpr WorkKind kind = WORK_KINDS[type];
    if constexpr (!kind.is_special)
        return encode_simple<type>(entry, work);
    if (invalid_bits(kind, work) != 0) [[unlikely]]
        return false;
    if constexpr (type == RPMA_WORK_FLUSH)
        return encode_flush(conn, entry, work, list_flags);
    else if constexpr (type == RPMA_WORK_ATOMIC_WRITE)
        return encode_atomic_write(conn, entry, work, list_flags);
    else
        return encode_atomic(conn, entry, work);
}

// A table of one function for each type: instances of a template, and none for other values.
#define RPMA_BY_TYPE(none, function)                                              \
    {                                                                             \
        none, function<RPMA_WORK_READ>, function<RPMA_WORK_WRITE>,                \
            function<RPMA_WORK_WRITE_WITH_IMM>, function<RPMA_WORK_ATOMIC_WRITE>, \
            function<RPMA_WORK_FLUSH>, function<RPMA_WORK_SEND>,                  \
            function<RPMA_WORK_SEND_WITH_IMM>, function<RPMA_WORK_FETCH_ADD>,     \
            function<RPMA_WORK_COMPARE_SWAP>                                      \
    }

// Returns true if the type of an operation has an element in a table of RPMA_BY_TYPE.
inline bool has_type(const rpma_work &work) {
    return static_cast<unsigned>(work.type) < std::size(WORK_KINDS);
}

} // namespace rpma

// Log message for the offset of an emulated flush outside its region. Values: the parameter's
// name, the offset, the size of the region.
#define RPMA_BEYOND_REGION \
    "%s is %zu, the remote region has %" PRIu64 " bytes; possible: less than that"
// Log message for the offset of an atomic write. Values: the parameter's name, the offset.
#define RPMA_MISALIGNED "%s is %zu; possible: multiples of 8"
