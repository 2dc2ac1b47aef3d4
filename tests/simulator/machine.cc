// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// machine.cc -- faults of machines, devices and programs in the fabric

#include "simulation.hh"

#include <algorithm>
#include <cerrno>

namespace {

constexpr uint64_t NANOSECONDS = 1000000; // of a millisecond

} // namespace

unsigned Network::host_of(const Machine &machine) const {
    const auto found =
        std::ranges::find(simulation.machines, &machine, &std::unique_ptr<Machine>::get);
    return static_cast<unsigned>(found - simulation.machines.begin()) + 1;
}

// Returns the last device: earlier ones were removed and replaced.
unsigned Network::device_of(const Machine &machine) const {
    return static_cast<unsigned>(fabric_->host(host_of(machine))->devices.size()) - 1;
}

void Network::set_port(const Machine &machine, bool is_up) {
    fabric_->set_port(host_of(machine), device_of(machine), is_up);
}

void Network::set_power(const Machine &machine, bool is_on) {
    fabric_->set_power(host_of(machine), is_on);
}

// The number of the error has no meaning for librpma.
void Network::refuse_post(const Machine &machine, Refusal refusal) {
    fabric_->refuse_post(host_of(machine), refusal, EIO);
}

void Network::change_address(const Machine &machine) {
    fabric_->change_address(host_of(machine), device_of(machine));
}

void Network::advance(int64_t now) {
    fabric_->advance(static_cast<uint64_t>(now - START) * NANOSECONDS);
}

int64_t Network::next_time() const {
    const uint64_t next = fabric_->next_time();
    return next == UINT64_MAX
               ? NEVER
               : START + static_cast<int64_t>((next + NANOSECONDS - 1) / NANOSECONDS);
}

// Closes the descriptors of the program like the kernel, which notifies the other sides.
void Network::process_ended(Process &process) {
    sim::Session *const session = process.caller.session;
    for (const uint16_t i : open_links)
        for (int side = 0; side < 2; side++)
            if (End &end = links[i]->ends[side]; end.owner == &process) {
                if (links[i]->ends[side].qp)
                    end_queue_pair(*links[i], side);
                end.owner = nullptr;
                end.id = 0;
            }
    process.caller = {};
    if (session)
        fabric_->end_session(*session);
}

// Ignores contexts, because librdmacm keeps devices open.
const char *Network::leaked_object(const Process &process) const {
    static constexpr const char *NAMES[] = {
        nullptr,           "a channel",          "a peer",
        "a memory region", "a completion queue", "a shared receive queue",
        "a queue pair",    "an address handle",  "a CM ID"};
    for (const auto &[handle, object] : fabric_->objects()) {
        const bool is_kept =
            object->kind == sim::Object::CONTEXT ||
            (object->kind == sim::Object::CHANNEL &&
             static_cast<const sim::Channel &>(*object).purpose == sim::Channel::ASYNC);
        if (process.caller.session && object->session == process.caller.session && !is_kept)
            return NAMES[object->kind];
    }
    return nullptr;
}

template <typename Object>
static size_t count(const sim::Fabric &fabric, const Process &process) {
    return static_cast<size_t>(std::ranges::count_if(fabric.objects(), [&](const auto &entry) {
        return entry.second->kind == Object::KIND && process.caller.session &&
               entry.second->session == process.caller.session;
    }));
}

unsigned Network::contexts(const Process &process) const {
    return static_cast<unsigned>(count<sim::Context>(*fabric_, process));
}
