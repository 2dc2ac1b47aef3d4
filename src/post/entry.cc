// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// entry.cc -- the slow path of all operations: checks a struct rpma_work and builds its entry

#include "post/entry.hh"

namespace rpma {

namespace {

// Returns true if 8 bytes at the remote address can be written atomically. If not, the
// connection logs one warning: a program with a misaligned region repeats this with every
// write.
bool check_alignment(const char *function, rpma_conn &conn, uint64_t addr) {
    if (addr % RPMA_ATOMIC_WRITE_ALIGNMENT == 0)
        return true;
    if (!conn.warned_of_misalignment.exchange(true))
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, function,
                 "the remote address is not a multiple of %d: the write may not be atomic",
                 RPMA_ATOMIC_WRITE_ALIGNMENT);
    return false;
}

void set_flush_read(const rpma_conn &conn, Entry &entry) {
    entry.wr.opcode = IBV_WR_RDMA_READ;
    entry.wr.num_sge = 1;
    entry.sges[0] = conn.flush_read;
    entry.sges[0].length = entry.read_len;
}

int choose_flush_method(const CallSite &site, rpma_conn &conn, Entry &entry,
                        [[maybe_unused]] ListFlags &list_flags) {
    const auto type = static_cast<rpma_flush_type>(entry.flush_type);
    const FlushMethod method = conn.flush.choose(site.function, entry.flush, type);
#ifdef RPMA_NATIVE_FLUSH
    if (method == FlushMethod::NATIVE) {
        set_native(entry, IBV_WR_FLUSH, list_flags);
        return 0;
    }
#endif
    if (method == FlushMethod::NONE)
        return refuse_flush(site, conn, entry.flush, type);
    RPMA_REFUSE_AS(site, entry.read_len == 0, RPMA_BEYOND_REGION, site.names().remote_offset,
                   std::size_t{entry.value}, entry.sges[0].addr);
    set_flush_read(conn, entry);
    return 0;
}

} // namespace

int choose_method_again(const CallSite &site, rpma_conn &conn, Entry &entry,
                        ListFlags &list_flags) {
    if (entry.type == RPMA_WORK_FLUSH)
        return choose_flush_method(site, conn, entry, list_flags);
    if (entry.type == RPMA_WORK_ATOMIC_WRITE)
        choose_write_method(conn, entry, list_flags);
    return 0;
}

namespace {

int build_flush(const CallSite &site, rpma_conn &conn, Entry &entry, const rpma_work &work,
                ListFlags &list_flags) {
    RPMA_REFUSE_AS(site, work.remote == nullptr, "%s == NULL", site.names().remote);
    RPMA_REFUSE_AS(site, !is_known(work.flush_type), "%s is %d; possible: RPMA_FLUSH_TYPE_*",
                   site.names().flush_type, static_cast<int>(work.flush_type));
    RPMA_REFUSE_AS(site, work.flush_len > UINT32_MAX, RPMA_TOO_LONG, site.names().flush_len,
                   work.flush_len);
    set_flush(entry, work, *work.remote, IBV_WR_RDMA_READ, 1);
    list_flags |= HAS_METHODS;
    const uint64_t size = work.remote->size;
    uint64_t rest = 0;
    if (work.remote_offset < size) [[likely]] {
        rest = size - work.remote_offset;
    } else { // for the log: see choose_flush_method()
        entry.value = work.remote_offset;
        entry.sges[0].addr = size;
    }
    entry.read_len =
        static_cast<uint8_t>(rest < FLUSH_READ_SIZE ? rest : uint64_t{FLUSH_READ_SIZE});
    return choose_method_again(site, conn, entry, list_flags);
}

int build_atomic_write(const CallSite &site, rpma_conn &conn, Entry &entry,
                       const rpma_work &work, ListFlags &list_flags) {
    RPMA_REFUSE_AS(site, work.remote == nullptr, "%s == NULL", site.names().remote);
    RPMA_REFUSE_AS(site, work.remote_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0, RPMA_MISALIGNED,
                   site.names().remote_offset, work.remote_offset);
    set_atomic_write(entry, work, *work.remote, list_flags);
    entry.is_aligned = check_alignment(site.function, conn, work.remote->addr);
    return choose_method_again(site, conn, entry, list_flags);
}

// Fills the SGEs of an operation. 0, RPMA_E_INVAL.
int build_entry_sges(const CallSite &site, const rpma_conn &conn, Entry &entry,
                     const rpma_work &work, ListFlags &list_flags, SpareSges *spare) {
    const SgeList source = choose_sges(site, work.local, work.sgl, work.nsge);
    if (source.sgl == nullptr)
        return RPMA_E_INVAL;
    const SgeLimit limit = sge_limit(conn, work.type);
    ibv_sge *sges = entry.sges;
    if (spare != nullptr && source.nsge > 1 && source.nsge <= limit.max) {
        if (source.nsge > spare->left)
            return RPMA_E_INVAL; // spare has room for the first operation of each list
        sges = spare->next;
    }
    entry.wr.num_sge = build_sges(site, source, limit, sges);
    if (entry.wr.num_sge < 0)
        return RPMA_E_INVAL;
    entry.wr.sg_list = sges;
    if (entry.wr.num_sge > 1)
        list_flags |= HAS_MANY_SGES;
    if (sges != entry.sges) {
        spare->next += entry.wr.num_sge;
        spare->left -= static_cast<uint32_t>(entry.wr.num_sge);
    }
    return 0;
}

int build_atomic(const CallSite &site, const rpma_conn &conn, Entry &entry,
                 const rpma_work &work) {
    RPMA_REFUSE_AS(site, work.remote == nullptr, "%s == NULL", site.names().remote);
    RPMA_REFUSE_IN(site, work.local.mr == NULL);
    RPMA_REFUSE_AS(site, work.local.len != ATOMIC_SIZE,
                   "local.len is %zu; possible: 8, the size of the fetched value",
                   work.local.len);
    RPMA_REFUSE_AS(site, work.nsge != 0 || work.sgl != nullptr,
                   "a list is given, nsge is %" PRIu32
                   "; possible: local alone, sgl NULL and nsge 0",
                   work.nsge);
    const uint64_t rest = (work.remote->addr + work.remote_offset) % ATOMIC_SIZE;
    RPMA_REFUSE_AS(site, rest != 0,
                   "remote_offset is %zu, the remote address modulo 8 is %" PRIu64
                   "; possible: 0",
                   work.remote_offset, rest);
    if (!has_atomics(conn, *work.remote))
        return refuse_atomic(site, conn);
    entry.wr.sg_list = entry.sges;
    set_atomic(entry, work);
    return 0;
}

const char *flags_text(const WorkKind &kind) {
    if ((kind.refused_flags & RPMA_F_INLINE) != 0)
        return "only RPMA_F_COMPLETION_*";
    return (kind.refused_flags & RPMA_F_SOLICITED) != 0
               ? "RPMA_F_COMPLETION_* and RPMA_F_INLINE"
               : "RPMA_F_COMPLETION_*, RPMA_F_INLINE and RPMA_F_SOLICITED";
}

// Checks that a read or write has either both local and remote memory, or none. 0,
// RPMA_E_INVAL.
[[gnu::always_inline]] inline int check_remote(const CallSite &site, const rpma_work &work) {
    const bool is_empty = work.nsge == 0 && work.local.mr == nullptr;
    RPMA_REFUSE_AS(site, is_empty && work.remote != NULL,
                   "work.remote is given, and neither local.mr nor sgl");
    RPMA_REFUSE_AS(site, !is_empty && work.remote == NULL, "work.remote == NULL");
    RPMA_REFUSE_AS(site, work.remote == NULL && work.remote_offset != 0,
                   "work.remote is NULL, remote_offset %zu; possible: 0", work.remote_offset);
    return 0;
}

} // namespace

int build_entry(const CallSite &site, rpma_conn &conn, Entry &entry, const rpma_work &work,
                ListFlags &list_flags, SpareSges *spare) {
    RPMA_REFUSE_AS(site, work.type < RPMA_WORK_READ || work.type > RPMA_WORK_COMPARE_SWAP,
                   "type is %d; possible: RPMA_WORK_*", static_cast<int>(work.type));
    RPMA_REFUSE_AS(site, work.reserved0 != 0, RPMA_RESERVED("work.reserved0"),
                   uint64_t{work.reserved0});
    RPMA_REFUSE_AS(site, work.reserved1 != 0, RPMA_RESERVED("work.reserved1"), work.reserved1);
    const WorkKind &kind = WORK_KINDS[work.type];
    RPMA_REFUSE_AS(site, invalid_bits(kind, work) != 0, "flags are 0x%x; possible: %s",
                   static_cast<unsigned>(work.flags), flags_text(kind));
    entry.type = static_cast<uint8_t>(work.type);
    if (work.type == RPMA_WORK_FLUSH)
        return build_flush(site, conn, entry, work, list_flags);
    if (work.type == RPMA_WORK_ATOMIC_WRITE)
        return build_atomic_write(site, conn, entry, work, list_flags);
    if (kind.is_special)
        return build_atomic(site, conn, entry, work);

    if (kind.has_remote)
        if (const int code = check_remote(site, work))
            return code;
    if (const int code = build_entry_sges(site, conn, entry, work, list_flags, spare))
        return code;
    set_wr(entry.wr, kind.opcode, entry.wr.num_sge, flag_bits(work), work.imm & kind.imm_mask,
           work.op_context);
    if (kind.has_remote && work.remote != nullptr)
        set_remote(entry.wr, *work.remote, work.remote_offset);
    else
        clear_remote(entry.wr);
    return 0;
}

} // namespace rpma
