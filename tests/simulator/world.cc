// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// world.cc -- one schedule, from the start of the servers to the reader's judgement

#include "world.hh"

#include <algorithm>
#include <cstdarg>
#include <cstring>

World world;

namespace {

constexpr uint32_t STEPS_MAX = 100000; // a schedule with more steps does not end

std::string format(const char *format, va_list values) {
    char text[512];
    vsnprintf(text, sizeof(text), format, values);
    return text;
}

} // namespace

void World::make(const Configuration &configuration_, const std::string &modules) {
    configuration = &configuration_;
    unsigned clients = configuration->clients + 1;
    std::string path = modules + "/" + configuration->example->name;
    for (unsigned i = 0; i < configuration->servers + clients; i++) {
        machines.push_back(std::make_unique<Machine>());
        processes.push_back(std::make_unique<Process>());
        Process &process = *processes.back();
        process.machine = machines.back().get();
        process.is_server = i < configuration->servers;
        unsigned number = process.is_server ? i : i - configuration->servers;
        process.name = (process.is_server ? "server" : "client") + std::to_string(number + 1);
        process.machine->name = "machine-of-" + process.name;
        process.load(path + (process.is_server ? "-server.so" : "-client.so"));
        if (process.is_server || configuration->example->clients_have_files)
            process.machine->memory.open();
    }
    reader.name = "reader";
    reader.machine = machines.back().get();
    if (configuration->example->has_reader)
        reader.load(path + "-reader.so");
}

void World::begin(Schedule &schedule) {
    m_schedule = &schedule;
    m_chance = schedule.salt;
    schedule.begin();
    now = 1000000;
    said.clear();
    finding.clear();
    links.clear();
    open_links.clear();
    m_objects.clear();
    descriptors.clear();
    endpoints.clear();
    peers.clear();
    healed = faulted = false;
    m_checked = 0;
    m_running = nullptr;
    m_cue = m_hurried = 0;
    m_cued.clear();
    for (size_t i = 0; i < machines.size(); i++)
        if (i < configuration->servers || configuration->example->clients_have_files)
            machines[i]->memory.reset();
    if (configuration->example->begin)
        configuration->example->begin();
    for (auto &machine : machines) {
        machine->on = true;
        machine->cut_off = machine->port_down = machine->no_device = false;
        machine->back_at = NEVER;
    }
    for (auto &process : processes) {
        process->state = Process::OFF;
        process->was_ready = process->told_to_stop = false;
        process->starts = 0;
        process->frozen_until = 0;
        process->back_at = NEVER;
        process->lines_read = process->committed = process->completions = 0;
        process->lines_left = process.get() == processes.back().get()
                                  ? configuration->last_lines
                                  : configuration->lines;
        if (process->is_server)
            start(*process);
    }
}

void World::start(Process &process) {
    const Example &example = *configuration->example;
    Arguments arguments = process.is_server ? example.server_arguments(process)
                                            : example.client_arguments(process);
    arguments.insert(arguments.begin(), process.name);
    process.machine->on = true;
    process.start(arguments);
}

bool World::run(Schedule &schedule) {
    begin(schedule);
    while (finding.empty() && !clients_are_done())
        step();
    if (finding.empty())
        heal();
    if (finding.empty())
        judge();
    return finding.empty();
}

void World::start_more(const std::vector<Process *> &more, bool until_they_end) {
    finding = "not looked at";
    for (Process *process : more)
        start(*process);
    auto goes_on = [&](const Process *process) {
        return until_they_end ? process->state != Process::OFF : is_ready(*process);
    };
    for (unsigned i = 0; i < STEPS_MAX && std::any_of(more.begin(), more.end(), goes_on); i++)
        apply(usual_event());
}

bool World::clients_are_done() {
    for (unsigned i = 0; i < configuration->clients; i++) {
        const Process &client = *processes[configuration->servers + i];
        if (client.state != Process::OFF || !client.starts)
            return false;
    }
    return true;
}

// Ends all faults, so the last client must succeed, and the servers must end.
void World::heal() {
    healed = true;
    m_schedule->stop_faults();
    trace("all faults end");
    Process &last = *processes.back();
    for (auto &machine : machines)
        if (machine->cut_off)
            join(*machine);
    faulted = false;
    for (auto &process : processes) {
        process->frozen_until = 0;
        if (!process->is_server)
            continue;
        if (process->state != Process::OFF && configuration->example->serves_one)
            process->end(Process::KILLED); // it may wait for a client for ever
        if (process->state == Process::OFF)
            start(*process);
    }
    for (auto &process : processes)
        while (finding.empty() && is_ready(*process))
            step();
    for (Arguments tried;
         finding.empty() && tried != configuration->example->client_arguments(last);) {
        tried = configuration->example->client_arguments(last);
        start(last);
        while (finding.empty() && last.state != Process::OFF)
            step();
        if (last.status == 0)
            break;
    }
    if (finding.empty() && last.status != 0)
        finding = "all servers are there, but the last client fails: " + last.first_error();
    for (auto &process : processes)
        if (process->is_server)
            process->told_to_stop = true;
    for (auto &process : processes)
        while (finding.empty() && process->is_server && process->state != Process::OFF)
            step();
}

// Runs the example's own reader on the memories that a power failure leaves.
void World::judge() {
    for (auto &process : processes)
        if (process->is_server)
            process->machine->memory.lose_power([this] { return chance(); });
    if (!configuration->example->has_reader)
        return;
    Arguments arguments{reader.name};
    for (auto &process : processes)
        if (process->is_server)
            arguments.insert(arguments.end(), {process->machine->name, "1"});
    reader.lines_read = 0;
    reader.start(arguments);
    while (finding.empty() && reader.state != Process::OFF)
        reader.resume();
    if (finding.empty() && reader.status != 0)
        finding = "the reader is not content: " + reader.first_error();
}

void World::point() {
    if (current == &reader || m_schedule->is_usual())
        return;
    m_schedule->stop();
    current->leave();
}

void World::step() {
    Event event;
    for (const Event &cued : m_cued)
        apply(cued);
    m_cued.clear();
    if (m_schedule->position() > STEPS_MAX) {
        finding = "the schedule does not end";
        return;
    }
    bool usual = m_schedule->is_usual();
    if (usual || !m_schedule->choose(options(), event))
        event = usual_event();
    else
        m_hurried += event.kind == Event::TIME;
    apply(event);
    uint64_t changes = 0;
    for (auto &machine : machines)
        changes += machine->memory.changes();
    if (changes != m_checked && finding.empty() && configuration->example->check)
        configuration->example->check();
    m_checked = changes;
}

// ---- calls of processes

bool World::chance() {
    return next_random(m_chance) >> 63;
}

void World::found(const char *text, ...) {
    va_list values;
    va_start(values, text);
    finding = (current ? current->name + ": " : "") + format(text, values);
    va_end(values);
    if (current)
        current->leave(); // does not return
}

void World::trace(const char *text, ...) {
    if (!tracing)
        return;
    va_list values;
    va_start(values, text);
    printf("%6u %8.3f s  %s\n", m_schedule->position(),
           static_cast<double>(now - 1000000) / 1000, format(text, values).c_str());
    va_end(values);
}

int World::open_descriptor(Descriptor::Kind kind, Object *object, Process *owner) {
    descriptors.push_back({kind, object, owner, false});
    return FIRST_DESCRIPTOR + static_cast<int>(descriptors.size()) - 1;
}

Descriptor &World::descriptor(int fd) {
    size_t index = static_cast<size_t>(fd - FIRST_DESCRIPTOR);
    if (index >= descriptors.size() || descriptors[index].owner != current)
        found("uses the descriptor %d, which is not its own", fd);
    return descriptors[index];
}

bool World::is_readable(int fd) {
    const Descriptor &descriptor = descriptors[static_cast<size_t>(fd - FIRST_DESCRIPTOR)];
    if (descriptor.object && !descriptor.object->alive)
        found("waits for a descriptor of an object that it has deleted");
    switch (descriptor.kind) {
    case Descriptor::ENDPOINT:
        return !static_cast<rpma_ep *>(descriptor.object)->requests.empty();
    case Descriptor::EVENTS:
        return static_cast<rpma_conn *>(descriptor.object)->has_news();
    case Descriptor::DEVICE:
        return !static_cast<rpma_peer *>(descriptor.object)->events.empty();
    case Descriptor::COMPLETIONS:
        return !static_cast<Channel *>(descriptor.object)->events.empty();
    case Descriptor::SIGNALS:
        return descriptor.owner->told_to_stop;
    case Descriptor::FILE:
    case Descriptor::EPOLL:
        break;
    }
    return true;
}

Machine *World::machine(const std::string &addr) {
    for (auto &machine : machines)
        if (machine->name == addr)
            return machine.get();
    return nullptr;
}

rpma_ep *World::endpoint(const Link &link) {
    for (rpma_ep *ep : endpoints)
        if (ep->alive && ep->owner->machine == link.machines[1] && ep->port == link.port)
            return ep;
    return nullptr;
}

// A program that ends well has deleted its connections, its endpoints, and its peers with their
// regions, which nobody else would notice.
void World::check_leftovers(const Process &process) {
    auto is_left = [&process](const Object *object) {
        return object && object->alive && object->owner == &process;
    };
    bool has_conn = std::ranges::any_of(links, [&is_left](const auto &link) {
        return is_left(link->conns[0]) || is_left(link->conns[1]);
    });
    if (has_conn || std::ranges::any_of(endpoints, is_left) ||
        std::ranges::any_of(peers, is_left))
        found("ends well, and has not deleted %s",
              has_conn ? "a connection" : "an endpoint or a peer");
}

// The kernel closes the program's descriptors, and notifies the other sides if it can.
void World::process_ended(Process &process) {
    if (process.status == 0 && &process != &reader)
        check_leftovers(process);
    for (rpma_ep *ep : endpoints)
        if (ep->alive && ep->owner == &process)
            ep->close(process.machine->on);
    for (auto &object : m_objects)
        if (object->owner == &process)
            object->alive = false;
    for (auto &link : links)
        for (int side = 0; side < 2; side++)
            if (link->conns[side] && link->conns[side]->owner == &process)
                link->end(side, process.machine->on);
    if (process.status != Process::KILLED)
        trace("%s ends with status %d", process.name.c_str(), process.status);
    if (process.is_server && configuration->example->serves_one && !healed)
        process.back_at = now + 1000;
    if (process.status != Process::KILLED && &process != &reader && finding.empty() &&
        configuration->example->ended)
        configuration->example->ended(process);
}

void World::line(Process &process, const std::string &text) {
    trace("%s says: %s", process.name.c_str(), text.c_str());
    if (&process == &reader)
        return;
    std::string line = process.name + " says: " + text;
    for (size_t first = m_cue;
         m_cue < script.size() && script[m_cue].text == script[first].text &&
         line.find(script[m_cue].text) != std::string::npos;
         m_cue++)
        for (uint16_t i = 0; i < processes.size(); i++)
            if (processes[i]->name == script[m_cue].process)
                m_cued.push_back({script[m_cue].kind, i, script[m_cue].variant});
    if (!process.is_server)
        said += text + '\n';
    process.was_ready |= text.starts_with("server: listening");
    if (configuration->example->said)
        configuration->example->said(process, text.c_str());
}
