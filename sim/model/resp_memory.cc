// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// resp_memory.cc -- the memory of a request, at both sides; memory windows.

#include "resp_parts.hh"

#include <algorithm>

namespace sim {

static constexpr size_t CHUNK = 256 << 10;

sim_fault Fabric::check_range(const Mr *mr, const ibv_sge &sge, const Pd *pd, unsigned access) {
    const sim_region region = mr ? mr->checked() : sim_region{};
    return sim_check_range(mr ? &region : nullptr, pd, access, sge.addr, sge.length);
}

static MemoryRange range_in(const Region &mr, uint64_t address, uint64_t length) {
    const uint64_t offset = address - mr.iova;
    return {mr.program,       mr.address + offset,
            length,           (mr.access & IBV_ACCESS_ON_DEMAND) != 0,
            mr.is_persistent, mr.length - offset};
}

uint64_t length_of(const MemoryRanges &places) {
    uint64_t length = 0;
    for (const MemoryRange &place : places)
        length += place.length;
    return length;
}

// Memory of a region stays mapped for the device, so a program that unmaps it gets no error.
bool read_range(const MemoryRange &place, uint64_t offset, void *to, size_t length) {
    if (!place.program) {
        memcpy(to, reinterpret_cast<const char *>(place.address) + offset, length);
        return true;
    }
    if (place.may_fail ? place.program->read(place.address + offset, to, length)
                       : place.program->read_pinned(place.address + offset, to, length))
        return true;
    memset(to, 0, length);
    return !place.may_fail;
}

bool write_range(const MemoryRange &place, uint64_t offset, const void *from, size_t length) {
    if (place.program && place.may_fail)
        return place.program->write(place.address + offset, from, length, place.writer);
    if (place.program)
        place.program->write_pinned(place.address + offset, from, length, place.writer);
    else
        memcpy(reinterpret_cast<char *>(place.address) + offset, from, length);
    return true;
}

Copied copy(const MemoryRanges &from, const MemoryRanges &to) {
    static char buffer[CHUNK];
    size_t source = 0, target = 0;
    uint64_t source_offset = 0, target_offset = 0;
    while (source < from.size() && target < to.size()) {
        const MemoryRange &in = from[source], &out = to[target];
        const size_t n =
            static_cast<size_t>(std::min({in.length - source_offset, out.length - target_offset,
                                          static_cast<uint64_t>(CHUNK)}));
        if (n > 0 && !read_range(in, source_offset, buffer, n))
            return NO_SOURCE;
        if (n > 0 && !write_range(out, target_offset, buffer, n))
            return NO_TARGET;
        source_offset += n;
        target_offset += n;
        if (source_offset == in.length)
            source++, source_offset = 0;
        if (target_offset == out.length)
            target++, target_offset = 0;
    }
    return COPIED;
}

ibv_wc_status local_ranges(Fabric &fabric, const Qp &qp, const std::vector<ibv_sge> &sges,
                           bool is_written, MemoryRanges &places) {
    for (const ibv_sge &sge : sges) {
        if (sge.length == 0)
            continue;
        const Mr *const mr = fabric.mr_of(sge.lkey);
        if (Fabric::check_range(mr, sge, qp.pd, is_written ? IBV_ACCESS_LOCAL_WRITE : 0))
            return IBV_WC_LOC_PROT_ERR;
        places.push_back(range_in(*mr, sge.addr, sge.length));
    }
    return IBV_WC_SUCCESS;
}

ibv_wc_status source_of(Fabric &fabric, const Qp &qp, const Send &send, MemoryRanges &places) {
    if (send.wr.inline_length == 0)
        return local_ranges(fabric, qp, send.sges, false, places)
                   ? qp.context->device->profile->source_error
                   : IBV_WC_SUCCESS;
    places.push_back({nullptr, reinterpret_cast<uint64_t>(send.inlined.data()),
                      send.wr.inline_length, false, false});
    return IBV_WC_SUCCESS;
}

MemoryRange data_of(Send &send) {
    return {nullptr, reinterpret_cast<uint64_t>(send.inlined.data()), send.inlined.size(),
            false, false};
}

std::vector<std::byte> data_in_program(Fabric &fabric, const Qp &qp, const Send &send) try {
    MemoryRanges from;
    if (returns_data(send.wr.opcode) || send.wr.inline_length != 0 ||
        source_of(fabric, qp, send, from))
        return {};
    std::vector<std::byte> bytes(length_of(from));
    const MemoryRange to = {nullptr, reinterpret_cast<uint64_t>(bytes.data()), bytes.size(),
                            false, false};
    return copy(from, {to}) == COPIED ? bytes : std::vector<std::byte>();
} catch (const ProgramEnded &) {
    return {};
}

// Returns the bound window with this key if the QP may use it. Linux 7.3,
// drivers/infiniband/sw/rxe/rxe_mw.c, rxe_lookup_mw()
static const Mw *window_of(Fabric &fabric, const Qp &peer, uint32_t key) {
    const Mw *const mw = fabric.mw_of(key);
    const bool is_usable =
        mw && mw->key == key && mw->mr && (mw->type == IBV_MW_TYPE_1 || mw->qp == peer.number);
    return is_usable ? mw : nullptr;
}

ibv_wc_status remote_range(Fabric &fabric, const Qp &qp, const Qp &peer, const SendWr &wr,
                           uint64_t length, MemoryRanges &places) {
    const Mw *const mw = window_of(fabric, peer, wr.rkey);
    const Mr *const mr = mw ? mw->mr : fabric.mr_of(wr.rkey);
    const sim_region region = mw ? mw->checked() : mr ? mr->checked() : sim_region{};
    const sim_send send = {wr.opcode,      wr.flags,      wr.num_sge,    length,
                           wr.remote_addr, wr.flush_type, wr.flush_level};
    const ibv_wc_status status =
        sim_check_target(peer.context->device->profile, &send, peer.attr.qp_access_flags,
                         mr ? &region : nullptr, peer.pd);
    if (status == IBV_WC_SUCCESS && wr.opcode == SIM_WR_FLUSH &&
        wr.flush_level == SIM_FLUSH_REGION)
        places.push_back(mw ? range_in(*mr, mw->start, mw->length)
                            : range_in(*mr, mr->iova, mr->length));
    else if (status == IBV_WC_SUCCESS && length > 0)
        places.push_back(range_in(
            *mr, wr.remote_addr + (mw && mw->is_zero_based() ? mw->start : 0), length));
    for (MemoryRange &place : places)
        place.writer = qp.handle;
    return status;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_mw.c, rxe_bind_mw() and rxe_check_bind_mw()
static bool bind_window(Fabric &fabric, const Qp &qp, const SendWr &wr) {
    Mw *const mw = fabric.find<Mw>(qp.session, wr.window);
    const uint64_t length = wr.flush_length;
    if (!mw || mw->key != wr.window_rkey)
        return false;
    Mr *const found = length > 0 ? fabric.mr_of(wr.region_lkey) : nullptr;
    if (length > 0 &&
        (!found || !(found->access & IBV_ACCESS_MW_BIND) ||
         ((wr.window_access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
          !(found->access & IBV_ACCESS_LOCAL_WRITE)) ||
         Fabric::check_range(found, {wr.remote_addr, 0, 0}, found->pd, 0) ||
         length > found->iova + found->length - wr.remote_addr))
        return false;
    if (mw->type == IBV_MW_TYPE_1 ? (wr.window_access & IBV_ACCESS_ZERO_BASED) != 0
                                  : mw->mr || mw->pd != qp.pd || length == 0)
        return false;
    mw->use(found);
    mw->key = (mw->key & ~0xffU) | (wr.rkey & 0xff);
    mw->qp = qp.number;
    mw->start = wr.remote_addr;
    mw->length = length;
    mw->access = wr.window_access;
    return true;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_mw.c, rxe_invalidate_mw(); rxe_mr.c,
// rxe_invalidate_mr(), refuses the key of a region of a program.
bool invalidate_window(Fabric &fabric, uint32_t key) {
    Mw *const mw = fabric.mw_of(key);
    if (!mw || mw->key != key || mw->type != IBV_MW_TYPE_2 || !mw->mr)
        return false;
    mw->use(nullptr);
    return true;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_req.c, rxe_do_local_ops()
Result execute_window(Fabric &fabric, Qp &qp, Send &send) {
    if (send.wr.opcode == IBV_WR_BIND_MW)
        return done(send,
                    bind_window(fabric, qp, send.wr) ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR);
    return done(send, invalidate_window(fabric, send.wr.imm_data) ? IBV_WC_SUCCESS
                                                                  : IBV_WC_LOC_QP_OP_ERR);
}

// Records a write of `length` bytes, which can be less than the places have: a message is
// shorter than its receive.
void record_write(Fabric &fabric, Qp &qp, const MemoryRanges &places, uint64_t length) {
    for (MemoryRange place : places) {
        place.length = std::min(place.length, length);
        length -= place.length;
        if (place.length == 0)
            return;
        fabric.clear_poison(place);
        if (!place.is_persistent)
            continue;
        UnflushedWrite *const last = qp.written.empty() ? nullptr : &qp.written.back();
        if (last && last->program == place.program &&
            last->address + last->length == place.address)
            last->length += place.length;
        else
            qp.written.push_back({place.program, place.address, place.length});
    }
}

void make_persistent(Fabric &fabric, Qp &qp, const Send &send, const MemoryRanges &range,
                     uint64_t length) {
    const sim_reach reach = sim_made_persistent(fabric.options().platform, send.wr.opcode,
                                                send.wr.flush_type, length);
    if (reach == SIM_ALL_WRITES) {
        for (const UnflushedWrite &written : qp.written)
            written.program->persist(written.address, written.length, qp.handle);
        qp.written.clear();
    } else if (reach != SIM_NO_WRITES) {
        for (const MemoryRange &place : range)
            if (place.is_persistent)
                place.program->persist(place.address,
                                       reach == SIM_WRITES_IN_REST ? place.rest : place.length,
                                       qp.handle);
    }
}

} // namespace sim
