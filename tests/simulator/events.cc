// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// events.cc -- the events that may happen next, the usual one, and their effects

#include "world.hh"

#include <algorithm>

namespace {

constexpr int64_t SOON_MS[] = {1000, 5000};        // until a failed server or machine is back
constexpr int64_t STANDSTILL_MS[] = {4000, 70000}; // for how long a program stands still

// Of an event that belongs to one side of a connection.
uint16_t variant_of(Event::Kind kind, uint16_t side) {
    return kind == Event::EXECUTE ? static_cast<uint16_t>(3 * side) : side;
}

bool is_of_link(const Event &event) {
    return event.kind == Event::BREAK ||
           (event.kind >= Event::REQUEST && event.kind <= Event::FAIL);
}

} // namespace

bool World::is_ready(const Process &process) {
    if (process.state == Process::OFF || process.frozen_until > now)
        return false;
    if (process.state == Process::READY || process.deadline <= now)
        return true;
    for (size_t i = 0; i < process.fd_count; i++)
        if (process.fds[i].fd >= 0 && is_readable(process.fds[i].fd))
            return true;
    return false;
}

// The time of the next event that only passing time brings about, or NEVER.
int64_t World::next_time() {
    int64_t next = NEVER;
    for (auto &process : processes) {
        next = std::min(next, process->back_at);
        if (process->frozen_until > now)
            next = std::min(next, process->frozen_until);
        else if (process->state == Process::WAITING)
            next = std::min(next, process->deadline);
    }
    for (auto &machine : machines)
        next = std::min(next, machine->back_at);
    return next;
}

// The client that may be started now, or NULL.
Process *World::next_client() {
    for (unsigned i = 0; i < configuration->clients && !healed; i++)
        if (!processes[configuration->servers + i]->starts)
            return processes[configuration->servers + i].get();
    return nullptr;
}

bool World::may(Event::Kind kind, const Link &link, int side) const {
    bool connected = link.state == Link::UP || link.state == Link::ANSWERED;
    switch (kind) {
    case Event::REQUEST:
        return (link.state == Link::REQUESTED || link.state == Link::RESOLVING) &&
               link.can_resolve();
    case Event::NEWS:
        return link.reaches(side);
    case Event::EXECUTE:
        return link.flows[side].can_pass() && link.flows[side].has_work();
    case Event::COMPLETE:
        return link.flows[side].can_pass() && link.flows[side].has_answers() &&
               link.conns[side];
    case Event::FAIL:
        return link.flows[side].may_fail();
    default: // BREAK
        return connected && !link.broken && link.conns[0] && link.conns[1];
    }
}

uint16_t World::index_of(const Process *process) const {
    uint16_t index = 0;
    while (processes[index].get() != process)
        index++;
    return index;
}

/*
 * The usual event, unless the schedule chooses another one: a program runs until it waits, then
 * another runs; then messages arrive, those of the oldest connection first; then time passes.
 */
Event World::usual_event() {
    if (m_running && is_ready(*m_running))
        return {Event::RUN, index_of(m_running), 0};
    for (uint16_t i = 0; i < processes.size(); i++)
        if (is_ready(*processes[i]))
            return {Event::RUN, i, 0};
    std::erase_if(open_links, [this](uint16_t i) {
        return !links[i]->conns[0] && !links[i]->conns[1] && links[i]->state != Link::WAITING;
    });
    for (uint16_t i : open_links) {
        const Link &link = *links[i];
        for (auto kind :
             {Event::REQUEST, Event::EXECUTE, Event::COMPLETE, Event::FAIL, Event::NEWS})
            for (uint16_t side = 0; side < 2; side++)
                if (may(kind, link, side) &&
                    (kind != Event::FAIL || (link.broken && !link.silent)))
                    return {kind, i, variant_of(kind, side)};
    }
    Process *client = next_client();
    if (client && std::all_of(processes.begin(), processes.end(), [](auto &process) {
            return process->is_server || process->state == Process::OFF;
        }))
        return {Event::START, index_of(client), 0};
    if (next_time() == NEVER)
        for (uint16_t i : open_links)
            for (uint16_t side = 0; side < 2; side++)
                if (may(Event::FAIL, *links[i], side))
                    return {Event::FAIL, i, side};
    if (client && next_time() == NEVER)
        return {Event::START, index_of(client), 0};
    return {Event::TIME, 0, 0};
}

const std::vector<Event> &World::options() {
    m_options.clear();
    auto add = [this](Event::Kind kind, size_t object, unsigned variants, unsigned first = 0) {
        for (unsigned i = first; i < first + variants; i++)
            m_options.push_back(
                {kind, static_cast<uint16_t>(object), static_cast<uint16_t>(i)});
    };
    for (size_t i = 0; i < processes.size(); i++)
        if (processes[i].get() != m_running && is_ready(*processes[i]))
            add(Event::RUN, i, 1);
    for (auto kind :
         {Event::REQUEST, Event::NEWS, Event::EXECUTE, Event::COMPLETE, Event::FAIL})
        for (uint16_t i : open_links) {
            for (uint16_t side = 0; side < (kind == Event::REQUEST ? 1 : 2); side++) {
                const Flow &flow = links[i]->flows[side];
                bool write = kind == Event::EXECUTE && flow.has_work() &&
                             flow.posted[flow.executed].kind == Operation::WRITE;
                if (may(kind, *links[i], side))
                    add(kind, i, write ? 3 : 1, variant_of(kind, side));
            }
        }
    if (Process *client = next_client())
        add(Event::START, index_of(client), 1);
    for (size_t i = 0; i < processes.size(); i++)
        if (processes[i]->is_server && processes[i]->state == Process::OFF && !healed)
            add(Event::START, i, 1);
    for (size_t i = 0; i < machines.size(); i++)
        if (machines[i]->cut_off)
            add(Event::JOIN, i, 1);
    unsigned hurries = configuration->example->hurries;
    if (next_time() != NEVER && (!hurries || m_hurried < hurries))
        add(Event::TIME, 0, 1);
    if (!healed)
        add_faults(add);
    return m_options;
}

template <typename Add> void World::add_faults(Add add) {
    for (uint16_t i : open_links)
        if (may(Event::BREAK, *links[i], 0))
            add(Event::BREAK, i, 6);
    for (size_t i = 0; i < processes.size(); i++)
        if (processes[i]->state != Process::OFF)
            add(Event::KILL, i, processes[i]->is_server ? 2 : 1);
    for (size_t i = 0; i < configuration->servers; i++)
        if (machines[i]->on)
            add(Event::POWER, i, 6);
    add(Event::POWER_ALL, 0, 3);
    for (size_t i = 0; i < machines.size(); i++)
        if (!machines[i]->cut_off && processes[i]->state != Process::OFF)
            add(Event::CUT, i, configuration->example->heeds_device ? 4 : 2);
    for (size_t i = 0; i < processes.size(); i++)
        if (processes[i]->state != Process::OFF && processes[i]->frozen_until <= now)
            add(Event::FREEZE, i, 2);
    for (size_t i = 0; i < configuration->servers && configuration->forgets; i++)
        if (configuration->example->may_forget(*processes[i]))
            add(Event::FORGET, i, 1);
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
        if (may(Event::BREAK, link, 0))
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
    for (size_t i = 0; i < processes.size(); i++) {
        if (processes[i]->back_at <= now)
            start(*processes[i]);
        if (machines[i]->back_at <= now)
            join(*machines[i]);
    }
}

void World::fail_power(Process &server, unsigned variant) {
    Machine &machine = *server.machine;
    machine.on = false;
    if (server.state != Process::OFF)
        server.end(Process::KILLED);
    auto loss = static_cast<Event::Loss>(variant % 3);
    machine.memory.lose_power(
        [this, loss] { return loss == Event::MIXED ? chance() : loss == Event::NEW; });
    server.back_at = now + SOON_MS[variant / 3];
}

void World::apply(const Event &event) {
    uint16_t variant = event.variant;
    faulted |= event.kind >= Event::FIRST_FAULT;
    if (tracing && event.kind != Event::RUN)
        trace("- %s", text_of(event).c_str());
    if (is_of_link(event)) {
        Link &link = *links[event.object];
        switch (event.kind) {
        case Event::REQUEST:
            return link.arrive();
        case Event::NEWS:
            return link.tell(variant);
        case Event::EXECUTE:
            return link.flows[variant / 3].execute(static_cast<Flow::Visible>(variant % 3));
        case Event::COMPLETE:
            return link.flows[variant].complete();
        case Event::FAIL:
            return link.flows[variant].fail_outstanding();
        default:
            return link.break_up(static_cast<Link::Fate>(variant % 3), variant >= 3);
        }
    }
    Process &process = *processes[event.object];
    Machine &machine = *machines[event.object];
    switch (event.kind) {
    case Event::RUN:
        m_running = &process;
        return process.resume();
    case Event::START:
        return start(process);
    case Event::JOIN:
        return join(machine);
    case Event::TIME:
        return pass_time();
    case Event::KILL:
        process.end(Process::KILLED);
        if (process.is_server)
            process.back_at = now + SOON_MS[variant];
        return;
    case Event::POWER:
        return fail_power(process, variant);
    case Event::POWER_ALL:
        for (auto &server : processes)
            if (server->is_server)
                fail_power(*server, variant);
        return;
    case Event::CUT:
        machine.cut_off = true;
        machine.back_at = now + SOON_MS[variant % 2];
        if (variant < 2)
            tell_peers(machine, RPMA_PEER_EVENT_PORT_DOWN);
        else
            remove_device(machine);
        return;
    case Event::FORGET:
        if (process.state != Process::OFF)
            process.end(Process::KILLED);
        machine.memory.reset();
        process.was_ready = false;
        process.back_at = now + SOON_MS[0];
        return;
    default: // FREEZE
        process.frozen_until = now + STANDSTILL_MS[variant];
    }
}

std::string World::text_of(const Event &event) const {
    static const char *const texts[] = {
        "%s goes on",
        "the request of %s arrives",
        "%s: news arrive",
        "%s: the next operation is executed",
        "%s: completions arrive",
        "%s: what is outstanding fails",
        "%s starts",
        "%s is on the network again",
        "time passes%s",
        "%s: the connection breaks",
        "%s is killed",
        "%s: the power fails",
        "the power of all servers fails%s",
        "%s is cut off",
        "%s stands still",
        "%s gets a blank memory",
    };
    std::string object;
    if (is_of_link(event)) {
        const Link &link = *links[event.object];
        object = link.machines[0]->name + " -> " + link.machines[1]->name + " #" +
                 std::to_string(link.number);
    } else if (event.kind != Event::TIME && event.kind != Event::POWER_ALL) {
        object = processes[event.object]->name;
    }
    char text[256];
    snprintf(text, sizeof(text), texts[event.kind], object.c_str());
    return std::string(text) +
           (event.variant ? ", variant " + std::to_string(event.variant) : "");
}
