// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.cc -- name resolution by librdmacm

#include "verbs/address.hh"

#include <netdb.h>

namespace rpma::verbs {

Result<AddressList> resolve_name(const char *name, const char *port, Side side) {
    rdma_addrinfo hints = {};
    hints.ai_flags = side == Side::LOCAL ? RAI_PASSIVE : 0;
    hints.ai_qp_type = IBV_QPT_RC;
    hints.ai_port_space = RDMA_PS_TCP;

    rdma_addrinfo *list = nullptr;
    int result = rdma_getaddrinfo(name, port, &hints, &list);
    if (result == 0)
        return AddressList(list);
    // -1 comes with errno, everything else is a code of getaddrinfo().
    if (result == -1)
        return failed("rdma_getaddrinfo()");
    return fail({RPMA_E_PROVIDER, "rdma_getaddrinfo()", 0, gai_strerror(result)});
}

} // namespace rpma::verbs
