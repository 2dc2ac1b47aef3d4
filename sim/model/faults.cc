// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// faults.cc -- the table of faults, and their texts

#include "faults.hh"

#include <algorithm>
#include <cerrno>

namespace sim {

namespace {

constexpr auto EVERY_DEVICE = [](const sim_profile &, const Fault &) { return true; };
constexpr auto WITH_DATAGRAMS = [](const sim_profile &device, const Fault &) {
    return device.has_ud;
};
// The messages of iWARP are those of TCP, which repeats what is lost.
constexpr auto WITH_CM_DATAGRAMS = [](const sim_profile &device, const Fault &) {
    return device.transport != SIM_IWARP;
};

bool has_event(const sim_profile &device, ibv_event_type type) {
    return (device.events >> type & 1) != 0;
}

// Calls the function for the link of a host to another one, or for its links to all others.
template <class Function>
void for_each_link(Machines &machines, const Fault &fault, Function function) {
    if (fault.hosts.size() == 2)
        return function(fault.hosts[0], fault.hosts[1]);
    for (const auto &host : machines.fabric().hosts())
        if (host->number != fault.hosts[0])
            function(fault.hosts[0], host->number);
}

void set_links(Machines &machines, const Fault &fault, bool is_cut) {
    for_each_link(machines, fault, [&](unsigned one, unsigned other) {
        machines.fabric().cut(one, other, is_cut);
    });
}

void set_way(Machines &machines, const Fault &fault, bool is_cut) {
    machines.fabric().cut_one_way(fault.hosts[0], fault.hosts[1], is_cut);
}

void set_delay(Machines &machines, const Fault &fault, uint64_t one_way) {
    for_each_link(machines, fault, [&](unsigned one, unsigned other) {
        machines.fabric().set_delay(one, other, one_way);
    });
}

// The last interval ends with a joined link.
void flap(Machines &machines, const Fault &fault, bool is_cut, uint64_t ends_at) {
    Fabric &fabric = machines.fabric();
    set_links(machines, fault, is_cut && fabric.now() < ends_at);
    if (fabric.now() < ends_at)
        fabric.at(
            std::min(fabric.now() + fault.number, ends_at),
            [&machines, &fault, is_cut, ends_at] { flap(machines, fault, !is_cut, ends_at); });
}

// The device of a host is the last one, after others were removed.
unsigned device_of(Machines &machines, const Fault &fault) {
    return static_cast<unsigned>(machines.fabric().host(fault.hosts[0])->devices.size()) - 1;
}

void set_port(Machines &machines, const Fault &fault, bool is_up) {
    machines.fabric().set_port(fault.hosts[0], device_of(machines, fault), is_up);
}

void set_power_on(Machines &machines, const Fault &fault) {
    machines.fabric().set_power(fault.hosts[0], true);
    machines.start(fault);
}

// The device that replaces another one has its addresses.
void insert_device(Machines &machines, const Fault &fault) {
    machines.fabric().replace_device(fault.hosts[0], device_of(machines, fault));
}

unsigned count_of(const Fault &fault) {
    return static_cast<unsigned>(fault.number);
}

using Argument = FaultArgument;

constexpr FaultKind FAULTS[] = {
    {.name = "cut",
     .min_hosts = 1,
     .max_hosts = 2,
     .argument = Argument::NONE,
     .arguments = "HOST [HOST]",
     .text = "cuts the link between two hosts, or all links of one",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { set_links(machines, fault, true); },
     .end = [](Machines &machines, const Fault &fault) { set_links(machines, fault, false); },
     // As often forever as with an end. After 10 s, reliable connections have failed.
     .explored = "cut LINK;cut LINK for 1s;cut LINK;cut LINK for 10s",
     .weight = 4},
    {.name = "join",
     .min_hosts = 1,
     .max_hosts = 2,
     .argument = Argument::NONE,
     .arguments = "HOST [HOST]",
     .text = "ends the cut",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines,
                  const Fault &fault) { set_links(machines, fault, false); }},
    {.name = "cut-one-way",
     .min_hosts = 2,
     .max_hosts = 2,
     .argument = Argument::NONE,
     .arguments = "HOST HOST",
     .text = "no message arrives from the first host at the second one",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { set_way(machines, fault, true); },
     .end = [](Machines &machines, const Fault &fault) { set_way(machines, fault, false); },
     .explored = "cut-one-way WAY;cut-one-way WAY for 10s"},
    {.name = "flap",
     .min_hosts = 1,
     .max_hosts = 2,
     .argument = Argument::TIME,
     .arguments = "HOST [HOST] TIME",
     .text = "cuts and joins at intervals of TIME",
     .is_of_device = EVERY_DEVICE,
     .effect =
         [](Machines &machines, const Fault &fault) {
             flap(machines, fault, true,
                  fault.lasts == 0 ? UINT64_MAX : machines.fabric().now() + fault.lasts);
         },
     // flap() itself ends
     .end = [](Machines &, const Fault &) {},
     .explored = "flap LINK 100ms for 1s"},
    {.name = "delay",
     .min_hosts = 1,
     .max_hosts = 2,
     .argument = Argument::TIME,
     .arguments = "HOST [HOST] TIME",
     .text = "delays each message by TIME",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines,
                  const Fault &fault) { set_delay(machines, fault, fault.number); },
     .end = [](Machines &machines, const Fault &fault) { set_delay(machines, fault, 0); }},
    {.name = "drop-datagram",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::OPTIONAL_COUNT,
     .arguments = "HOST [N]",
     .text = "the Nth datagram that the host sends from now on is lost",
     .is_of_device = WITH_DATAGRAMS,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().change_datagram(fault.hosts[0], count_of(fault), Fate::LOST);
         },
     .explored = "drop-datagram HOST"},
    {.name = "repeat-datagram",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::OPTIONAL_COUNT,
     .arguments = "HOST [N]",
     .text = "the Nth datagram that the host sends from now on arrives twice",
     .is_of_device = WITH_DATAGRAMS,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().change_datagram(fault.hosts[0], count_of(fault), Fate::REPEATED);
         },
     .explored = "repeat-datagram HOST"},
    {.name = "drop-cm",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::OPTIONAL_COUNT,
     .arguments = "HOST [N]",
     .text = "the Nth message of the connection manager from now on is lost, and repeated",
     .is_of_device = WITH_CM_DATAGRAMS,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().lose_cm_message(fault.hosts[0], count_of(fault));
         },
     .explored = "drop-cm HOST"},
    {.name = "port-down",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "the port of the device goes down",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return has_event(device, IBV_EVENT_PORT_ERR); },
     .effect = [](Machines &machines, const Fault &fault) { set_port(machines, fault, false); },
     .end = [](Machines &machines, const Fault &fault) { set_port(machines, fault, true); },
     .explored = "port-down HOST;port-down HOST for 1s;port-down HOST;"
                 "port-down HOST for 10s"},
    {.name = "port-up",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "the port goes up again",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { set_port(machines, fault, true); }},
    {.name = "kill",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "kills the programs of the host",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { machines.kill(fault); },
     .end = [](Machines &machines, const Fault &fault) { machines.start(fault); },
     .is_noticed = true,
     .needs_programs = true,
     .explored = "kill PROGRAM;kill PROGRAM for 1s",
     .weight = 4},
    {.name = "freeze",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "stops the programs of the host",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { machines.suspend(fault, true); },
     .end = [](Machines &machines, const Fault &fault) { machines.suspend(fault, false); },
     .needs_programs = true,
     .explored = "freeze PROGRAM for 10s",
     .former_name = "pause",
     .weight = 4},
    {.name = "thaw",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "continues them",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { machines.suspend(fault, false); },
     .needs_programs = true},
    {.name = "power-off",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::RANDOM,
     .arguments = "HOST [random]",
     .text = "kills them, and data that is not persistent is lost",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { machines.power_off(fault); },
     .end = set_power_on,
     .needs_programs = true,
     .explored = "power-off PMEM;power-off PMEM random;power-off PMEM for 1s;"
                 "power-off PMEM random for 1s",
     .former_name = "power",
     .weight = 4},
    {.name = "power-on",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "starts the COMMANDs of the host again",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { set_power_on(machines, fault); },
     .starts_programs = true,
     .needs_programs = true},
    {.name = "clock-ahead",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::TIME,
     .arguments = "HOST TIME",
     .text = "the time of day of the host is ahead by TIME (only in explore)",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines,
                  const Fault &fault) { machines.set_clock(fault.hosts[0], fault.number); },
     .end = [](Machines &machines,
               const Fault &fault) { machines.set_clock(fault.hosts[0], 0); },
     .is_only_explored = true,
     .is_noticed = true,
     .needs_programs = true,
     .sets_clock = true,
     .explored = "clock-ahead HOST 10s;clock-ahead HOST 10s for 1s"},
    // Linux 6.1, drivers/infiniband/sw/rxe/rxe_comp.c, check_ack(): the NAK "remote operational
    // error" completes a request with this status. That a device sends it for memory that it
    // cannot read is an assumption. rxe and siw read memory with the processor.
    {.name = "poison",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "256 bytes of the memory that is read next are damaged until they are written",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return !sim_is_software(&device); },
     .effect = [](Machines &machines,
                  const Fault &fault) { machines.fabric().poison(fault.hosts[0]); },
     .explored = "poison HOST"},
    {.name = "refuse",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::OPTIONAL_COUNT,
     .arguments = "HOST [N] [ERRNO]",
     .text = "the Nth post from now on fails (ENOMEM)",
     .is_of_device = EVERY_DEVICE,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().refuse_post(fault.hosts[0], count_of(fault), fault.error);
         },
     .error = ENOMEM,
     .explored = "refuse HOST;refuse HOST 2;refuse HOST 4",
     .weight = 4},
    {.name = "doorbell",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST [ERRNO]",
     .text = "the next list of sends is queued, but its post fails (EIO)",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return device.has_doorbell_call; },
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().refuse_post(fault.hosts[0], 0, fault.error);
         },
     .error = EIO,
     // Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_post_send(): no memory
     .explored = "doorbell HOST;doorbell HOST ENOMEM",
     .weight = 4},
    {.name = "fail",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::CALL,
     .arguments = "HOST CALL [N] [ERRNO]",
     .text = "the Nth CALL from now on, which creates an object, fails (ENOMEM)",
     .is_of_device = EVERY_DEVICE,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().fail_call(fault.hosts[0], fault.failing->op, count_of(fault),
                                         fault.error);
         },
     .error = ENOMEM,
     .explored = "fail HOST CREATING",
     .weight = 2},
    {.name = "overrun",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "all completion queues overrun",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return has_event(device, IBV_EVENT_CQ_ERR); },
     .effect = [](Machines &machines,
                  const Fault &fault) { machines.fabric().overrun_cqs(fault.hosts[0]); },
     .explored = "overrun HOST"},
    {.name = "event",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::EVENT,
     .arguments = "HOST EVENT",
     .text = "an asynchronous event for the objects of the device",
     .is_of_device = [](const sim_profile &device,
                        const Fault &fault) { return has_event(device, fault.event); },
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().raise_async(fault.hosts[0], device_of(machines, fault),
                                           fault.event);
         },
     .explored = "event HOST EVENT"},
    {.name = "addr-change",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "the address moves to another interface",
     .is_of_device = EVERY_DEVICE,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().change_address(fault.hosts[0], device_of(machines, fault));
         },
     .explored = "addr-change HOST"},
    {.name = "remove",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "removes the device",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return device.can_be_removed; },
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().remove_device(fault.hosts[0], device_of(machines, fault));
         },
     .end = insert_device,
     .explored = "remove HOST;remove HOST for 1s"},
    {.name = "insert",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "the removed device is back, as a new one with the same addresses",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return device.can_be_removed; },
     .effect = [](Machines &machines, const Fault &fault) { insert_device(machines, fault); }},
};

} // namespace

std::span<const FaultKind> fault_kinds() {
    return FAULTS;
}

const FaultKind *find_fault(std::string_view name) {
    const auto found = std::ranges::find(
        FAULTS, name, [](const FaultKind &each) { return std::string_view(each.name); });
    return found == std::end(FAULTS) ? nullptr : found;
}

bool is_possible(const sim_profile &device, const Fault &fault) {
    return fault.kind->is_of_device.apply(device, fault);
}

void apply(Machines &machines, const Fault &fault) {
    fault.kind->effect.apply(machines, fault);
}

void end(Machines &machines, const Fault &fault) {
    fault.kind->end(machines, fault);
}

std::vector<const Fault *> CallFaults::take(const Fabric &fabric, const Caller &caller,
                                            std::span<const std::byte> request) {
    const CallName *const call = name_of_call(fabric, request);
    std::vector<const Fault *> taken;
    if (call)
        std::erase_if(pending_, [&](Pending &each) {
            const bool is_now = each.fault->caller == caller.session->host->number &&
                                each.fault->call == call && ++each.calls == each.fault->nth;
            if (is_now)
                taken.push_back(each.fault);
            return is_now;
        });
    return taken;
}

} // namespace sim
