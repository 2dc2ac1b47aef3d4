// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.hh -- name resolution: every address is tried in turn

#pragma once

#include <memory>
#include <rdma/rdma_cma.h>

#include "verbs/failure.hh"

namespace rpma::verbs {

enum class Side { LOCAL, REMOTE };

struct AddressListDeleter {
    void operator()(rdma_addrinfo *list) const { rdma_freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<rdma_addrinfo, AddressListDeleter>;

// port may be nullptr. The list has at least one address.
Result<AddressList> resolve_name(const char *name, const char *port, Side side);

// The result of the first address for which attempt succeeds, else the failure of the last.
template <class Attempt> auto try_each(const AddressList &list, Attempt attempt) {
    for (rdma_addrinfo *address = list.get();; address = address->ai_next) {
        auto result = attempt(*address);
        if (result || address->ai_next == nullptr)
            return result;
    }
}

} // namespace rpma::verbs
