// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.cc -- the device that librpma finds for each address

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <ifaddrs.h>

#include "info.hh"

namespace {

std::string device_of(const std::string &address, rpma_util_ibv_context_type type) {
    return ibv_get_device_name(rpma::get_ibv_context(address.c_str(), type)->device);
}

// The numeric address; "" if it is neither IPv4 nor IPv6.
std::string address_text(const ifaddrs &entry) {
    char digits[INET6_ADDRSTRLEN] = "";
    sockaddr_in ip4;
    sockaddr_in6 ip6;
    if (entry.ifa_addr == nullptr)
        return "";
    if (entry.ifa_addr->sa_family == AF_INET) {
        std::memcpy(&ip4, entry.ifa_addr, sizeof(ip4));
        (void)inet_ntop(AF_INET, &ip4.sin_addr, digits, sizeof(digits));
    } else if (entry.ifa_addr->sa_family == AF_INET6) {
        std::memcpy(&ip6, entry.ifa_addr, sizeof(ip6));
        (void)inet_ntop(AF_INET6, &ip6.sin6_addr, digits, sizeof(digits));
        if (IN6_IS_ADDR_LINKLOCAL(&ip6.sin6_addr))
            return fmt::format("{}%{}", digits, entry.ifa_name);
    }
    return digits;
}

} // namespace

std::string find_device(const std::string &address, bool *is_remote) {
    try {
        return device_of(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    } catch (const rpma::error &) {
        *is_remote = true;
        return device_of(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    }
}

std::vector<Address> find_addresses() {
    std::vector<Address> all;
    ifaddrs *list = nullptr;
    (void)getifaddrs(&list); // leaves the list empty if it fails
    for (const ifaddrs *each = list; each != nullptr; each = each->ifa_next) {
        Address found = {address_text(*each), each->ifa_name, ""};
        if (found.text.empty())
            continue;
        try {
            found.device = device_of(found.text, RPMA_UTIL_IBV_CONTEXT_LOCAL);
        } catch (const rpma::error &) {
            // Most addresses belong to no RDMA device.
        }
        all.push_back(found);
    }
    freeifaddrs(list);
    return all;
}

bool is_own_address(const std::vector<Address> &all, const std::string &text) {
    return std::any_of(all.begin(), all.end(), [&](const Address &own) {
        return own.text.substr(0, own.text.find('%')) == text;
    });
}
