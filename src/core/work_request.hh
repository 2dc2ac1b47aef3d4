// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// work_request.hh -- work requests, filled with what their opcode reads and nothing else
//
// The rest of an ibv_send_wr stays as it is on the stack: clearing 128 bytes would cost more
// than all that a post does besides.

#pragma once

#include <arpa/inet.h>
#include <bit>
#include <cstddef>
#include <cstring>

#include "core/mr.hh"

namespace rpma {

// RPMA_F_COMPLETION_ALWAYS without the part that every operation has.
inline uint64_t signaled(int flags) {
    static_assert(IBV_SEND_SIGNALED ==
                  (RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR));
    return static_cast<uint64_t>(flags) & IBV_SEND_SIGNALED;
}

// The same, and whether the bytes are to be copied. Only what carries bytes away may ask for
// that: rxe would copy the memory that a read is for (init_send_wqe() of rdma-core 56).
inline uint64_t carrying(int flags) {
    static_assert(IBV_SEND_INLINE == RPMA_F_INLINE);
    return static_cast<uint64_t>(flags) & (IBV_SEND_SIGNALED | IBV_SEND_INLINE);
}

inline uint64_t flags_for(ibv_wr_opcode opcode, int flags) {
    return opcode == IBV_WR_RDMA_READ ? signaled(flags) : carrying(flags);
}

inline ibv_sge slice(const rpma_mr_local &mr, std::size_t offset, std::size_t len) {
    return {mr.addr + offset, static_cast<uint32_t>(len), mr.lkey};
}

inline uint64_t context_id(const void *op_context) {
    return reinterpret_cast<uintptr_t>(op_context);
}

// Providers copy the immediate data whatever the opcode is (ibv_cmd_post_send() of libibverbs,
// rxe_post_send() of rxe). It stands beside the flags: where it is zero, they are one store.
inline void set_flags(ibv_send_wr &wr, uint64_t flags, uint32_t imm) {
    constexpr std::size_t place = offsetof(ibv_send_wr, send_flags);
    static_assert(offsetof(ibv_send_wr, imm_data) == place + sizeof(wr.send_flags));
    if (__builtin_constant_p(imm) && imm == 0) {
        const uint64_t both = std::endian::native == std::endian::little ? flags : flags << 32;
        std::memcpy(reinterpret_cast<char *>(&wr) + place, &both, sizeof(both));
        return;
    }
    wr.send_flags = static_cast<unsigned>(flags);
    wr.imm_data = htonl(imm);
}

// The elements, and what comes behind the request, are given elsewhere.
inline void describe(ibv_send_wr &wr, ibv_wr_opcode opcode, int num_sge, uint64_t flags,
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

} // namespace rpma
