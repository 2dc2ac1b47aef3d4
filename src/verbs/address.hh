// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.hh -- name resolution: each address of a name is tried in turn

#pragma once

#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include "base/call.hh"
#include "base/visible.hh"

namespace rpma {

enum class Side { LOCAL, REMOTE };

struct FreeAddressList {
    void operator()(addrinfo *addresses) const { freeaddrinfo(addresses); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddressList>;

struct FreeRoutes {
    void operator()(rdma_addrinfo *routes) const { rdma_freeaddrinfo(routes); }
};
using Routes = std::unique_ptr<rdma_addrinfo, FreeRoutes>;

// Returns true if text is a number from 0 to 65535, or may be the name of a service.
// getaddrinfo() truncates larger and negative numbers to 16 bits.
bool is_port(const char *text);
inline constexpr char INVALID_PORT[] =
    "port is \"%s\"; possible: 0 to 65535, or the name of a service";

// All addresses of a name, IPv4 and IPv6, or those of one family; at least one. port may be
// nullptr. RPMA_E_PROVIDER.
AddressList resolve_name(Call &call, const char *name, const char *port, Side side,
                         int family = AF_UNSPEC);

// The address and port that connections start from. It can also hold a sockaddr_in: both
// families have the port at the same offset, in network byte order. Family AF_UNSPEC: any
// address; port 0: any.
using Source = sockaddr_in6;

// A numeric address; its family is AF_UNSPEC if text is not one.
Source parse_address(const char *text);

// The routes to one remote address, from source if it is given. If an IBACM service runs, it
// adds routes with a source address; the address itself is always included. name and port are
// for the log. RPMA_E_PROVIDER.
Routes find_routes(Call &call, const addrinfo &address, sockaddr *source, const char *name,
                   const char *port);

// The source for a destination of this family, or nullptr if it has neither an address nor a
// port. A source without an address becomes the wildcard address of the family.
inline sockaddr *source_for(Source &source, int family) {
    if (source.sin6_family == AF_UNSPEC && source.sin6_port == 0)
        return nullptr;
    source.sin6_family = static_cast<sa_family_t>(family);
    return reinterpret_cast<sockaddr *>(&source);
}

// The length of an IPv4 or IPv6 address.
inline socklen_t length_of(const sockaddr &address) {
    return address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

// Calls attempt(const addrinfo &) for each address until it creates an object, and returns the
// object. If all attempts fail, the failure of the last address counts.
template <class Attempt>
auto try_each_address(Call &call, const AddressList &addresses, Attempt attempt) {
    for (const addrinfo *address = addresses.get();; address = address->ai_next) {
        const bool is_last = address->ai_next == nullptr;
        call.begin_attempt(is_last);
        auto object = attempt(*address);
        if (object || is_last) {
            call.end_attempts();
            return object;
        }
    }
}

// The same for every route to every address: attempt(sockaddr *source, sockaddr *destination).
// addresses is the result of resolving name and port; from is the source, see source_for().
template <class Attempt>
auto try_each_route(Call &call, const AddressList &addresses, Source &from, const char *name,
                    const char *port, Attempt attempt) {
    for (const addrinfo *address = addresses.get();; address = address->ai_next) {
        const bool is_last_address = address->ai_next == nullptr;
        call.begin_attempt(is_last_address);
        Routes routes =
            find_routes(call, *address, source_for(from, address->ai_family), name, port);
        for (const rdma_addrinfo *route = routes.get(); route != nullptr;
             route = route->ai_next) {
            call.begin_attempt(is_last_address && route->ai_next == nullptr);
            auto object = attempt(route->ai_src_addr, route->ai_dst_addr);
            if (object) {
                call.end_attempts();
                return object;
            }
        }
        if (is_last_address) {
            call.end_attempts();
            return decltype(attempt(nullptr, nullptr)){};
        }
    }
}

} // namespace rpma
