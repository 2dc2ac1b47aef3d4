// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// events.cc -- the events that may happen next, the usual one, and their effects

#include "world.hh"

#include <algorithm>
#include <cstring>

// What a power failure leaves; of the variants of POWER.
enum Loss { OLD, NEW, MIXED };

// The variants of FAIL, NEWS and COMPLETE are the side; + 3 means: for long, or in silence.
const Event_kind event_kinds[] = {
    {"run", "%s goes on", 1},
    {"request", "the request of %s arrives", 1},
    {"news", "%s: news arrive", 2},
    {"execute", "%s: the next operation is executed", 6}, // Flow::Visible + 3 * the side
    {"complete", "%s: completions arrive", 2},
    {"fail", "%s: what is outstanding fails", 2},
    {"start", "%s starts", 1}, // its machine too, if that is off
    {"join", "%s is on the network again", 1},
    {"time", "time passes%s", 1},              // until an event is due
    {"break", "%s: the connection breaks", 6}, // Link::Fate + 3
    {"kill", "%s is killed", 2},               // 1: for long
    {"power", "%s: the power fails", 6},       // Loss + 3
    {"power-all", "the power of all servers fails%s", 3},
    {"cut", "%s is cut off", 4}, // 1: for long, + 2: its device is removed
    {"freeze", "%s stands still", 2},
    {"forget", "%s gets a blank memory", 1},
    {"address", "the link address of %s changes", 1},
    {"copy", "the memory of %s is copied, or put back", 1}};

namespace {

constexpr int64_t SOON_MS[] = {1000, 5000};        // until a failed server or machine is back
constexpr int64_t STANDSTILL_MS[] = {4000, 70000}; // for how long a program stands still

} // namespace

bool World::is_ready(const Process &process) {
    if (process.state == Process::OFF || process.frozen_until > now)
        return false;
    return process.state == Process::READY || process.deadline <= now ||
           std::any_of(process.fds, process.fds + process.fd_count,
                       [this](const pollfd &fd) { return fd.fd >= 0 && is_readable(fd.fd); });
}

// The time of the next event that only passing time brings about, or NEVER.
int64_t World::next_time() {
    int64_t next = NEVER;
    for (auto &process : processes) {
        next = std::min({next, process->back_at, process->machine->back_at});
        if (process->frozen_until > now)
            next = std::min(next, process->frozen_until);
        else if (process->state == Process::WAITING)
            next = std::min(next, process->deadline);
    }
    return next;
}

// The client that may be started now, or NULL.
Process *World::next_client() {
    for (unsigned i = 0; i < configuration->clients && !healed; i++)
        if (!processes[configuration->servers + i]->starts)
            return processes[configuration->servers + i].get();
    return nullptr;
}

bool World::may_on_link(const Event &event) const {
    const Link &link = *links[event.object];
    const Flow &flow = link.flows[event.side()];
    switch (event.kind) {
    case Event::REQUEST:
        return (link.state == Link::REQUESTED || link.state == Link::RESOLVING) &&
               link.is_open();
    case Event::NEWS:
        return link.conns[event.side()] && !link.news[event.side()].empty() && link.is_open();
    case Event::EXECUTE:
        return flow.can_pass() && flow.has_work() &&
               (event.variant % 3 == Flow::ALL ||
                flow.posted[flow.executed].shape.kind == Shape::WRITE);
    case Event::COMPLETE:
        return flow.can_pass() && flow.has_answers() && link.conns[event.side()];
    case Event::FAIL:
        return flow.may_fail();
    default: // BREAK
        return (link.state == Link::UP || link.state == Link::ANSWERED) && !link.broken &&
               link.conns[0] && link.conns[1];
    }
}

bool World::may(const Event &event) {
    if (healed && event.kind >= Event::FIRST_FAULT)
        return false;
    if (event.is_of_link())
        return may_on_link(event);
    const Process &process = *processes[event.object];
    const Oracle &oracle = *configuration->oracle;
    bool runs = process.state != Process::OFF;
    switch (event.kind) {
    case Event::RUN:
        return &process != m_running && is_ready(process);
    case Event::START:
        return process.is_server ? !runs && !healed : &process == next_client();
    case Event::JOIN:
        return process.machine->cut_off;
    case Event::TIME:
        return next_time() != NEVER && (!oracle.hurries || m_hurried < oracle.hurries);
    case Event::KILL:
        return runs && (process.is_server || event.variant == 0) && may_lose(process);
    case Event::POWER:
        return process.is_server && process.machine->on && may_lose(process);
    case Event::CUT:
        return runs && !process.machine->cut_off && (event.variant < 2 || oracle.heeds_device);
    case Event::FREEZE: // a server that has no lock yet would find that of the stranger
        return runs && process.frozen_until <= now &&
               (!configuration->stranger || !process.is_server || process.was_ready);
    case Event::ADDRESS:
        return configuration->bonds && runs;
    case Event::COPY:
        return configuration->copies && process.is_server && process.was_ready;
    case Event::FORGET:
        return configuration->forgets && process.is_server && oracle.may_forget(process);
    default: // POWER_ALL
        return may_lose(*processes[configuration->servers - 1]);
    }
}

// What a server without a file has is lost with its program.
bool World::may_lose(const Process &process) const {
    const Configuration &used = *configuration;
    return !process.is_server || !used.oracle->may_forget || used.has_file(process.index) ||
           used.oracle->may_forget(process);
}

/*
 * The usual event, unless the schedule chooses another one: a program runs until it waits, then
 * another runs; then messages arrive, those of the oldest connection first; then time passes.
 */
Event World::usual_event() {
    if (m_running && is_ready(*m_running))
        return {Event::RUN, m_running->index, 0};
    for (auto &process : processes)
        if (is_ready(*process))
            return {Event::RUN, process->index, 0};
    std::erase_if(open_links, [this](uint16_t i) {
        return !links[i]->conns[0] && !links[i]->conns[1] && links[i]->state != Link::WAITING;
    });
    for (uint16_t i : open_links)
        for (auto kind :
             {Event::REQUEST, Event::EXECUTE, Event::COMPLETE, Event::FAIL, Event::NEWS})
            for (uint16_t side = 0; side < (kind == Event::REQUEST ? 1 : 2); side++) {
                const Event event{
                    kind, i, static_cast<uint16_t>(kind == Event::EXECUTE ? 3 * side : side)};
                if (may_on_link(event) &&
                    (kind != Event::FAIL || (links[i]->broken && !links[i]->silent)))
                    return event;
            }
    Process *client = next_client();
    bool clients_are_off = std::ranges::all_of(processes, [](auto &process) {
        return process->is_server || process->state == Process::OFF;
    });
    if (client && clients_are_off)
        return {Event::START, client->index, 0};
    if (next_time() != NEVER)
        return {Event::TIME, 0, 0};
    for (uint16_t i : open_links)
        for (uint16_t side = 0; side < 2; side++)
            if (may_on_link({Event::FAIL, i, side}))
                return {Event::FAIL, i, side};
    return client ? Event{Event::START, client->index, 0} : Event{Event::TIME, 0, 0};
}

const std::vector<Event> &World::options() {
    m_options.clear();
    uint8_t end = m_schedule->may_fault() ? Event::KINDS : Event::FIRST_FAULT;
    for (uint8_t kind = 0; kind < end; kind++) {
        Event event{static_cast<Event::Kind>(kind), 0, 0};
        bool of_all = event.kind == Event::TIME || event.kind == Event::POWER_ALL;
        size_t count = event.is_of_link() ? open_links.size() : of_all ? 1 : processes.size();
        for (size_t i = 0; i < count; i++) {
            event.object = event.is_of_link() ? open_links[i] : static_cast<uint16_t>(i);
            for (event.variant = 0; event.variant < event_kinds[kind].variants; event.variant++)
                if (may(event))
                    m_options.push_back(event);
                else if (kind >= Event::FIRST_FAULT)
                    break; // it has no other variants, either
        }
    }
    return m_options;
}

// The port of a machine notices, unless it was somewhere else that the network was cut.
void World::tell_peers(Machine &machine, rpma_peer_event_type type) {
    if (type == RPMA_PEER_EVENT_PORT_DOWN)
        machine.port_down = chance();
    for (rpma_peer *peer : peers)
        if (machine.port_down && peer->alive && !peer->gone && peer->owner->machine == &machine)
            peer->events.push_back(type);
}

// Linux removes a device although programs use it. Its connections are over; another device
// with the same address comes later.
void World::remove_device(Machine &machine) {
    machine.no_device = true;
    for (rpma_peer *peer : peers)
        if (peer->alive && peer->owner->machine == &machine) {
            peer->gone = true;
            peer->events.push_back(RPMA_PEER_EVENT_DEVICE_GONE);
        }
    for (rpma_ep *ep : endpoints)
        if (ep->alive && ep->owner->machine == &machine)
            ep->port.clear(); // nothing finds it any more
    for (uint16_t i : open_links) {
        Link &link = *links[i];
        if (link.machines[0] != &machine && link.machines[1] != &machine)
            continue;
        if (may_on_link({Event::BREAK, i, 0}))
            link.break_up(Link::PARTLY_EXECUTED, true);
        else if (link.state <= Link::REQUESTED)
            link.state = Link::OVER;
    }
}

void World::join(Machine &machine) {
    machine.cut_off = machine.no_device = false;
    machine.back_at = NEVER;
    tell_peers(machine, RPMA_PEER_EVENT_PORT_UP);
    machine.port_down = false;
}

void World::pass_time() {
    int64_t next = next_time();
    if (next == NEVER && !faulted)
        finding = "nothing can happen any more, but not every program has ended";
    if (next == NEVER) { // an operator ends the clients that wait for ever
        for (auto &process : processes)
            if (!process->is_server && process->state == Process::WAITING)
                process->end(Process::KILLED);
        return;
    }
    now = std::max(now, next);
    for (auto &process : processes) {
        if (process->back_at <= now)
            start(*process);
        if (process->machine->back_at <= now)
            join(*process->machine);
    }
}

void World::fail_power(Process &server, unsigned variant) {
    server.machine->on = false;
    kill(server);
    server.machine->memory.lose_power(
        [this, variant] { return variant % 3 == MIXED ? chance() : variant % 3 == NEW; });
    server.back_at = now + SOON_MS[variant / 3];
}

void World::kill(Process &process) {
    if (process.state != Process::OFF)
        process.end(Process::KILLED);
}

void World::apply_to_link(const Event &event) {
    Link &link = *links[event.object];
    Flow &flow = link.flows[event.side()];
    switch (event.kind) {
    case Event::REQUEST:
        return link.arrive();
    case Event::NEWS:
        return link.tell(event.side());
    case Event::EXECUTE:
        return flow.execute(static_cast<Flow::Visible>(event.variant % 3));
    case Event::COMPLETE:
        return flow.complete();
    case Event::FAIL:
        return flow.fail_outstanding();
    default: // BREAK
        return link.break_up(static_cast<Link::Fate>(event.variant % 3), event.variant >= 3);
    }
}

void World::copy_or_restore(Process &server) {
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
    server.back_at = now + SOON_MS[0];
}

// As a bond's does. Linux notifies every endpoint and connection, and drops what it has for a
// request that no program has accepted.
void World::change_address(const Machine &machine) {
    for (rpma_ep *ep : endpoints)
        if (ep->alive && ep->owner->machine == &machine)
            ep->address_changes++;
    for (uint16_t i : open_links)
        for (int side = 0; side < 2; side++)
            if (links[i]->machines[side] == &machine && links[i]->conns[side])
                links[i]->conns[side]->events.push_back(ADDRESS_CHANGED);
}

void World::apply(const Event &event) {
    faulted |= event.kind >= Event::FIRST_FAULT && event.kind != Event::ADDRESS;
    if (tracing && event.kind != Event::RUN)
        trace("- " + text_of(event));
    if (event.is_of_link())
        return apply_to_link(event);
    Process &process = *processes[event.object];
    Machine &machine = *process.machine;
    switch (event.kind) {
    case Event::RUN:
        m_running = &process;
        return process.resume();
    case Event::START: // a script may come too late
        return process.state == Process::OFF ? start(process) : void();
    case Event::JOIN:
        return join(machine);
    case Event::TIME:
        return pass_time();
    case Event::KILL:
        kill(process);
        if (process.is_server)
            process.back_at = now + SOON_MS[event.variant];
        return;
    case Event::POWER:
        return fail_power(process, event.variant);
    case Event::POWER_ALL:
        for (unsigned i = 0; i < configuration->servers; i++)
            fail_power(*processes[i], event.variant);
        return;
    case Event::CUT:
        machine.cut_off = true;
        machine.back_at = now + SOON_MS[event.variant % 2];
        return event.variant < 2 ? tell_peers(machine, RPMA_PEER_EVENT_PORT_DOWN)
                                 : remove_device(machine);
    case Event::ADDRESS:
        return change_address(machine);
    case Event::COPY:
        return copy_or_restore(process);
    case Event::FORGET:
        kill(process);
        machine.memory.reset();
        process.was_ready = false;
        process.back_at = now + SOON_MS[0];
        return;
    default: // FREEZE
        process.frozen_until = now + STANDSTILL_MS[event.variant];
    }
}

std::string World::text_of(const Event &event) const {
    std::string object;
    if (event.is_of_link()) {
        const Link &link = *links[event.object];
        object = link.machines[0]->name + " -> " + link.machines[1]->name + " #" +
                 std::to_string(link.number);
    } else if (event.kind != Event::TIME && event.kind != Event::POWER_ALL) {
        object = processes[event.object]->name;
    }
    std::string text = event_kinds[event.kind].words;
    text.replace(text.find("%s"), 2, object);
    return text + (event.variant ? ", variant " + std::to_string(event.variant) : "");
}
