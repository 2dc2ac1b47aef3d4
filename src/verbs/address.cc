// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.cc -- name resolution by the C library and librdmacm

#include "verbs/address.hh"

namespace rpma::verbs {

// rdma_getaddrinfo() would hand on the first address of a name only.
Result<Names> resolve_name(const char *name, const char *port, Side side) {
    addrinfo hints = {};
    hints.ai_flags = side == Side::LOCAL ? AI_PASSIVE : 0;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_protocol = IPPROTO_TCP;

    addrinfo *names = nullptr;
    const int result = getaddrinfo(name, port, &hints, &names);
    if (result == 0)
        return Names(names);
    if (result == EAI_SYSTEM)
        return failed("getaddrinfo()");
    return fail({RPMA_E_PROVIDER, "getaddrinfo()", 0, gai_strerror(result)});
}

Result<Routes> routes_to(const addrinfo &address) {
    rdma_addrinfo hints = {};
    hints.ai_family = address.ai_family;
    hints.ai_qp_type = IBV_QPT_RC;
    hints.ai_port_space = RDMA_PS_TCP;
    hints.ai_dst_addr = address.ai_addr;
    hints.ai_dst_len = address.ai_addrlen;

    rdma_addrinfo *routes = nullptr;
    if (rdma_getaddrinfo(nullptr, nullptr, &hints, &routes) != 0)
        return failed("rdma_getaddrinfo()");
    return Routes(routes);
}

} // namespace rpma::verbs
