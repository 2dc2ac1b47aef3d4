// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// netlink.hh -- NETLINK_RDMA of a host: its devices, ports, objects and counters.

#pragma once

#include "fabric.hh"

#include <span>

namespace sim {

// The attributes of a message, which is built in `bytes`.
class Attributes {
  public:
    void put(unsigned type, const void *data, size_t size);
    template <class T> void put(unsigned type, const T &value) {
        put(type, &value, sizeof(value));
    }
    void put_string(unsigned type, const std::string &text) {
        put(type, text.c_str(), text.size() + 1);
    }
    size_t nest(unsigned type); // contains the next attributes, until unnest() with the result
    void unnest(size_t start);
    std::vector<std::byte> bytes;
};

// Executes a request. Appends the messages of the response to `messages`: each has an nlmsghdr
// with its length and type. Returns an error number. Of a dump, the response begins with entry
// `start`; the result is the number of the first entry that has no room, or 0.
int rdma_netlink(Fabric &fabric, const Netlink &request, std::span<const std::byte> message,
                 std::vector<std::byte> &messages, uint32_t &next);

} // namespace sim
