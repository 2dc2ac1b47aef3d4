// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.hh -- a copy of the private data that came with a connection

#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/result.hh"

namespace rpma {

class PrivateData {
  public:
    PrivateData() = default;

    // Copies len bytes; nothing is copied when there is nothing. RPMA_E_NOMEM.
    static Result<PrivateData> copy(const void *ptr, uint8_t len) {
        PrivateData data;
        if (ptr == nullptr || len == 0)
            return data;
        data.bytes_.reset(std::malloc(len));
        if (!data.bytes_)
            return out_of_memory();
        std::memcpy(data.bytes_.get(), ptr, len);
        data.len_ = len;
        return data;
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

} // namespace rpma
