// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// world.cc -- one schedule, from the start of the servers to the reader's judgement

#include "world.hh"

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <utility>

World world;

namespace {

constexpr uint32_t STEPS_MAX = 100000; // a schedule with more steps does not end

} // namespace

void World::make(const Configuration &configuration_, const std::string &modules) {
    configuration = &configuration_;
    std::string path = modules + "/" + configuration->example;
    for (unsigned i = 0; i <= configuration->servers + configuration->clients; i++) {
        machines.push_back(std::make_unique<Machine>());
        processes.push_back(std::make_unique<Process>());
        Process &process = *processes.back();
        process.machine = machines.back().get();
        process.is_server = i < configuration->servers;
        process.index = static_cast<uint16_t>(i);
        unsigned number = process.is_server ? i : i - configuration->servers;
        process.name = (process.is_server ? "server" : "client") + std::to_string(number + 1);
        process.machine->name = "machine-of-" + process.name;
        bool strange = configuration->stranger && !process.is_server && number == 0;
        if (strange && strstr(configuration->stranger, "-server"))
            process.machine = machines[0].get();
        process.load(strange ? modules + "/" + configuration->stranger + ".so"
                             : path + (process.is_server ? "-server.so" : "-client.so"));
    }
    reader.name = "reader";
    reader.machine = machines.back().get();
    if (configuration->oracle->has_reader)
        reader.load(path + "-reader.so");
}

void World::begin(Schedule &schedule) {
    for (auto &process : processes)
        process->caller = {};
    static_cast<Present &>(*this) = {};
    m_schedule = &schedule;
    m_chance = schedule.salt;
    m_checked = m_hurried = 0;
    m_running = nullptr;
    schedule.begin();
    for (auto &machine : machines) {
        static_cast<Plug &>(*machine) = {};
        machine->memory.reset();
    }
    network.begin(static_cast<unsigned>(machines.size()), !configuration->emulated);
    configuration->oracle->begin();
    for (auto &process : processes) {
        static_cast<Life &>(*process) = {};
        process->lines =
            process == processes.back() ? configuration->last_lines : configuration->lines;
        if (process->is_server)
            start(*process);
    }
}

void World::start(Process &process) {
    Arguments arguments = configuration->oracle->arguments(process);
    arguments.insert(arguments.begin(), process.name);
    process.machine->on = true;
    network.set_power(*process.machine, true);
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
    for (unsigned i = 0; i < STEPS_MAX && std::ranges::any_of(more, goes_on); i++)
        apply(usual_event());
}

bool World::clients_are_done() {
    return std::all_of(
        processes.begin() + configuration->servers, processes.end() - 1,
        [](const auto &client) { return client->state == Process::OFF && client->starts; });
}

// Ends all faults, so the last client must succeed, and the servers must end.
void World::heal() {
    healed = true;
    faulted = false;
    m_schedule->stop_faults();
    trace("all faults end");
    auto go_on_while = [this](auto condition) {
        for (auto &process : processes)
            while (finding.empty() && condition(*process))
                step();
    };
    for (auto &machine : machines)
        if (machine->cut_off)
            join(*machine);
    for (auto &process : processes) {
        process->frozen_until = 0;
        if (!process->is_server)
            continue;
        if (configuration->oracle->serves_one)
            kill(*process); // it may wait for a client for ever
        if (process->state == Process::OFF)
            start(*process);
    }
    go_on_while([this](const Process &process) { return is_ready(process); });
    Process &last = *processes.back();
    Arguments tried;
    do { // once more if the operator has learned something
        tried = configuration->oracle->arguments(last);
        start(last);
        go_on_while([&last](const Process &) { return last.state != Process::OFF; });
    } while (finding.empty() && last.status && tried != configuration->oracle->arguments(last));
    if (finding.empty() && last.status)
        finding = "all servers are there, but the last client fails: " + last.first_error();
    for (unsigned i = 0; i < configuration->servers; i++)
        processes[i]->told_to_stop = true;
    go_on_while([](const Process &process) {
        return process.is_server && process.state != Process::OFF;
    });
}

// Runs the example's own reader on the memories that a power failure leaves.
void World::judge() {
    for (unsigned i = 0; i < configuration->servers; i++)
        machines[i]->memory.lose_power([this] { return chance(); });
    if (configuration->oracle->has_reader && !read() && finding.empty())
        finding = "the reader is not content: " + reader.first_error();
}

bool World::read() {
    Arguments arguments{reader.name};
    for (unsigned i = 0; i < configuration->log_servers(); i++)
        if (configuration->has_file(i))
            arguments.insert(arguments.end(), {machines[i]->name, "1"});
    reader.lines_read = 0;
    reader.lines = said.size();
    reader.start(arguments);
    while (reader.state != Process::OFF && reader.lines_read <= reader.lines)
        reader.resume();
    return reader.status == 0;
}

void World::point() {
    if (current == &reader || m_schedule->is_usual())
        return;
    m_schedule->stop();
    current->leave();
}

void World::step() {
    for (const Event &event : std::exchange(cued, {}))
        apply(event);
    if (m_schedule->position() > STEPS_MAX) {
        finding = "the schedule does not end";
        return;
    }
    Event event;
    if (m_schedule->is_usual() || !m_schedule->choose(options(), event))
        event = usual_event();
    else
        m_hurried += event.kind == Event::TIME;
    apply(event);
    uint64_t changes = 0;
    for (auto &machine : machines)
        changes += machine->memory.changes();
    if (changes != m_checked && finding.empty())
        configuration->oracle->check();
    m_checked = changes;
}

// ---- calls of processes

bool World::chance() {
    return sim::next_random(m_chance) >> 63;
}

void World::found(const char *format, ...) {
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    finding = (current ? current->name + ": " : "") + text;
    if (current)
        current->leave(); // does not return
}

void World::trace(const std::string &text) {
    if (tracing)
        printf("%6u %8.3f s  %s\n", m_schedule->position(),
               static_cast<double>(now - START) / 1000, text.c_str());
}

// What the C library reports as a signal; the coroutine that caused it does not go on.
void World::crashed(int signal) {
    if (!world.current)
        abort();
    world.found("ends with signal %d", signal);
}

int World::open_descriptor(Descriptor::Kind kind, Object *object) {
    descriptors.push_back({.kind = kind, .owner = current, .object = object});
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
    if (descriptor.closed)
        found("waits for a descriptor of an object that it has deleted");
    return descriptor.kind == Descriptor::SIGNALS ? descriptor.owner->told_to_stop
                                                  : descriptor.raised;
}

bool World::wait_for(int fd) {
    while (!is_readable(fd)) {
        if (descriptor(fd).nonblocking)
            return false;
        const pollfd fds{fd, POLLIN, 0};
        current->wait_until(&fds, 1, NEVER);
    }
    point();
    return true;
}

Machine *World::machine(const std::string &addr) {
    for (auto &machine : machines)
        if (machine->name == addr)
            return machine.get();
    return nullptr;
}

bool World::is_connected(const Process &client) {
    return std::ranges::any_of(network.links, [&client](const auto &link) {
        return link->ends[0].owner == &client && link->ends[1].qp && link->ends[1].owner;
    });
}

void World::process_ended(Process &process) {
    if (process.status == 0 && &process != &reader) {
        if (const char *left = network.left_by(process))
            return found("ends well, and has not deleted %s", left);
        if (process.heap.blocks() > network.contexts(process))
            return found("ends well, and has not freed %u blocks of memory",
                         process.heap.blocks() - network.contexts(process));
    }
    process.lost_device = network.has_device_event(process);
    network.process_ended(process);
    for (auto &object : objects)
        if (object->owner == &process)
            object->alive = false;
    if (process.is_server && configuration->oracle->serves_one && !healed)
        process.back_at = now + 1000;
    if (process.status == Process::KILLED)
        return;
    trace(process.name + " ends with status " + std::to_string(process.status));
    if (&process != &reader && finding.empty())
        configuration->oracle->ended(process);
}

const End *lost_end(const Process &client, const char *line) {
    char server[64];
    if (sscanf(line, "%*[^:]: server %63s is lost:", server) != 1)
        return nullptr;
    for (const uint16_t i : world.network.open_links)
        if (const Link &link = *world.network.links[i]; link.machines[1]->name == server &&
                                                        link.ends[0].id &&
                                                        link.ends[0].owner == &client)
            return &link.ends[0];
    return nullptr;
}

void World::line(Process &process, const std::string &text) {
    std::string line = process.name + " says: " + text;
    trace(line);
    if (&process == &reader)
        return;
    for (size_t first = cue; cue < script.size() && script[cue].text == script[first].text &&
                             line.find(script[cue].text) != std::string::npos;
         cue++)
        for (auto &other : processes)
            if (other->name == script[cue].process)
                cued.push_back({script[cue].kind, other->index, script[cue].variant});
    if (!process.is_server)
        said.push_back(text);
    if (text.find("(null)") != std::string::npos)
        found("says nothing: %s", text.c_str());
    process.was_ready |= text.starts_with("server: listening");
    configuration->oracle->said(process, text.c_str());
}
