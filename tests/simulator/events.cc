// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// events.cc -- the possible next events, the default one, and their effects

#include "simulation.hh"

#include "model/faults.hh"

#include <algorithm>
#include <cstdlib>
#include <cstring>

// The memory that a power failure leaves; variants of POWER.
enum Loss { OLD, NEW, MIXED };

// The name of a fault that rdma-sim has, too.
static const char *fault(const char *name) {
    const sim::FaultKind *const kind = sim::find_fault(name);
    if (!kind)
        abort();
    return kind->name;
}

// The other rows are no faults: steps of the schedule, and acts of an operator (README.md). The
// variant of FAIL, CM_EVENT and COMPLETE is the side. Other variants: see each row.
const EventKind event_kinds[] = {
    {"run", "%s continues", 1},
    {"request", "the request of %s arrives", 1},
    {"cm-event", "%s: a CM event arrives", 2},
    // variant = visibility + 3 * side + 6 * passes_reads
    {"execute", "%s: an operation is executed", 12},
    {"complete", "%s: completions arrive", 2},
    {"fail", "%s: the outstanding operations fail", 2},
    {"start", "%s starts", 1}, // also starts its machine
    {fault("join"), "%s is on the network again", 1},
    {"time", "time passes%s", 1},                    // until the next timer
    {fault("flap"), "%s: the connection breaks", 6}, // Outcome; + 3: neither side is notified
    {fault("kill"), "%s is killed", 2},              // 1: for a long time
    {fault("power-off"), "%s: the power fails", 6},  // Loss; + 3: for a long time
    {fault("power-off"), "the power of all servers fails%s", 3},
    {fault("cut"), "%s loses the network", 2}, // 1: for a long time
    {fault("freeze"), "%s is suspended", 2},
    {"blank", "%s gets a blank memory", 1},
    {fault("addr-change"), "the link address of %s changes", 1},
    {"copy", "the memory of %s is copied or restored", 1},
    {fault("refuse"), "the next post of %s fails", 3}}; // Refusal

namespace {

constexpr int64_t RESTART_MS[] = {1000, 5000}; // until a failed server or machine restarts
constexpr int64_t FLIGHT_MAX_MS = 30000; // no packet arrives later, and no wait ends before it
constexpr int64_t SUSPENDED_MS[] = {4000, 70000}; // how long a program is suspended

} // namespace

bool Simulation::is_ready(const Process &process) {
    if (process.state == Process::OFF || process.frozen_until > now)
        return false;
    return process.state == Process::READY || process.deadline <= now ||
           std::any_of(process.fds, process.fds + process.fd_count,
                       [this](const pollfd &fd) { return fd.fd >= 0 && is_readable(fd.fd); });
}

// The time of the next event of a program that depends only on time, or NEVER.
int64_t Simulation::next_time() {
    int64_t next = NEVER;
    for (auto &process : processes) {
        next = std::min({next, process->restart_at, process->machine->reconnect_at});
        if (process->frozen_until > now)
            next = std::min(next, process->frozen_until);
        else if (process->state == Process::WAITING)
            next = std::min(next, process->deadline);
    }
    return next;
}

// The client that may be started now, or NULL.
Process *Simulation::next_client() {
    for (unsigned i = 0; i < configuration->clients && !repaired; i++)
        if (!processes[configuration->servers + i]->starts)
            return processes[configuration->servers + i].get();
    return nullptr;
}

// The other variants of EXECUTE are possible only if ALL is.
bool Simulation::is_possible_on_link(const Event &event) const {
    const Link &link = *network.links[event.object];
    const int side = event.side();
    switch (event.kind) {
    case Event::REQUEST:
        return network.has_request(link);
    case Event::CM_EVENT:
        return network.has_cm_event(link, side);
    case Event::EXECUTE:
        return event.variant % 3 == ALL ? network.can_execute(link, side, event.passes())
                                        : network.is_write_next(link, side, event.passes());
    case Event::COMPLETE:
        return network.can_complete(link, side);
    case Event::FAIL:
        return network.can_fail(link, side);
    default: // BREAK
        return network.can_break(link);
    }
}

bool Simulation::is_possible(const Event &event) {
    if (repaired && event.kind >= Event::FIRST_FAULT)
        return false;
    if (event.is_of_link())
        return is_possible_on_link(event);
    const Process &process = *processes[event.object];
    const Oracle &oracle = *configuration->oracle;
    bool runs = process.state != Process::OFF;
    switch (event.kind) {
    case Event::RUN:
        return &process != running_ && is_ready(process);
    case Event::START:
        return process.is_server ? !runs && !repaired : &process == next_client();
    case Event::RECONNECT:
        return process.machine->disconnected;
    case Event::TIME:
        return next_time() < now + FLIGHT_MAX_MS;
    case Event::KILL:
        return runs && (process.is_server || event.variant == 0) && may_lose_data(process);
    case Event::POWER:
        return process.is_server && process.machine->on && may_lose_data(process);
    case Event::DISCONNECT:
        return runs && !process.machine->disconnected;
    case Event::FREEZE: // a second server must not lock the log before the first one
        return runs && process.frozen_until <= now &&
               (!configuration->first_client || !process.is_server || process.has_listened);
    case Event::ADDRESS:
        return configuration->bonds && runs;
    case Event::REFUSE:
        return runs;
    case Event::COPY:
        return configuration->copies && process.is_server && process.has_listened;
    case Event::BLANK:
        return configuration->loses_memory && process.is_server &&
               oracle.may_lose_memory(process);
    default: // POWER_ALL
        return may_lose_data(*processes[configuration->servers - 1]);
    }
}

// The memory of a server without a file is lost with its program.
bool Simulation::may_lose_data(const Process &process) const {
    const Configuration &used = *configuration;
    return !process.is_server || !used.oracle->may_lose_memory ||
           used.has_file(process.index) || used.oracle->may_lose_memory(process);
}

// The default event: the running program continues until it
// waits, then another ready one. Otherwise a message of the oldest connection arrives, or time
// passes.
Event Simulation::default_event() {
    if (running_ && is_ready(*running_))
        return {Event::RUN, running_->index, 0};
    for (auto &process : processes)
        if (is_ready(*process))
            return {Event::RUN, process->index, 0};
    network.forget_closed_links();
    for (uint16_t i : network.open_links)
        for (auto kind :
             {Event::REQUEST, Event::EXECUTE, Event::COMPLETE, Event::FAIL, Event::CM_EVENT})
            for (uint16_t side = 0; side < (kind == Event::REQUEST ? 1 : 2); side++) {
                const Event event{
                    kind, i, static_cast<uint16_t>(kind == Event::EXECUTE ? 3 * side : side)};
                if (is_possible_on_link(event) &&
                    (kind != Event::FAIL || network.is_broken(*network.links[i], side)))
                    return event;
            }
    Process *client = next_client();
    bool clients_are_off = std::ranges::all_of(processes, [](auto &process) {
        return process->is_server || process->state == Process::OFF;
    });
    if (client && clients_are_off)
        return {Event::START, client->index, 0};
    if (next_time() != NEVER || network.next_time() != NEVER)
        return {Event::TIME, 0, 0};
    for (uint16_t i : network.open_links)
        for (uint16_t side = 0; side < 2; side++)
            if (is_possible_on_link({Event::FAIL, i, side}))
                return {Event::FAIL, i, side};
    return client ? Event{Event::START, client->index, 0} : Event{Event::TIME, 0, 0};
}

const std::vector<Event> &Simulation::options() {
    options_.clear();
    uint8_t end = schedule_->may_fault() ? Event::KINDS : Event::FIRST_FAULT;
    for (uint8_t kind = 0; kind < end; kind++) {
        Event event{static_cast<Event::Kind>(kind), 0, 0};
        bool is_global = event.kind == Event::TIME || event.kind == Event::POWER_ALL;
        size_t count = event.is_of_link() ? network.open_links.size()
                       : is_global        ? 1
                                          : processes.size();
        for (size_t i = 0; i < count; i++) {
            event.object =
                event.is_of_link() ? network.open_links[i] : static_cast<uint16_t>(i);
            for (event.variant = 0; event.variant < event_kinds[kind].variants; event.variant++)
                if (is_possible(event))
                    options_.push_back(event);
                else if (kind >= Event::FIRST_FAULT)
                    break; // no other variant is possible
                else if (kind == Event::EXECUTE && event.variant % 3 == ALL)
                    event.variant += SOME; // skips the other variants of this side
        }
    }
    return options_;
}

// Half of the faults are in the machine's own link, so that its port has an event.
void Simulation::disconnect(Machine &machine, unsigned variant) {
    machine.disconnected = true;
    machine.reconnect_at = now + RESTART_MS[variant];
    if (random_bit())
        network.set_port(machine, false);
}

void Simulation::reconnect(Machine &machine) {
    machine.disconnected = false;
    machine.reconnect_at = NEVER;
    network.set_port(machine, true);
}

void Simulation::pass_time() {
    int64_t next = std::min(next_time(), network.next_time());
    if (next == NEVER && !faulted)
        finding = "deadlock: no event is possible, and a program has not ended";
    if (next == NEVER) { // an operator stops the clients that wait forever
        for (auto &process : processes)
            if (!process->is_server && process->state == Process::WAITING)
                process->end(Process::KILLED);
        return;
    }
    now = std::max(now, next);
    network.advance(now);
    for (auto &process : processes) {
        if (process->restart_at <= now)
            start(*process);
        if (process->machine->reconnect_at <= now)
            reconnect(*process->machine);
    }
}

void Simulation::fail_power(Process &server, unsigned variant) {
    server.machine->on = false;
    network.set_power(*server.machine, false);
    kill(server);
    server.machine->memory.lose_power(
        [this, variant] { return variant % 3 == MIXED ? random_bit() : variant % 3 == NEW; });
    server.restart_at = now + RESTART_MS[variant / 3];
}

void Simulation::kill(Process &process) {
    if (process.state != Process::OFF)
        process.end(Process::KILLED);
}

void Simulation::apply_to_link(const Event &event) {
    Link &link = *network.links[event.object];
    const int side = event.side();
    switch (event.kind) {
    case Event::REQUEST:
        return network.deliver_request(link);
    case Event::CM_EVENT:
        return network.deliver_event(link, side);
    case Event::EXECUTE:
        return network.execute(link, side, static_cast<Visible>(event.variant % 3),
                               event.passes());
    case Event::COMPLETE:
        return network.complete(link, side);
    case Event::FAIL:
        return network.fail(link, side);
    default: // BREAK
        return network.break_link(link, static_cast<Outcome>(event.variant % 3),
                                  event.variant >= 3);
    }
}

void Simulation::copy_or_restore(Process &server) {
    Memory &memory = server.machine->memory;
    std::string &copy = server.machine->copy;
    if (copy.empty()) {
        copy.assign(memory.visible(), MEMORY_SIZE);
        return;
    }
    kill(server);
    memory.reset();
    memcpy(memory.visible(), copy.data(), MEMORY_SIZE);
    memory.persist(0, MEMORY_SIZE);
    server.restart_at = now + RESTART_MS[0];
}

void Simulation::apply(const Event &event) {
    faulted |= event.kind >= Event::FIRST_FAULT && event.kind != Event::ADDRESS;
    if (tracing && event.kind != Event::RUN)
        trace("- " + describe(event));
    if (event.is_of_link())
        return apply_to_link(event);
    Process &process = *processes[event.object];
    Machine &machine = *process.machine;
    switch (event.kind) {
    case Event::RUN:
        running_ = &process;
        return process.resume();
    case Event::START: // an event of a script may find the program running
        return process.state == Process::OFF ? start(process) : void();
    case Event::RECONNECT:
        return reconnect(machine);
    case Event::TIME:
        return pass_time();
    case Event::KILL:
        kill(process);
        if (process.is_server)
            process.restart_at = now + RESTART_MS[event.variant];
        return;
    case Event::POWER:
        return fail_power(process, event.variant);
    case Event::POWER_ALL:
        for (unsigned i = 0; i < configuration->servers; i++)
            fail_power(*processes[i], event.variant);
        return;
    case Event::DISCONNECT:
        return disconnect(machine, event.variant);
    case Event::ADDRESS:
        return network.change_address(machine);
    case Event::COPY:
        return copy_or_restore(process);
    case Event::REFUSE:
        return network.refuse_post(machine, static_cast<Refusal>(event.variant));
    case Event::BLANK:
        kill(process);
        machine.memory.reset();
        process.has_listened = false;
        process.restart_at = now + RESTART_MS[0];
        return;
    default: // FREEZE
        process.frozen_until = now + SUSPENDED_MS[event.variant];
    }
}

std::string Simulation::describe(const Event &event) const {
    std::string object;
    if (event.is_of_link()) {
        const Link &link = *network.links[event.object];
        object = link.machines[0]->name + " -> " + link.machines[1]->name + " #" +
                 std::to_string(link.number);
    } else if (event.kind != Event::TIME && event.kind != Event::POWER_ALL) {
        object = processes[event.object]->name;
    }
    std::string text = event_kinds[event.kind].format;
    text.replace(text.find("%s"), 2, object);
    return text + (event.variant ? ", variant " + std::to_string(event.variant) : "");
}
