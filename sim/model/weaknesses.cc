// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// weaknesses.cc -- the table of weaknesses

#include "weaknesses.hh"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace sim {

namespace {

constexpr auto ALL_DEVICES = [](const sim_profile &) { return true; };
constexpr auto DATAGRAM_DEVICES = [](const sim_profile &device) { return device.has_ud; };

constexpr WeaknessKind WEAKNESSES[] = {
    // InfiniBand Architecture Specification, volume 1, table 79
    {"fence", "without IBV_SEND_FENCE a request passes an earlier read", true, ALL_DEVICES},
    {"send-queue", "a completed request occupies its queue until it was polled", false,
     [](const sim_profile &device) { return device.frees_entries_in_poll; }},
    {"empty-read", "a read of 0 bytes makes no earlier write persistent", false, ALL_DEVICES},
    {"datagram-loss", "datagrams are lost", true, DATAGRAM_DEVICES},
    {"datagram-order", "datagrams arrive after later ones", true, DATAGRAM_DEVICES},
    {"datagram-repeat", "datagrams arrive twice", true, DATAGRAM_DEVICES},
    // InfiniBand Architecture Specification, volume 1, C10-93.1.1
    {"datagram-mtu", "datagrams above the MTU are lost without an error", false,
     DATAGRAM_DEVICES},
    {"failed-completion", "a failed completion has undefined members", false,
     [](const sim_profile &device) {
         return device.failed_send != SIM_WC_VALID || device.failed_receive != SIM_WC_VALID;
     }},
    {"fork", "a child of fork() cannot post to the queues of its parent", false, ALL_DEVICES},
    // InfiniBand Architecture Specification, volume 1, o9-20
    {"word-order", "words of a write become visible in any order", true, ALL_DEVICES},
    // PCI Express Base Specification, 2.4.2: what a read observes of concurrent updates is not
    // specified. Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c, read_reply(): copies the data
    // of each packet when it sends the packet
    {"torn-read", "words of a read are of different moments", true, ALL_DEVICES},
};
static_assert(std::size(WEAKNESSES) == static_cast<size_t>(Weakness::COUNT));

} // namespace

const WeaknessKind &kind_of(Weakness weakness) {
    return WEAKNESSES[static_cast<size_t>(weakness)];
}

const WeaknessKind *find_weakness(std::string_view name) {
    const auto found = std::ranges::find(
        WEAKNESSES, name, [](const WeaknessKind &each) { return std::string_view(each.name); });
    return found == std::end(WEAKNESSES) ? nullptr : found;
}

Weaknesses only(const WeaknessKind &kind) {
    Weaknesses set;
    return set.set(static_cast<size_t>(&kind - WEAKNESSES));
}

std::string list_weaknesses() {
    std::string list =
        "--strong NAME[,NAME] turns weaknesses of devices off, with which a\n"
        "correct program works. Those with a star act only where a schedule of explore\n"
        "chooses them, the others in each run.\n\n";
    size_t width = 0;
    for (const WeaknessKind &each : WEAKNESSES)
        width = std::max(width, strlen(each.name));
    for (const WeaknessKind &each : WEAKNESSES) {
        std::string name = each.name;
        name.resize(width, ' ');
        list += "  " + name + (each.is_chosen ? " * " : "   ") + each.text + "\n";
    }
    std::string all = "all";
    all.resize(width, ' ');
    return list + "  " + all + "   all of them\n";
}

std::string names_of(const Weaknesses &weaknesses) {
    std::string names;
    for (size_t i = 0; i < weaknesses.size(); i++)
        if (weaknesses[i])
            names += std::string(names.empty() ? "" : ",") + WEAKNESSES[i].name;
    return names;
}

} // namespace sim
