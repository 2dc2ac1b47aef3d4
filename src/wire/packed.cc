// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// packed.cc -- writes and validates private data

#include "wire/packed.hh"

namespace rpma {

unsigned char *put_header(unsigned char *out, uint32_t regions, bool has_capabilities,
                          uint32_t bytes) {
    *out++ = PACKED;
    *out++ = PACKED_VERSION;
    *out++ = static_cast<unsigned char>(regions);
    *out++ = PACKED_REGION_SIZE;
    *out++ = has_capabilities ? PACKED_CAPABILITIES_SIZE : 0;
    *out++ = static_cast<unsigned char>(bytes);
    return out;
}

unsigned char *put_packed_region(unsigned char *out, const Region &region,
                                 uint8_t native_flush_usage) {
    out = put_region(out, region);
    *out++ = (region.usage & RPMA_MR_USAGE_ATOMIC) != 0 ? native_flush_usage | ALLOWS_ATOMICS
                                                        : native_flush_usage;
    return out;
}

Region Unpacked::region(uint32_t index) const {
    Region region = get_region(region_at(index));
    if ((region_at(index)[MR_DESCRIPTOR_SIZE] & ALLOWS_ATOMICS) != 0)
        region.usage |= RPMA_MR_USAGE_ATOMIC;
    return region;
}

unsigned char *put_capabilities(unsigned char *out, bool direct_write_to_pmem, uint8_t served) {
    *out++ = put_peer_cfg(direct_write_to_pmem, served);
    *out++ = served;
    return out;
}

bool Unpacked::read(Call &call, const void *data, std::size_t size) {
    const auto *in = static_cast<const unsigned char *>(data);
    if (in == nullptr || size < PACKED_HEADER_SIZE || in[0] != PACKED) {
        RPMA_REJECT(
            call, "the private data was not packed by rpma_conn_private_data_pack(): %zu bytes",
            size);
        return false;
    }
    if (in[1] != PACKED_VERSION) {
        RPMA_REJECT(call, "the private data has version %u, this library supports version %u",
                    in[1], PACKED_VERSION);
        return false;
    }
    regions_ = in[2];
    region_size_ = in[3];
    capabilities_size_ = in[4];
    bytes_size_ = in[5];
    data_ = in + PACKED_HEADER_SIZE;
    const std::size_t needed = PACKED_HEADER_SIZE + std::size_t{regions_} * region_size_ +
                               capabilities_size_ + bytes_size_;
    if (size < needed) {
        RPMA_REJECT(call, "the private data is truncated: its size is %zu, needed are %zu",
                    size, needed);
        return false;
    }
    if (regions_ != 0 && region_size_ < PACKED_REGION_SIZE) {
        RPMA_REJECT(call,
                    "the size of a region in the private data is %u, at least %zu are needed",
                    region_size_, PACKED_REGION_SIZE);
        return false;
    }
    if (capabilities_size_ != 0 && capabilities_size_ < PACKED_CAPABILITIES_SIZE) {
        RPMA_REJECT(
            call,
            "the size of the capabilities in the private data is %u, at least %zu are needed",
            capabilities_size_, PACKED_CAPABILITIES_SIZE);
        return false;
    }
    return true;
}

} // namespace rpma
