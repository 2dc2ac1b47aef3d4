// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// packed.hh -- private data with the capabilities and memory regions of one side
//
// Byte by byte:
//   0xf5     PACKED: UTF-8 text never contains this byte, and it is odd, unlike an aligned
//            address, with which a bare descriptor begins
//   1        version; a reader rejects every other one
//   n        number of regions
//   r        size of a region, at least 22; a reader ignores further bytes
//   s        size of the capabilities, 0 or at least 2; a reader ignores further bytes
//   b        length of the program's bytes
//   n * r    regions: the descriptor, and a byte with the flush types that may be native, and
//            ALLOWS_ATOMICS; 1.4 reads only the flush types of this byte
//   s        capabilities: the descriptor of the peer configuration, and the operations that
//            the device serves natively
//   b        the program's bytes
// The network may append zeros.

#pragma once

#include "base/call.hh"
#include "wire/descriptor.hh"

namespace rpma {

inline constexpr unsigned char PACKED = 0xf5;
inline constexpr unsigned char PACKED_VERSION = 1;
inline constexpr std::size_t PACKED_HEADER_SIZE = 6;
inline constexpr std::size_t PACKED_REGION_SIZE = MR_DESCRIPTOR_SIZE + 1;
inline constexpr uint8_t ALLOWS_ATOMICS = 0x01;
inline constexpr std::size_t PACKED_CAPABILITIES_SIZE = PEER_CFG_DESCRIPTOR_SIZE + 1;

// Each of these writes its part and returns the position after it.
unsigned char *put_header(unsigned char *out, uint32_t regions, bool has_capabilities,
                          uint32_t bytes);
// native_flush_usage: RPMA_MR_USAGE_FLUSH_TYPE_* bits.
unsigned char *put_packed_region(unsigned char *out, const Region &region,
                                 uint8_t native_flush_usage);
unsigned char *put_capabilities(unsigned char *out, bool direct_write_to_pmem, uint8_t served);

// The parts of packed private data, validated to be complete.
class Unpacked {
  public:
    // Returns false on failure: RPMA_E_INVAL.
    bool read(Call &call, const void *data, std::size_t size);

    uint32_t regions() const { return regions_; }
    Region region(uint32_t index) const;
    uint8_t native_flush_usage(uint32_t index) const {
        return region_at(index)[MR_DESCRIPTOR_SIZE];
    }
    bool has_capabilities() const { return capabilities_size_ != 0; }
    bool direct_write_to_pmem() const { return capabilities()[0] != 0; }
    // SERVES_*, 0 if not advertised.
    uint8_t served() const { return is_served_mask(capabilities()[1]) ? capabilities()[1] : 0; }
    const unsigned char *bytes() const { return capabilities() + capabilities_size_; }
    uint32_t bytes_size() const { return bytes_size_; }

  private:
    const unsigned char *region_at(std::size_t index) const {
        return data_ + index * region_size_;
    }
    const unsigned char *capabilities() const { return region_at(regions_); }

    const unsigned char *data_; // after the header
    uint8_t regions_, region_size_, capabilities_size_, bytes_size_;
};

} // namespace rpma
