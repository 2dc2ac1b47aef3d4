// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.cc -- name resolution by the C library and librdmacm

#include "verbs/address.hh"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "verbs/causes.hh"

namespace rpma {

bool is_port(const char *text) {
    // Accepts the same numbers as strtoul(), which getaddrinfo() calls. A number that long long
    // cannot hold becomes its greatest or least value.
    char *end;
    const int errno_before = errno;
    const long long value = std::strtoll(text, &end, 10);
    errno = errno_before;
    if (end == text || *end != '\0')
        return text[0] != '\0';
    return value >= 0 && value <= UINT16_MAX;
}

// rdma_getaddrinfo() would return only the first address of a name.
AddressList resolve_name(Call &call, const char *name, const char *port, Side side,
                         int family) {
    addrinfo hints = {};
    hints.ai_flags = side == Side::LOCAL ? AI_PASSIVE : 0;
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_protocol = IPPROTO_TCP;

    addrinfo *addresses = nullptr;
    const int result = getaddrinfo(name, port, &hints, &addresses);
    if (result == 0)
        return AddressList(addresses);
    const int error = result == EAI_SYSTEM ? errno : 0;
    const Failure failure = {
        .step = NAME, .error = error != 0 ? error : result, .name = name, .family = family};
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error, advice_for(failure).chars,
                       "getaddrinfo(node=%s, service=%s, ai_flags=%s)%s%s", Visible(name).chars,
                       Visible(port != nullptr ? port : "none").chars,
                       side == Side::LOCAL ? "AI_PASSIVE" : "0",
                       error != 0 ? "" : " failed: ", error != 0 ? "" : gai_strerror(result));
    return nullptr;
}

Source parse_address(const char *text) {
    addrinfo hints = {};
    hints.ai_flags = AI_NUMERICHOST;
    hints.ai_socktype = SOCK_STREAM;

    Source address = {};
    addrinfo *addresses = nullptr;
    if (getaddrinfo(text, nullptr, &hints, &addresses) != 0)
        return address;
    std::memcpy(&address, addresses->ai_addr, addresses->ai_addrlen);
    freeaddrinfo(addresses);
    return address;
}

Routes find_routes(Call &call, const addrinfo &address, sockaddr *source, const char *name,
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
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error,
                       advice_for({.step = ID, .error = error}).chars,
                       "rdma_getaddrinfo(dst_addr=%s, ai_qp_type=IBV_QPT_RC, "
                       "ai_port_space=RDMA_PS_TCP; node=%s, service=%s)",
                       address_text(address.ai_addr).chars, Visible(name).chars,
                       Visible(port != nullptr ? port : "none").chars);
    return nullptr;
}

} // namespace rpma
