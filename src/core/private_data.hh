// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.hh -- a copy of the private data of a connection event

#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/allocation.hh"
#include "librpma.h"

namespace rpma {

class PrivateData {
  public:
    // Copies len bytes, if there are any. Returns false if there is no memory.
    bool copy(const void *ptr, uint8_t len) {
        if (ptr == nullptr || len == 0) // GCOVR_EXCL_BR_LINE: librdmacm sets both or none
            return true;
        bytes_.reset(std::malloc(len));
        if (!bytes_)
            return false;
        std::memcpy(bytes_.get(), ptr, len);
        len_ = len;
        return true;
    }

    bool empty() const { return !bytes_; }
    // Valid until this object, or the one it was moved to, is destroyed.
    rpma_conn_private_data view() const { return {bytes_.get(), len_}; }

  private:
    std::unique_ptr<void, Free> bytes_;
    uint8_t len_ = 0;
};

} // namespace rpma
