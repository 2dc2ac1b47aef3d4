// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// slot.cc -- fills slots with each type of operation

#include "post/slot.hh"

#include "post/flush.hh"
#include "post/send.hh"

namespace rpma {

namespace {

// Emulates a flush by a read of a few bytes.
void read_back(const rpma_conn &conn, Slot &slot) {
    slot.wr.opcode = IBV_WR_RDMA_READ;
    slot.wr.num_sge = 1;
    slot.sges[0] = conn.flush_read;
    slot.sges[0].length = slot.read_len;
}

int choose_flush_way(const Origin &origin, rpma_conn &conn, Slot &slot,
                     [[maybe_unused]] Kinds &kinds) {
    const auto type = static_cast<rpma_flush_type>(slot.flush_type);
    const uint32_t ways = ways_of(origin.function, conn, slot.flush_ways, type);
#ifdef RPMA_NATIVE_FLUSH
    if (goes(ways, NATIVELY, type)) {
        slot.wr.opcode = IBV_WR_FLUSH;
        slot.wr.num_sge = 0;
        kinds.has_natives = true;
        return 0;
    }
#endif
    if (!goes(ways, BY_READ, type) && !goes(ways, FALL_BACK, type))
        return refuse_flush(origin, conn, slot.flush_ways, type);
    RPMA_REFUSE_OPERATION_AS(origin, slot.read_len == 0, RPMA_BEHIND_REGION("remote_offset"),
                             std::size_t{slot.value}, slot.sges[0].addr);
    read_back(conn, slot);
    return 0;
}

void choose_write_way([[maybe_unused]] const rpma_conn &conn, Slot &slot,
                      [[maybe_unused]] Kinds &kinds) {
    constexpr unsigned INLINE = IBV_SEND_INLINE;
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    if (slot.is_aligned && conn.flush.writes_natively()) {
        slot.wr.opcode = IBV_WR_ATOMIC_WRITE;
        slot.wr.num_sge = 0;
        slot.wr.send_flags &= ~INLINE;
        kinds.has_natives = true;
        return;
    }
#endif
    slot.wr.opcode = IBV_WR_RDMA_WRITE;
    slot.wr.num_sge = 1;
    slot.wr.send_flags |= INLINE;
    slot.sges[0] = {reinterpret_cast<uintptr_t>(&slot.value), sizeof(slot.value), 0};
}

} // namespace

int choose_way(const Origin &origin, rpma_conn &conn, Slot &slot, Kinds &kinds) {
    if (slot.type == RPMA_WORK_FLUSH)
        return choose_flush_way(origin, conn, slot, kinds);
    if (slot.type == RPMA_WORK_ATOMIC_WRITE)
        choose_write_way(conn, slot, kinds);
    return 0;
}

namespace {

int fill_flush(const Origin &origin, rpma_conn &conn, Slot &slot, const rpma_work &work,
               Kinds &kinds) {
    RPMA_REFUSE_OPERATION(origin, work.remote == NULL);
    RPMA_REFUSE_OPERATION_AS(origin,
                             work.flush_type != RPMA_FLUSH_TYPE_PERSISTENT &&
                                 work.flush_type != RPMA_FLUSH_TYPE_VISIBILITY,
                             "flush_type is %d; possible: RPMA_FLUSH_TYPE_*",
                             static_cast<int>(work.flush_type));
    RPMA_REFUSE_OPERATION_AS(origin, work.flush_len > UINT32_MAX, RPMA_TOO_LONG(flush_len),
                             work.flush_len);
    describe(slot.wr, IBV_WR_RDMA_READ, 0, signaled(work.flags), 0, work.op_context);
    address(slot.wr, *work.remote, work.remote_offset);
    slot.flush_len = static_cast<uint32_t>(work.flush_len);
    slot.flush_type = static_cast<uint8_t>(work.flush_type);
    slot.flush_ways = work.remote->flush_ways;
    const uint64_t size = work.remote->size;
    uint64_t rest = 0;
    if (work.remote_offset < size) [[likely]] {
        rest = size - work.remote_offset;
    } else { // for the log: see choose_flush_way()
        slot.value = work.remote_offset;
        slot.sges[0].addr = size;
    }
    slot.read_len =
        static_cast<uint8_t>(rest < FLUSH_READ_SIZE ? rest : uint64_t{FLUSH_READ_SIZE});
    kinds.has_ways = true;
    return choose_way(origin, conn, slot, kinds);
}

int fill_atomic_write(const Origin &origin, rpma_conn &conn, Slot &slot, const rpma_work &work,
                      Kinds &kinds) {
    RPMA_REFUSE_OPERATION(origin, work.remote == NULL);
    RPMA_REFUSE_OPERATION_AS(origin, work.remote_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0,
                             "remote_offset is %zu; possible: multiples of 8",
                             work.remote_offset);
    describe(slot.wr, IBV_WR_RDMA_WRITE, 0, signaled(work.flags) | IBV_SEND_FENCE, 0,
             work.op_context);
    address(slot.wr, *work.remote, work.remote_offset);
    slot.value = work.value;
    slot.is_aligned = check_alignment(origin.function, conn, work.remote->addr);
    kinds.has_ways = true;
    return choose_way(origin, conn, slot, kinds);
}

// Fills the SGEs of an operation. 0, RPMA_E_INVAL.
int fill_elements(const Origin &origin, const rpma_conn &conn, Slot &slot,
                  const rpma_work &work, Kinds &kinds, SpareElements *spare) {
    const Pieces pieces = choose_pieces(origin, work.local, work.sgl, work.nsge);
    if (pieces.sgl == nullptr)
        return RPMA_E_INVAL;
    const MostPieces limit = {work.type == RPMA_WORK_READ ? conn.max_read_sge : conn.max_sge,
                              conn.max_sge, CONN_PIECES};
    ibv_sge *sges = slot.sges;
    if (spare != nullptr && pieces.nsge > 1 && pieces.nsge <= limit.most) {
        if (pieces.nsge > spare->left)
            return RPMA_E_INVAL; // not for the first of a list
        sges = spare->next;
    }
    slot.wr.num_sge = gather(origin, pieces, limit, sges);
    if (slot.wr.num_sge < 0)
        return RPMA_E_INVAL;
    slot.wr.sg_list = sges;
    if (slot.wr.num_sge > 1)
        kinds.has_pieces = true;
    if (sges != slot.sges) {
        spare->next += slot.wr.num_sge;
        spare->left -= static_cast<uint32_t>(slot.wr.num_sge);
    }
    return 0;
}

[[gnu::cold, gnu::noinline]] int refuse_atomic(const Origin &origin, const rpma_conn &conn) {
    if (origin.is_behind)
        return RPMA_E_NOSUPP;
    Call call(origin.function);
    if (!conn.device->atomics)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%s%s has no remote atomics (IBV_ATOMIC_NONE): have the other side do it",
                  origin.prefix().chars, ibv_get_device_name(conn.qp->context->device));
    else
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%sthe other side does not state RPMA_MR_USAGE_ATOMIC of the remote region: "
                  "register it there with that, and hand it over with "
                  "rpma_conn_private_data_pack(), not as a descriptor",
                  origin.prefix().chars);
    return call.finish();
}

int fill_atomic(const Origin &origin, const rpma_conn &conn, Slot &slot,
                const rpma_work &work) {
    RPMA_REFUSE_OPERATION(origin, work.remote == NULL);
    RPMA_REFUSE_OPERATION(origin, work.local.mr == NULL);
    RPMA_REFUSE_OPERATION_AS(origin, work.local.len != ATOMIC_SIZE,
                             "local.len is %zu; possible: 8, for what was in the remote word",
                             work.local.len);
    RPMA_REFUSE_OPERATION_AS(origin, work.nsge != 0 || work.sgl != nullptr,
                             "a list is given, nsge is %" PRIu32
                             "; possible: local alone, sgl NULL and nsge 0",
                             work.nsge);
    const uint64_t behind = (work.remote->addr + work.remote_offset) % ATOMIC_SIZE;
    RPMA_REFUSE_OPERATION_AS(origin, behind != 0,
                             "remote_offset is %zu, where the remote address is %" PRIu64
                             " more than a multiple of 8; possible: 0 more",
                             work.remote_offset, behind);
    if (!serves_atomics(conn, *work.remote))
        return refuse_atomic(origin, conn);
    slot.wr.sg_list = slot.sges;
    fill_usual_atomic(slot, work);
    return 0;
}

struct Kind {
    ibv_wr_opcode opcode;
    bool has_imm;
    bool has_remote;
    int takes; // flags in addition to RPMA_F_COMPLETION_*
};

constexpr int MESSAGE_FLAGS = RPMA_F_INLINE | RPMA_F_SOLICITED;

// Indexed by enum rpma_work_type; the first entry is not a type.
constexpr Kind kinds_of_work[] = {
    {},
    {IBV_WR_RDMA_READ, false, true, 0},
    {IBV_WR_RDMA_WRITE, false, true, RPMA_F_INLINE},
    {IBV_WR_RDMA_WRITE_WITH_IMM, true, true, MESSAGE_FLAGS},
    {},
    {},
    {IBV_WR_SEND, false, false, MESSAGE_FLAGS},
    {IBV_WR_SEND_WITH_IMM, true, false, MESSAGE_FLAGS},
    {},
    {},
};

const char *flags_text(int takes) {
    return takes == 0               ? "only RPMA_F_COMPLETION_*"
           : takes == RPMA_F_INLINE ? "RPMA_F_COMPLETION_* and RPMA_F_INLINE"
                                    : "RPMA_F_COMPLETION_*, RPMA_F_INLINE and RPMA_F_SOLICITED";
}

// Checks that a read or write has either both local and remote memory, or none. 0,
// RPMA_E_INVAL.
[[gnu::always_inline]] inline int check_remote(const Origin &origin, const rpma_work &work) {
    const bool is_empty = work.nsge == 0 && work.local.mr == nullptr;
    RPMA_REFUSE_OPERATION_AS(origin, is_empty && work.remote != NULL,
                             "work.remote is given, and neither local.mr nor sgl");
    RPMA_REFUSE_OPERATION_AS(origin, !is_empty && work.remote == NULL, "work.remote == NULL");
    RPMA_REFUSE_OPERATION_AS(origin, work.remote == NULL && work.remote_offset != 0,
                             "work.remote is NULL, remote_offset %zu; possible: 0",
                             work.remote_offset);
    return 0;
}

} // namespace

int fill(const Origin &origin, rpma_conn &conn, Slot &slot, const rpma_work &work, Kinds &kinds,
         SpareElements *spare) {
    RPMA_REFUSE_OPERATION_AS(origin,
                             work.type < RPMA_WORK_READ || work.type > RPMA_WORK_COMPARE_SWAP,
                             "type is %d; possible: RPMA_WORK_*", static_cast<int>(work.type));
    RPMA_REFUSE_RESERVED(origin, work.reserved0);
    RPMA_REFUSE_RESERVED(origin, work.reserved1);
    const Kind &kind = kinds_of_work[work.type];
    if (!has_valid_flags(work.flags, kind.takes))
        return refuse_operation(origin, "flags are 0x%x; possible: %s",
                                static_cast<unsigned>(work.flags), flags_text(kind.takes));
    slot.type = static_cast<uint8_t>(work.type);
    if (work.type == RPMA_WORK_FLUSH)
        return fill_flush(origin, conn, slot, work, kinds);
    if (work.type == RPMA_WORK_ATOMIC_WRITE)
        return fill_atomic_write(origin, conn, slot, work, kinds);
    if (is_atomic(work))
        return fill_atomic(origin, conn, slot, work);

    if (kind.has_remote)
        if (const int code = check_remote(origin, work))
            return code;
    if (const int code = fill_elements(origin, conn, slot, work, kinds, spare))
        return code;
    describe(slot.wr, kind.opcode, slot.wr.num_sge, announcing(work.flags),
             kind.has_imm ? work.imm : 0, work.op_context);
    if (kind.has_remote && work.remote != nullptr)
        address(slot.wr, *work.remote, work.remote_offset);
    else
        address_nothing(slot.wr);
    return 0;
}

} // namespace rpma
