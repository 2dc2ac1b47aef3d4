// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// tuned.hh -- the tunings for the compiler, and the gain of each
//
// Measured with bench/check.py in the packaged build, by removing one at a time.

#pragma once

#include <arpa/inet.h>
#include <bit>
#include <cstddef>
#include <cstring>
#include <infiniband/verbs.h>

// An exported post writes only its work request to the stack, and the provider only reads it; a
// wait lets the provider write a pointer there. Without the stack protector, which
// distributions enable, a write and a wait take 6 instructions fewer, and a native flush 8. GCC
// 11 and clang 11 support the attribute, clang 14 only in this spelling.
#define RPMA_POST __attribute__((no_stack_protector))

namespace rpma {

// Flags and immediate data are adjacent. If there is no immediate data, one store for both
// saves 3 instructions of a read, and 1 of a flush, an atomic write and a send.
inline void set_flags(ibv_send_wr &wr, unsigned flags, uint32_t imm) {
    constexpr std::size_t position = offsetof(ibv_send_wr, send_flags);
    static_assert(offsetof(ibv_send_wr, imm_data) == position + sizeof(wr.send_flags));
    if (__builtin_constant_p(imm) && imm == 0) {
        const uint64_t flags_and_imm =
            std::endian::native == std::endian::little ? flags : uint64_t{flags} << 32;
        std::memcpy(reinterpret_cast<char *>(&wr) + position, &flags_and_imm,
                    sizeof(flags_and_imm));
        return;
    }
    wr.send_flags = flags;
    wr.imm_data = htonl(imm);
}

// A failed post needs its connection or queue for the log. It is kept in the struct that the
// provider gets a pointer into (Request, ReceiveRequest, Single), so in memory: a register
// would have to be saved across the provider's call, which takes 5 instructions of a write. The
// functions that log the failure take values, because a pointer to the request takes 3
// instructions more.
//
// Lists and batches have one function for each type of operation (RPMA_BY_TYPE): one for all
// types, with the table in memory, takes 27 instructions more in rpma_batch_set(), 12 of them
// to save registers, and 12 in rpma_post(). Writes in an array, the most frequent type, are
// filled inline, which takes 12 fewer.
//
// The conditions of a fast path are in the order conn, dst, src, flags, len: gcc 12 compiles
// others to 2 or 3 instructions more. It merges the test of count in rpma_post() with others
// unless it is a statement, which takes 2. "len >> 32" is shorter than a comparison with
// UINT32_MAX.
//
// No [[likely]] is nested in an [[unlikely]] branch: gcc treats the whole branch as likely
// then, which takes one instruction, two jumps and 0.7 ns more in rpma_cq_get_wc().

} // namespace rpma
