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
// distributions enable, a write and a wait take 6 instructions fewer, a native flush 8, and a
// batch with native operations 12. GCC 11 and clang 11 support the attribute, clang 14 only in
// this spelling.
#define RPMA_POST __attribute__((no_stack_protector))

namespace rpma {

// Flags and immediate data are adjacent. If there is no immediate data, one store for both
// saves 3 instructions of a read, and 1 of a flush, an atomic write and a send.
inline void set_flags(ibv_send_wr &wr, uint64_t flags, uint32_t imm) {
    constexpr std::size_t position = offsetof(ibv_send_wr, send_flags);
    static_assert(offsetof(ibv_send_wr, imm_data) == position + sizeof(wr.send_flags));
    if (__builtin_constant_p(imm) && imm == 0) {
        const uint64_t flags_and_imm =
            std::endian::native == std::endian::little ? flags : flags << 32;
        std::memcpy(reinterpret_cast<char *>(&wr) + position, &flags_and_imm,
                    sizeof(flags_and_imm));
        return;
    }
    wr.send_flags = static_cast<unsigned>(flags);
    wr.imm_data = htonl(imm);
}

// The log line of a failed post needs its connection or queue. Both are in the struct that has
// the work request (Request, ReceiveRequest, Single), in memory: to keep them in a register
// across the provider's call takes 5 instructions of a write. The functions that log the
// failure have parameters by value, because a pointer to the request takes 3 instructions more.
//
// Arrays and batches have one function for each type of operation (RPMA_BY_TYPE). One function
// for all types, with WORK_KINDS in memory, takes 27 instructions more in rpma_batch_set(), 12
// of them to save registers, and 12 more in rpma_post(). Writes, the most frequent type, are
// filled inline: 12 instructions fewer in an array, 4 in rpma_post() of one write and 2 in
// rpma_batch_add(), of 1 to 4 more for other types.
//
// encode_simple() checks members that must be 0, flags and pointers in a statement each, and
// loads the pointers last: merged, gcc 12 compiles them to 5 instructions more in rpma_post()
// of one write, 8 more with a list of SGEs, and 3 more for each send of an array.
//
// The conditions of a fast path are in the order conn, dst, src, flags, len: gcc 12 compiles
// other orders to 2 or 3 instructions more; those of a send are in the order conn, src, len,
// flags, of 2 fewer. The test of count in rpma_post() is a separate
// statement: merged with other conditions, it takes 2 instructions more. "len >> 32" takes
// fewer instructions than a comparison with UINT32_MAX.
//
// Single operations (rma.cc, messages.cc) and those of rpma_post() (encode_*()) have a fast
// path each: with one for both, a struct rpma_work on the stack, gcc 12 compiled rpma_write()
// to 48 instead of 40 instructions, and rpma_flush() to 56 instead of 43.
//
// The calls of the provider that set up a connection are inline, and the reports of their
// failures out of line, with parameters by value. A setup takes 223 instructions fewer, because
// a function that formats a log line saves registers and checks its stack. The functions that
// only set_up() calls are inline, which takes 45 fewer.
//
// No [[likely]] is nested in an [[unlikely]] branch: gcc then treats the whole branch as
// likely, which takes one instruction, two jumps and 0.7 ns more in rpma_cq_get_wc().

} // namespace rpma
