// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// list.hh -- memory lists: operations on several pieces of local memory

#pragma once

#include "api/operation.hh"

namespace rpma {

// Whether a memory list has a length that fits most elements.
inline bool is_list(const rpma_sge *sgl, int nsge, uint32_t most) {
    return static_cast<uint32_t>(nsge) <= most && (sgl != nullptr || nsge == 0);
}

inline constexpr char CONN_SETTING[] = "rpma_conn_cfg_set_max_sge";
inline constexpr char SRQ_SETTING[] = "rpma_srq_cfg_set_max_sge";

// What is wrong with a list that is none. setting asked for so many elements; most is less
// where the device reads into fewer.
[[gnu::cold, gnu::noinline]] inline int refuse_list(const char *function, const rpma_sge *sgl,
                                                    int nsge, uint32_t most, uint32_t asked,
                                                    const char *setting) {
    if (nsge < 0)
        return refuse(function, "nsge < 0");
    if (sgl == nullptr)
        return refuse(function, "sgl == NULL && nsge != 0");
    Call call(function);
    if (most < asked)
        RPMA_FAIL(call, RPMA_E_INVAL, 0,
                  "nsge is %d, at most %" PRIu32
                  " elements are possible; the device reads into "
                  "no more",
                  nsge, most);
    else
        RPMA_FAIL(call, RPMA_E_INVAL, 0,
                  "nsge is %d, at most %" PRIu32 " elements are possible; %s() asks for more",
                  nsge, most, setting);
    return call.finish();
}

// Bytes of the elements of a work request.
inline size_t room_for(int nsge) {
    return static_cast<size_t>(nsge) * sizeof(ibv_sge);
}

// Writes the elements of sgl that have bytes to sges, and yields their number. -1: an element
// is not valid, which is logged.
[[gnu::noinline]] inline int gather(const char *function, const rpma_sge *sgl, int nsge,
                                    ibv_sge *sges) {
    size_t sum = 0;
    int used = 0;
    for (int i = 0; i < nsge; i++) {
        const rpma_sge &element = sgl[i];
        if (element.mr == nullptr && (element.offset | element.len) != 0) [[unlikely]] {
            refuse(function, "an element has mr == NULL with an offset or len != 0");
            return -1;
        }
        if (element.len > UINT32_MAX - sum) [[unlikely]] {
            refuse(function, "the lengths of the elements add up to more than UINT32_MAX");
            return -1;
        }
        sum += element.len;
        if (element.len != 0)
            sges[used++] = slice(*element.mr, element.offset, element.len);
    }
    return used;
}

// An operation on a memory list of at most most elements; a message has no remote address.
template <class Target>
[[gnu::always_inline]] inline int
list_operation(const char *function, Target target, ibv_wr_opcode opcode, const rpma_sge *sgl,
               int nsge, uint32_t most, uint64_t remote_addr, uint32_t rkey, int flags,
               uint32_t imm, const void *op_context) {
    if (!is_list(sgl, nsge, most)) [[unlikely]]
        return refuse_list(function, sgl, nsge, most, target.conn().max_sge(), CONN_SETTING);
    typename Target::Request request(target);
    ibv_sge *sges = request.sges;
    if constexpr (!Target::HAS_ROOM)
        sges = static_cast<ibv_sge *>(__builtin_alloca(room_for(nsge)));
    const int used = gather(function, sgl, nsge, sges);
    if (used < 0) [[unlikely]]
        return RPMA_E_INVAL;
    describe(request.wr, opcode, used, flags_for(opcode, flags), imm, op_context);
    request.wr.wr.rdma = {remote_addr, rkey};
    target.note_elements(used);
    return target.finish(function, request, sges);
}

// A read or a write of a memory list.
template <class Target>
[[gnu::always_inline]] inline int
transfer_list(const char *function, Target target, ibv_wr_opcode opcode, const rpma_sge *sgl,
              int nsge, uint32_t most, const rpma_mr_remote *remote, size_t remote_offset,
              int flags, uint32_t imm, const void *op_context) {
    if (remote == nullptr && (nsge != 0 || remote_offset != 0)) [[unlikely]]
        return refuse(function, opcode == IBV_WR_RDMA_READ
                                    ? "src == NULL && (nsge != 0 || src_offset != 0)"
                                    : "dst == NULL && (nsge != 0 || dst_offset != 0)");
    return list_operation(function, target, opcode, sgl, nsge, most,
                          remote != nullptr ? remote->addr + remote_offset : 0,
                          remote != nullptr ? remote->rkey : 0, flags, imm, op_context);
}

// A message from a memory list.
template <class Target>
[[gnu::always_inline]] inline int
message_list(const char *function, Target target, ibv_wr_opcode opcode, const rpma_sge *sgl,
             int nsge, int flags, uint32_t imm, const void *op_context) {
    return list_operation(function, target, opcode, sgl, nsge, target.conn().max_sge(), 0, 0,
                          flags, imm, op_context);
}

} // namespace rpma
