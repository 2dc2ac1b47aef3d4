// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.cc -- descriptors in private data

#include "core/private_data.hh"

#include "core/descriptor.hh"

namespace rpma {
namespace {

constexpr std::size_t HEADER_SIZE = 3;

} // namespace

std::size_t packed_size(const rpma_mr_local *mr, const rpma_peer_cfg *pcfg) {
    return HEADER_SIZE + (mr != nullptr ? MR_DESCRIPTOR_SIZE : 0) +
           (pcfg != nullptr ? PEER_CFG_DESCRIPTOR_SIZE : 0);
}

void pack(const rpma_mr_local *mr, const rpma_peer_cfg *pcfg, unsigned char *out) {
    *out++ = PACKED;
    *out++ = mr != nullptr ? MR_DESCRIPTOR_SIZE : 0;
    *out++ = pcfg != nullptr ? PEER_CFG_DESCRIPTOR_SIZE : 0;
    if (mr != nullptr) {
        mr->describe(out);
        out += MR_DESCRIPTOR_SIZE;
    }
    if (pcfg != nullptr)
        pcfg->describe(out);
}

bool unpack(Call &call, const rpma_conn_private_data &pdata, Unpacked *unpacked) {
    auto *in = static_cast<unsigned char *>(pdata.ptr);
    if (in == nullptr || pdata.len < HEADER_SIZE || *in != PACKED) {
        RPMA_REJECT(
            call, "the private data was not packed by rpma_conn_private_data_pack(): %u bytes",
            pdata.len);
        return false;
    }
    const std::size_t mr_size = in[1], pcfg_size = in[2],
                      size = HEADER_SIZE + mr_size + pcfg_size;
    if (pdata.len < size) {
        RPMA_REJECT(call, "the private data is cut: %u bytes, the descriptors end at %zu",
                    pdata.len, size);
        return false;
    }
    // One of a peer configuration has its byte, if it is there at all.
    static_assert(PEER_CFG_DESCRIPTOR_SIZE == 1);
    if (mr_size != 0 && mr_size < MR_DESCRIPTOR_SIZE) {
        RPMA_REJECT(
            call,
            "the packed descriptor of a region is too small: %zu bytes, it has at least %zu",
            mr_size, MR_DESCRIPTOR_SIZE);
        return false;
    }
    unpacked->mr = mr_size != 0 ? in + HEADER_SIZE : nullptr;
    unpacked->pcfg = pcfg_size != 0 ? in + HEADER_SIZE + mr_size : nullptr;
    unpacked->rest = {in + size, static_cast<uint8_t>(pdata.len - size)};
    return true;
}

} // namespace rpma
