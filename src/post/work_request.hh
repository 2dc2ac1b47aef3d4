// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// work_request.hh -- fills only those members of a work request that its opcode reads
//
// The other members of the ibv_send_wr stay uninitialised on the stack: clearing 128 bytes
// would cost more than the rest of a post.

#pragma once

#include "core/mr.hh"
#include "post/tuned.hh"

namespace rpma {

// RPMA_F_COMPLETION_ALWAYS without the bit that every operation has.
inline unsigned signaled(int flags) {
    static_assert(IBV_SEND_SIGNALED ==
                  (RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR));
    return static_cast<unsigned>(flags) & IBV_SEND_SIGNALED;
}

// The same, and RPMA_F_INLINE. Only operations that send data may have it: for a read, rxe
// would copy the destination memory (init_send_wqe() of rdma-core 56).
inline unsigned carrying(int flags) {
    static_assert(IBV_SEND_INLINE == RPMA_F_INLINE);
    return static_cast<unsigned>(flags) & (IBV_SEND_SIGNALED | IBV_SEND_INLINE);
}

// The same for messages and immediate data, which may also be solicited.
inline unsigned announcing(int flags) {
    static_assert(IBV_SEND_SOLICITED == RPMA_F_SOLICITED);
    return static_cast<unsigned>(flags) &
           (IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_SOLICITED);
}

inline ibv_sge slice(const rpma_mr_local &mr, std::size_t offset, std::size_t len) {
    return {mr.addr + offset, static_cast<uint32_t>(len), mr.lkey};
}

inline uint64_t context_id(const void *op_context) {
    return reinterpret_cast<uintptr_t>(op_context);
}

// The caller sets the list of SGEs and the next request. Providers copy the immediate data for
// every opcode (ibv_cmd_post_send() of libibverbs, rxe_post_send() of rxe).
inline void describe(ibv_send_wr &wr, ibv_wr_opcode opcode, int num_sge, unsigned flags,
                     uint32_t imm, const void *op_context) {
    wr.wr_id = context_id(op_context);
    wr.num_sge = num_sge;
    wr.opcode = opcode;
    set_flags(wr, flags, imm);
}

inline void address(ibv_send_wr &wr, const rpma_mr_remote &mr, std::size_t offset) {
    wr.wr.rdma.remote_addr = mr.addr + offset;
    wr.wr.rdma.rkey = mr.rkey;
}

// For an operation without remote memory. init_send_wqe() of rxe copies the address.
inline void address_nothing(ibv_send_wr &wr) {
    wr.wr.rdma = {0, 0};
}

} // namespace rpma
