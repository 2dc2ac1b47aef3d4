// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// descriptor.hh -- descriptors of regions and of peer configurations: no version, no padding,
// little-endian

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/call.hh"

namespace rpma {

// Memory region: address (8 bytes), size (8), rkey (4), usage (1).
inline constexpr std::size_t MR_DESCRIPTOR_SIZE = 21;
// Peer configuration: direct write to PMem, and the operations that the device serves (1).
inline constexpr std::size_t PEER_CFG_DESCRIPTOR_SIZE = 1;

struct Region {
    uint64_t addr;
    uint64_t size; // bytes
    uint32_t rkey;
    uint16_t usage; // RPMA_MR_USAGE_*; the descriptor holds the low 8 bits
};

// The capabilities of the device in a peer configuration: 0 if not advertised, otherwise SERVES
// with the bits of the operations that the device serves natively.
inline constexpr uint8_t SERVES = 0xa0;
inline constexpr uint8_t SERVES_FLUSH = 0x02;
inline constexpr uint8_t SERVES_ATOMIC_WRITE = 0x04;

constexpr bool is_served_mask(unsigned byte) {
    return (byte & ~unsigned{SERVES_FLUSH | SERVES_ATOMIC_WRITE}) == SERVES;
}

// Releases before 1.4 write 0 or 1, and read 0 as no and every other byte as yes. Therefore the
// byte is 0 without direct write to PMem, whatever the device serves. With direct write, bit 0
// is set, and the other bits are the capabilities.
inline unsigned char put_peer_cfg(bool direct_write_to_pmem, uint8_t served) {
    return direct_write_to_pmem ? static_cast<unsigned char>(1 | served) : 0;
}
inline uint8_t served_of(unsigned char byte) {
    const auto served = static_cast<uint8_t>(byte & ~1U);
    return byte != served && is_served_mask(served) ? served : 0;
}

// Returns false on failure: RPMA_E_INVAL. More bytes than needed are valid: the rest is
// ignored.
inline bool check_descriptor_size(Call &call, std::size_t size, std::size_t needed) {
    if (size < needed)
        RPMA_REJECT(call, "desc_size is %zu; possible: %zu and more", size, needed);
    return size >= needed;
}

// Writes the low size bytes of value, returns the position after them.
inline unsigned char *put_le(unsigned char *out, uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; i++)
        *out++ = static_cast<unsigned char>(value >> (8 * i));
    return out;
}

// Reads size bytes and advances in to the position after them.
inline uint64_t get_le(const unsigned char *&in, std::size_t size) {
    uint64_t value = 0;
    for (std::size_t i = 0; i < size; i++)
        value |= static_cast<uint64_t>(*in++) << (8 * i);
    return value;
}

// Writes MR_DESCRIPTOR_SIZE bytes, returns the position after them.
inline unsigned char *put_region(unsigned char *out, const Region &region) {
    out = put_le(out, region.addr, 8);
    out = put_le(out, region.size, 8);
    out = put_le(out, region.rkey, 4);
    return put_le(out, region.usage, 1);
}

// Reads MR_DESCRIPTOR_SIZE bytes.
inline Region get_region(const unsigned char *in) {
    Region region;
    region.addr = get_le(in, 8);
    region.size = get_le(in, 8);
    region.rkey = static_cast<uint32_t>(get_le(in, 4));
    region.usage = *in;
    return region;
}

} // namespace rpma
