// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// calls.hh -- the names of the functions that make a request to the fabric

#pragma once

#include "fabric.hh"

#include <span>
#include <string_view>

namespace sim {

struct CallName {
    static constexpr int ANY = -1;
    const char *name;
    uint32_t op;
    // What distinguishes functions with the same request: the kind of the object, the purpose
    // of the channel, or whether it is a built list of requests.
    int variant = ANY;
    bool creates = false;   // it creates an object, and can fail with ENOMEM
    bool is_traced = false; // a step of explore: it affects other programs
};

std::span<const CallName> call_names();
const CallName *find_call(std::string_view name); // NULL: no such function
// NULL: the request is not one of a function of the program.
const CallName *name_of_call(const Fabric &fabric, std::span<const std::byte> request);

} // namespace sim
