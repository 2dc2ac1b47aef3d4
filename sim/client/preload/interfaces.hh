// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// interfaces.hh -- the network interfaces of a host: lo, and one for each RDMA device

#pragma once

#include <cstddef>
#include <cstdint>
#include <net/if.h>
#include <sys/socket.h>

struct Interface {
    char name[IFNAMSIZ];
    unsigned index, flags, mtu, type, tx_queue_len, carrier_changes; // type: ARPHRD_*
    bool has_carrier;
    uint8_t operstate; // IF_OPER_*
    uint8_t address_length, address[32], broadcast[32];
};

struct InterfaceAddress {
    int family;
    uint8_t prefix, scope; // scope: RT_SCOPE_*
    uint8_t bytes[16];
    size_t size() const { return family == AF_INET ? 4 : 16; }
    bool is_in_network(const void *other) const;
};

// The interfaces at the time of the constructor, as the files of the host describe them.
class Interfaces {
  public:
    Interfaces();
    const Interface *begin() const { return all_; }
    const Interface *end() const { return all_ + count_; }
    const Interface *find(const char *name) const; // NULL: no such interface
    const Interface *find(unsigned index) const;

  private:
    Interface all_[8];
    size_t count_ = 0;
};

// The IPv4 address of an interface and its IPv6 address.
InterfaceAddress address_of(const Interface &interface, int family);
// The broadcast address of an IPv4 network, or its mask, in network byte order.
uint32_t broadcast_of(const InterfaceAddress &address);
uint32_t mask_of(const InterfaceAddress &address);
// Reads the hardware address of another host's interface. Returns its length, or 0 if there is
// no such host.
size_t hardware_address_of(unsigned host, const Interface &interface, uint8_t (&to)[32]);
