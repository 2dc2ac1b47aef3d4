// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.hh -- name resolution: every address that a name has is tried in turn

#pragma once

#include <memory>
#include <netdb.h>
#include <rdma/rdma_cma.h>

#include "verbs/failure.hh"

namespace rpma::verbs {

enum class Side { LOCAL, REMOTE };

struct NamesDeleter {
    void operator()(addrinfo *names) const { freeaddrinfo(names); }
};
using Names = std::unique_ptr<addrinfo, NamesDeleter>;

struct RouteDeleter {
    void operator()(rdma_addrinfo *routes) const { rdma_freeaddrinfo(routes); }
};
using Routes = std::unique_ptr<rdma_addrinfo, RouteDeleter>;

// All addresses of a name, IPv4 and IPv6; at least one. port may be nullptr.
Result<Names> resolve_name(const char *name, const char *port, Side side);

// The ways to one remote address: where an IBACM service runs, it adds its own with a source
// address; there is always the address as it is.
Result<Routes> routes_to(const addrinfo &address);

// The result of the first address for which attempt succeeds, else the failure of the last.
// attempt(sockaddr *address)
template <class Attempt> auto try_each(const Names &names, Attempt attempt) {
    for (const addrinfo *name = names.get();; name = name->ai_next) {
        auto result = attempt(*name);
        if (result || name->ai_next == nullptr)
            return result;
    }
}

// The same over every route to every address. attempt(sockaddr *source, sockaddr *destination)
template <class Attempt> auto try_each_route(const Names &names, Attempt attempt) {
    using Tried = decltype(attempt(nullptr, nullptr));
    return try_each(names, [&](const addrinfo &name) -> Tried {
        auto routes = routes_to(name);
        if (!routes)
            return fail(routes.error());
        for (const rdma_addrinfo *route = routes->get();; route = route->ai_next) {
            auto result = attempt(route->ai_src_addr, route->ai_dst_addr);
            if (result || route->ai_next == nullptr)
                return result;
        }
    });
}

} // namespace rpma::verbs
