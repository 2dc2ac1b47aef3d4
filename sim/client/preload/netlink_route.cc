// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// netlink_route.cc -- the interfaces, addresses, routes and neighbors of a host, for the
// requests of NETLINK_ROUTE that read
//
// The attributes and their order are those of Linux 6.1, without the ones of features that the
// interfaces lack.

#include "../../protocol/protocol.hh"
#include "interfaces.hh"
#include "netlink.hh"

#include <cerrno>
#include <cstdio>
#include <initializer_list>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <unistd.h>

#include "preload.hh"

namespace netlink {

namespace {

constexpr int FAMILIES[] = {AF_INET, AF_INET6};

// True if a dump of this family contains the objects of `family`.
bool matches(unsigned requested, int family) {
    return (requested != AF_INET && requested != AF_INET6) ||
           requested == static_cast<unsigned>(family);
}

// Calls the function for each interface and family of a dump.
template <class Function> void for_each(const nlmsghdr &request, Function function) {
    const Interfaces all;
    for (const int family : FAMILIES)
        for (const Interface &each : all)
            if (matches(header_of<rtgenmsg>(request)->rtgen_family, family))
                function(each, family);
}

// ---- interfaces: net/core/rtnetlink.c ------------------------------------------------------

void put_link(Response &response, const Interface &interface, bool has_statistics) {
    const rtnl_link_stats64 statistics64 = {};
    const rtnl_link_stats statistics = {};
    const bool is_loopback = (interface.flags & IFF_LOOPBACK) != 0;
    ifinfomsg header = {};
    header.ifi_type = static_cast<uint16_t>(interface.type);
    header.ifi_index = static_cast<int>(interface.index);
    header.ifi_flags = interface.flags;
    response.begin(RTM_NEWLINK, &header, sizeof(header));
    response.put_string(IFLA_IFNAME, interface.name);
    response.put(IFLA_TXQLEN, interface.tx_queue_len);
    response.put(IFLA_OPERSTATE, interface.operstate);
    response.put(IFLA_LINKMODE, uint8_t{0});
    response.put(IFLA_MTU, interface.mtu);
    response.put(IFLA_MIN_MTU, is_loopback ? 0 : 68U);
    response.put(IFLA_MAX_MTU, is_loopback ? 0 : 9978U);
    response.put(IFLA_GROUP, 0U);
    response.put(IFLA_PROMISCUITY, 0U);
    response.put(IFLA_NUM_TX_QUEUES, 1U);
    response.put(IFLA_GSO_MAX_SEGS, 65535U);
    response.put(IFLA_GSO_MAX_SIZE, 65536U);
    response.put(IFLA_NUM_RX_QUEUES, 1U);
    response.put(IFLA_CARRIER, uint8_t{interface.has_carrier});
    response.put(IFLA_CARRIER_CHANGES, interface.carrier_changes);
    response.put(IFLA_CARRIER_UP_COUNT, interface.carrier_changes / 2);
    response.put(IFLA_CARRIER_DOWN_COUNT, (interface.carrier_changes + 1) / 2);
    response.put(IFLA_PROTO_DOWN, uint8_t{0});
    response.put(IFLA_ADDRESS, interface.address, interface.address_length);
    response.put(IFLA_BROADCAST, interface.broadcast, interface.address_length);
    if (has_statistics) {
        response.put(IFLA_STATS64, statistics64);
        response.put(IFLA_STATS, statistics);
    }
    response.put_string(IFLA_QDISC, is_loopback ? "noqueue" : "mq");
}

int get_link(const nlmsghdr &request, Response &response) {
    const auto *const header = header_of<ifinfomsg>(request);
    const Interfaces all;
    uint32_t mask = 0;
    (void)get(request, sizeof(*header), IFLA_EXT_MASK, mask);
    const bool has_statistics = (mask & RTEXT_FILTER_SKIP_STATS) == 0;
    if (response.is_dump()) { // perhaps with a shorter header
        for (const Interface &each : all)
            put_link(response, each, has_statistics);
        return 0;
    }
    if (header == nullptr)
        return EINVAL;
    char name[IFNAMSIZ] = {};
    const nlattr *named = find_attribute(request, sizeof(*header), IFLA_IFNAME);
    if (named == nullptr)
        named = find_attribute(request, sizeof(*header), IFLA_ALT_IFNAME);
    if (header->ifi_index <= 0 && named == nullptr)
        return EINVAL;
    if (named != nullptr)
        memcpy(name, data_of(*named),
               size_of(*named) < sizeof(name) ? size_of(*named) : sizeof(name) - 1);
    const Interface *const found = header->ifi_index > 0
                                       ? all.find(static_cast<unsigned>(header->ifi_index))
                                       : all.find(name);
    if (found == nullptr)
        return ENODEV;
    put_link(response, *found, has_statistics);
    return 0;
}

// ---- addresses: net/ipv4/devinet.c, net/ipv6/addrconf.c ------------------------------------

void put_address(Response &response, const Interface &interface, int family) {
    const InterfaceAddress own = address_of(interface, family);
    const ifa_cacheinfo forever = {UINT32_MAX, UINT32_MAX, 0, 0};
    ifaddrmsg header = {};
    header.ifa_family = static_cast<uint8_t>(family);
    header.ifa_prefixlen = own.prefix;
    header.ifa_flags = IFA_F_PERMANENT;
    header.ifa_scope = own.scope;
    header.ifa_index = interface.index;
    response.begin(RTM_NEWADDR, &header, sizeof(header));
    response.put(IFA_ADDRESS, own.bytes, own.size());
    if (family == AF_INET) {
        response.put(IFA_LOCAL, own.bytes, own.size());
        if ((interface.flags & IFF_BROADCAST) != 0)
            response.put(IFA_BROADCAST, broadcast_of(own));
        response.put_string(IFA_LABEL, interface.name);
        response.put(IFA_FLAGS, uint32_t{IFA_F_PERMANENT});
        response.put(IFA_CACHEINFO, forever);
    } else {
        response.put(IFA_CACHEINFO, forever);
        response.put(IFA_FLAGS, uint32_t{IFA_F_PERMANENT});
    }
}

int get_address(const nlmsghdr &request, Response &response) {
    if (!response.is_dump())
        return EOPNOTSUPP;
    for_each(request, [&](const Interface &interface, int family) {
        put_address(response, interface, family);
    });
    return 0;
}

// ---- routes: net/ipv4/fib_semantics.c, net/ipv4/route.c, net/ipv6/route.c ------------------

struct Route {
    int family;
    unsigned index, table, type, prefix, flags;
    uint8_t destination[16];
    const InterfaceAddress *source;
};

void put_route(Response &response, const Route &route, bool is_lookup) {
    const size_t size = route.source->size();
    const bool is_ip6 = route.family == AF_INET6, is_local = route.type != RTN_UNICAST;
    rtmsg header = {};
    header.rtm_family = static_cast<uint8_t>(route.family);
    header.rtm_dst_len = static_cast<uint8_t>(route.prefix);
    header.rtm_table = static_cast<uint8_t>(route.table);
    header.rtm_protocol = is_lookup && !is_ip6 ? RTPROT_UNSPEC : RTPROT_KERNEL;
    header.rtm_scope = is_lookup || is_ip6       ? RT_SCOPE_UNIVERSE
                       : route.type == RTN_LOCAL ? RT_SCOPE_HOST
                                                 : RT_SCOPE_LINK;
    header.rtm_type = static_cast<uint8_t>(route.type);
    header.rtm_flags = route.flags | (is_lookup && !is_ip6 ? RTM_F_CLONED : 0U);
    response.begin(RTM_NEWROUTE, &header, sizeof(header));
    response.put(RTA_TABLE, route.table);
    response.put(RTA_DST, route.destination, size);
    if (is_lookup || !is_ip6)
        response.put(RTA_PREFSRC, route.source->bytes, size);
    if (is_ip6)
        response.put(RTA_PRIORITY, is_local ? 0U : 256U);
    response.put(RTA_OIF, route.index);
    if (is_lookup || is_ip6)
        response.put(RTA_CACHEINFO, rta_cacheinfo{});
    if (is_lookup && !is_ip6)
        response.put(RTA_UID, getuid());
    if (is_ip6)
        response.put(RTA_PREF, uint8_t{0});
}

unsigned flags_of(const Interface &interface) {
    return interface.has_carrier ? 0 : RTNH_F_LINKDOWN;
}

// The routes that the kernel creates for an address: to its network, to the address itself and,
// with IPv4, to the broadcast address.
void put_routes(Response &response, const Interface &interface, int family) {
    const InterfaceAddress own = address_of(interface, family);
    const bool is_loopback = (interface.flags & IFF_LOOPBACK) != 0, is_ip4 = family == AF_INET;
    const auto bits = static_cast<unsigned>(8 * own.size());
    Route route = {family,
                   interface.index,
                   RT_TABLE_MAIN,
                   RTN_UNICAST,
                   own.prefix,
                   flags_of(interface),
                   {},
                   &own};
    memcpy(route.destination, own.bytes, own.prefix / 8);
    if (is_loopback && is_ip4) {
        route.table = RT_TABLE_LOCAL;
        route.type = RTN_LOCAL;
    }
    if (!is_loopback || is_ip4)
        put_route(response, route, false);
    route.table = RT_TABLE_LOCAL;
    route.type = RTN_LOCAL;
    route.prefix = bits;
    memcpy(route.destination, own.bytes, own.size());
    put_route(response, route, false);
    if ((interface.flags & IFF_BROADCAST) == 0 || !is_ip4)
        return;
    const uint32_t broadcast = broadcast_of(own);
    route.type = RTN_BROADCAST;
    memcpy(route.destination, &broadcast, sizeof(broadcast));
    put_route(response, route, false);
}

int find_route(const nlmsghdr &request, Response &response) {
    const auto *const header = header_of<rtmsg>(request);
    if (header == nullptr || (header->rtm_family != AF_INET && header->rtm_family != AF_INET6))
        return EOPNOTSUPP;
    const size_t size = header->rtm_family == AF_INET ? 4 : 16;
    const nlattr *const to = find_attribute(request, sizeof(*header), RTA_DST, size);
    if (to == nullptr)
        return EINVAL;
    const Interfaces all;
    // An address of the host is on lo, whose network also has further addresses.
    for (const bool is_own : {true, false})
        for (const Interface &each : all) {
            const InterfaceAddress own = address_of(each, header->rtm_family);
            const bool is_loopback = (each.flags & IFF_LOOPBACK) != 0,
                       is_address = memcmp(own.bytes, data_of(*to), size) == 0,
                       is_local = is_address || is_loopback;
            if (is_own != is_local || (!is_address && !own.is_in_network(data_of(*to))))
                continue;
            Route route = {header->rtm_family,
                           is_local ? all.begin()->index : each.index,
                           is_local ? unsigned{RT_TABLE_LOCAL} : unsigned{RT_TABLE_MAIN},
                           is_local ? unsigned{RTN_LOCAL} : unsigned{RTN_UNICAST},
                           static_cast<unsigned>(8 * size),
                           is_local ? 0 : flags_of(each),
                           {},
                           &own};
            memcpy(route.destination, data_of(*to), size);
            put_route(response, route, true);
            return 0;
        }
    return ENETUNREACH;
}

int get_route(const nlmsghdr &request, Response &response) {
    if (!response.is_dump())
        return find_route(request, response);
    for_each(request, [&](const Interface &interface, int family) {
        put_routes(response, interface, family);
    });
    return 0;
}

// ---- neighbors: net/core/neighbour.c -------------------------------------------------------

// Each other host is a neighbor, as if this one had sent a message to it. `to`: only this
// address, or NULL. Returns true if there is one.
bool put_neighbors(Response &response, const Interface &interface, int family, const void *to) {
    bool is_found = false;
    for (unsigned host = 1; host <= sim::MAX_HOSTS; host++) {
        InterfaceAddress other = address_of(interface, family);
        uint8_t hardware[32];
        other.bytes[other.size() - 1] = static_cast<uint8_t>(host);
        if (host == settings().host ||
            (to != nullptr && memcmp(to, other.bytes, other.size()) != 0))
            continue;
        const size_t size = hardware_address_of(host, interface, hardware);
        if (size == 0)
            break;
        ndmsg header = {};
        header.ndm_family = static_cast<uint8_t>(family);
        header.ndm_ifindex = static_cast<int>(interface.index);
        header.ndm_state = NUD_REACHABLE;
        header.ndm_type = RTN_UNICAST;
        response.begin(RTM_NEWNEIGH, &header, sizeof(header));
        response.put(NDA_DST, other.bytes, other.size());
        response.put(NDA_LLADDR, hardware, size);
        response.put(NDA_PROBES, 0U);
        response.put(NDA_CACHEINFO, nda_cacheinfo{});
        is_found = true;
    }
    return is_found;
}

int get_neighbor(const nlmsghdr &request, Response &response) {
    const auto *const header = header_of<ndmsg>(request);
    if (response.is_dump()) {
        for_each(request, [&](const Interface &interface, int family) {
            if ((interface.flags & IFF_LOOPBACK) == 0)
                put_neighbors(response, interface, family, nullptr);
        });
        return 0;
    }
    if (header == nullptr || (header->ndm_family != AF_INET && header->ndm_family != AF_INET6))
        return EINVAL;
    const nlattr *const to = find_attribute(request, sizeof(*header), NDA_DST,
                                            header->ndm_family == AF_INET ? 4 : 16);
    if (to == nullptr)
        return EINVAL;
    const Interfaces all;
    const Interface *const found = all.find(static_cast<unsigned>(header->ndm_ifindex));
    if (found == nullptr)
        return ENODEV;
    return (found->flags & IFF_LOOPBACK) == 0 &&
                   put_neighbors(response, *found, header->ndm_family, data_of(*to))
               ? 0
               : ENOENT;
}

} // namespace

// net/core/rtnetlink.c: rtnetlink_rcv_msg()
int respond_route(const nlmsghdr &request, Response &response) {
    if (request.nlmsg_type > RTM_MAX)
        return EOPNOTSUPP;
    if (header_of<rtgenmsg>(request) == nullptr)
        return 0;
    switch (request.nlmsg_type) {
    case RTM_GETLINK:
        return get_link(request, response);
    case RTM_GETADDR:
        return get_address(request, response);
    case RTM_GETROUTE:
        return get_route(request, response);
    case RTM_GETNEIGH:
        return get_neighbor(request, response);
    default: // a change needs a privilege
        return (request.nlmsg_type - RTM_BASE) % 4 == 2 ? EOPNOTSUPP : EPERM;
    }
}

} // namespace netlink
