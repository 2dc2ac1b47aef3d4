// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// fabric_faults.cc -- the faults of links, ports, devices and calls.

#include "comp.hh"
#include "qp_state.hh"
#include "req.hh"
#include "resp.hh"
#include "verbs.hh"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sim {

static std::pair<unsigned, unsigned> link(unsigned host, unsigned other) {
    return {std::min(host, other), std::max(host, other)};
}

void Fabric::links_changed() {
    cm_.links_changed();
    std::vector<uint32_t> numbers;
    for (const auto &[number, qp] : qps)
        numbers.push_back(number);
    for (const uint32_t number : numbers)
        if (const auto found = qps.find(number); found != qps.end())
            run_sends(*this, *found->second);
    scheduler_->links_changed();
}

void Fabric::cut(unsigned host, unsigned other, bool is_cut) {
    for (const auto &way : {std::pair(host, other), std::pair(other, host)})
        if (is_cut)
            cut_.insert(way);
        else
            cut_.erase(way);
    links_changed();
}

void Fabric::cut_one_way(unsigned from, unsigned to, bool is_cut) {
    if (is_cut)
        cut_.insert({from, to});
    else
        cut_.erase({from, to});
    links_changed();
}

void Fabric::fail_call(unsigned number, uint32_t op, unsigned nth, int error) {
    failures_.push_back({number, nth, op, error});
}

void Fabric::change_datagram(unsigned number, unsigned nth, Fate fate) {
    fates_.push_back({number, nth, 0, 0, fate});
}

void Fabric::lose_cm_message(unsigned number, unsigned nth) {
    lost_messages_.push_back({number, nth});
}

bool Fabric::is_next(std::vector<Countdown> &all, unsigned number, uint32_t op,
                     Countdown &found) {
    for (Countdown &each : all)
        if (each.host == number && each.op == op && each.nth > 0)
            each.nth--;
    const auto last = std::ranges::find_if(all, [&](const Countdown &each) {
        return each.host == number && each.op == op && each.nth == 0;
    });
    if (last == all.end())
        return false;
    found = *last;
    all.erase(last);
    return true;
}

int Fabric::fail_by_fault(const Caller &caller, uint32_t op) {
    Countdown found;
    return is_next(failures_, caller.session->host->number, op, found) ? found.error : 0;
}

Fate Fabric::fate_of_datagram(unsigned host) {
    Countdown found;
    if (!fates_.empty() && is_next(fates_, host, 0, found))
        return found.fate;
    return choose(Weakness::DATAGRAM_LOSS, 1)     ? Fate::LOST
           : choose(Weakness::DATAGRAM_REPEAT, 1) ? Fate::REPEATED
           : choose(Weakness::DATAGRAM_ORDER, 1)  ? Fate::LATE
                                                  : Fate::ARRIVES;
}

void Fabric::poison(unsigned host) {
    poisons_.push_back({host, nullptr, 0});
}

bool Fabric::is_poisoned(const Device &device, const MemoryRange &place) {
    bool is_found = false;
    for (Poison &each : poisons_) {
        if (!each.program && each.host == device.host->number)
            each = {each.host, place.program.get(),
                    place.address / POISONED_BYTES * POISONED_BYTES};
        is_found |= each.program == place.program.get() &&
                    each.begin < place.address + place.length &&
                    place.address < each.begin + POISONED_BYTES;
    }
    return is_found;
}

void Fabric::clear_poison(const MemoryRange &place) {
    std::erase_if(poisons_, [&](const Poison &each) {
        return each.program && each.program == place.program.get() &&
               place.address <= each.begin &&
               each.begin + POISONED_BYTES <= place.address + place.length;
    });
}

bool Fabric::loses_cm_message(const Device &device) {
    Countdown found;
    return !lost_messages_.empty() && is_next(lost_messages_, device.host->number, 0, found);
}

uint64_t Fabric::delay(const Device &device, const Device &other) const {
    const auto found = delays_.find(link(device.host->number, other.host->number));
    return found == delays_.end() ? 0 : found->second;
}

void Fabric::set_delay(unsigned host, unsigned other, uint64_t one_way) {
    delays_[link(host, other)] = one_way;
}

void Fabric::set_power(unsigned number, bool has_power) {
    if (Host *const found = host(number))
        found->has_power = has_power;
    links_changed();
}

Device *Fabric::device(unsigned number, unsigned index) {
    Host *const found = host(number);
    return found && index < found->devices.size() ? found->devices[index].get() : nullptr;
}

void Fabric::set_port(unsigned number, unsigned index, bool is_up) {
    Device *const found = device(number, index);
    if (!found || found->port_is_up == is_up)
        return;
    found->port_is_up = is_up;
    found->port_changes++;
    found->counters[COUNT_PORT_DOWN] += !is_up;
    raise_async(number, index, is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    links_changed();
}

void Fabric::refuse_post(unsigned number, unsigned nth, int error) {
    refusals[number] = {nth, error};
}

void Fabric::overrun_cqs(unsigned number) {
    for (const auto &[handle, object] : objects_)
        if (object->kind == Object::CQ && object->session->host->number == number)
            overrun_cq(*this, static_cast<Cq &>(*object));
}

void Fabric::raise_async(unsigned number, unsigned index, ibv_event_type type) {
    const Device *const found = device(number, index);
    constexpr int kinds[] = {Object::CQ, Object::SRQ, Object::QP, Object::CONTEXT};
    const int about = kinds[sim_about_of(type)];
    for (const auto &[handle, object] : objects_) {
        Context *const context = object->kind == about ? Verbs::context_of(*object) : nullptr;
        if (context && context->device == found)
            raise_async(*object, type);
    }
}

void Fabric::change_address(unsigned number, unsigned index) {
    if (Device *const found = device(number, index)) {
        found->address_changes++;
        cm_.address_changed(*found);
    }
}

void Fabric::remove_device(unsigned number, unsigned index) {
    Device *const found = device(number, index);
    if (!found || found->removed)
        return;
    found->removed = true;
    for (const auto &[qp_number, qp] : qps)
        if (qp->context->device == found)
            fail_qp(*this, *qp);
    raise_async(number, index, IBV_EVENT_DEVICE_FATAL);
    cm_.device_removed(*found);
    links_changed();
}

void Fabric::replace_device(unsigned number, unsigned index) {
    const Device *const found = device(number, index);
    if (found && found->removed)
        add_device(*host(number), found->number, *found->profile);
}

} // namespace sim
