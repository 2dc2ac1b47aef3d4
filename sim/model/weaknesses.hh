// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// weaknesses.hh -- what the specification or a driver leaves open, and a correct program
// stands: one table for rdma-sim's --strong, its help, and the choices of explore

#pragma once

#include "../device/profile.h"

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

namespace sim {

enum class Weakness : uint8_t {
    FENCE,
    SEND_QUEUE,
    EMPTY_READ,
    DATAGRAM_LOSS,
    DATAGRAM_ORDER,
    DATAGRAM_REPEAT,
    DATAGRAM_MTU,
    FAILED_COMPLETION,
    FORK,
    WORD_ORDER,
    TORN_READ,
    COUNT
};
using Weaknesses = std::bitset<static_cast<size_t>(Weakness::COUNT)>;

struct WeaknessKind {
    const char *name, *text;
    bool is_chosen; // it acts only where a schedule of explore chooses it
    bool (*is_of_device)(const sim_profile &);
};

const WeaknessKind &kind_of(Weakness weakness);
const WeaknessKind *find_weakness(std::string_view name); // NULL: there is none
Weaknesses only(const WeaknessKind &kind);                // the set of this one
std::string list_weaknesses();                            // the text of --strong help
std::string names_of(const Weaknesses &weaknesses);       // separated by commas

} // namespace sim
