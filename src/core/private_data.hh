// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.hh -- a copy of the private data that came with a connection, and the
// descriptors that it may carry

#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/config.hh"
#include "core/mr.hh"

namespace rpma {

class PrivateData {
  public:
    // Copies len bytes, if there are any. False: no memory.
    bool copy(const void *ptr, uint8_t len) {
        if (ptr == nullptr || len == 0)
            return true;
        bytes_.reset(std::malloc(len));
        if (!bytes_)
            return false;
        std::memcpy(bytes_.get(), ptr, len);
        len_ = len;
        return true;
    }

    bool empty() const { return !bytes_; }
    // Valid as long as this object, or the one it was moved to, lives.
    rpma_conn_private_data view() const { return {bytes_.get(), len_}; }

  private:
    struct Free {
        void operator()(void *bytes) const { std::free(bytes); }
    };
    std::unique_ptr<void, Free> bytes_;
    uint8_t len_ = 0;
};

// Packed private data: PACKED, the size of a region's descriptor and that of a peer
// configuration's (a byte each, 0: there is none), the descriptors, and whatever the program
// adds. A byte that no UTF-8 text has, and that is odd, as hardly an address is with which a
// bare descriptor begins.
inline constexpr unsigned char PACKED = 0xf5;

// Bytes that pack() writes. NULL: there is none of them.
std::size_t packed_size(const rpma_mr_local *mr, const rpma_peer_cfg *pcfg);
void pack(const rpma_mr_local *mr, const rpma_peer_cfg *pcfg, unsigned char *out);

struct Unpacked {
    const unsigned char *mr, *pcfg; // the descriptors, whole; nullptr: there is none
    rpma_conn_private_data rest;
};
// False: RPMA_E_INVAL.
bool unpack(Call &call, const rpma_conn_private_data &pdata, Unpacked *unpacked);

} // namespace rpma
