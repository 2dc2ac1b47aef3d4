// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.cc -- name resolution by the C library and librdmacm

#include "verbs/address.hh"

#include <cstring>

#include "verbs/text.hh"

namespace rpma {

// rdma_getaddrinfo() would hand on the first address of a name only.
Names resolve_name(Call &call, const char *name, const char *port, Side side, int family) {
    addrinfo hints = {};
    hints.ai_flags = side == Side::LOCAL ? AI_PASSIVE : 0;
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_protocol = IPPROTO_TCP;

    addrinfo *names = nullptr;
    const int result = getaddrinfo(name, port, &hints, &names);
    if (result == 0)
        return Names(names);
    const int error = result == EAI_SYSTEM ? errno : 0;
    const char *service = port != nullptr ? port : "none";
    const char *flags = side == Side::LOCAL ? "AI_PASSIVE" : "0";
    if (error != 0)
        RPMA_FAIL(call, RPMA_E_PROVIDER, error, "getaddrinfo(node=%s, service=%s, ai_flags=%s)",
                  name, service, flags);
    else
        RPMA_FAIL(
            call, RPMA_E_PROVIDER, 0,
            "getaddrinfo(node=%s, service=%s, ai_flags=%s) failed: %s; 'getent ahosts %s' "
            "asks for the same",
            name, service, flags, gai_strerror(result), name);
    return nullptr;
}

sockaddr_storage numeric_address(const char *text) {
    addrinfo hints = {};
    hints.ai_flags = AI_NUMERICHOST;
    hints.ai_socktype = SOCK_STREAM;

    sockaddr_storage address = {};
    addrinfo *names = nullptr;
    if (getaddrinfo(text, nullptr, &hints, &names) != 0)
        return address;
    std::memcpy(&address, names->ai_addr, names->ai_addrlen);
    freeaddrinfo(names);
    return address;
}

Routes routes_to(Call &call, const addrinfo &address, sockaddr *source, const char *name,
                 const char *port) {
    rdma_addrinfo hints = {};
    hints.ai_family = address.ai_family;
    hints.ai_qp_type = IBV_QPT_RC;
    hints.ai_port_space = RDMA_PS_TCP;
    hints.ai_dst_addr = address.ai_addr;
    hints.ai_dst_len = address.ai_addrlen;
    if (source != nullptr) {
        hints.ai_src_addr = source;
        hints.ai_src_len = length_of(*source);
    }

    rdma_addrinfo *routes = nullptr;
    if (rdma_getaddrinfo(nullptr, nullptr, &hints, &routes) == 0)
        return Routes(routes);
    const int error = errno;
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error, device_advice(error).chars,
                       "rdma_getaddrinfo(dst_addr=%s, ai_qp_type=IBV_QPT_RC, "
                       "ai_port_space=RDMA_PS_TCP; node=%s, service=%s)",
                       address_text(address.ai_addr).chars, name,
                       port != nullptr ? port : "none");
    return nullptr;
}

} // namespace rpma
