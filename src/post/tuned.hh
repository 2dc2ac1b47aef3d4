// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// tuned.hh -- the few tunings for the compiler, and the gain of each
//
// Measured with bench/check.py in the packaged build, by removing one at a time.

#pragma once

#include <arpa/inet.h>
#include <bit>
#include <cstddef>
#include <cstring>
#include <infiniband/verbs.h>

// An exported post writes only its work request to the stack, and the provider only reads it.
// Without the stack protector, which distributions enable, a write takes 6 instructions fewer,
// and a native flush 8. GCC 11 and clang 11 support the attribute, clang 14 only in this
// spelling.
#define RPMA_POST __attribute__((no_stack_protector))

struct rpma_conn;

namespace rpma {

// Flags and immediate data are adjacent. If there is no immediate data, one store for both
// saves 3 instructions of a read, and 1 of a flush, an atomic write and a send.
inline void set_flags(ibv_send_wr &wr, unsigned flags, uint32_t imm) {
    constexpr std::size_t place = offsetof(ibv_send_wr, send_flags);
    static_assert(offsetof(ibv_send_wr, imm_data) == place + sizeof(wr.send_flags));
    if (__builtin_constant_p(imm) && imm == 0) {
        const uint64_t both =
            std::endian::native == std::endian::little ? flags : uint64_t{flags} << 32;
        std::memcpy(reinterpret_cast<char *>(&wr) + place, &both, sizeof(both));
        return;
    }
    wr.send_flags = flags;
    wr.imm_data = htonl(imm);
}

// A failed post needs its connection for the log. Keeping it across the provider's call costs
// two saved registers and 5 instructions; storing it in a member that only IBV_WR_TSO reads
// costs one.
inline void keep_conn(ibv_send_wr &wr, const rpma_conn &conn) {
    wr.tso.hdr = const_cast<rpma_conn *>(&conn);
}
inline const rpma_conn &kept_conn(const ibv_send_wr &wr) {
    return *static_cast<const rpma_conn *>(wr.tso.hdr);
}

} // namespace rpma
