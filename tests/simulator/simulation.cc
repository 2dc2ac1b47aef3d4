// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// simulation.cc -- runs one schedule, from the start of the servers to the check by the reader

#include "simulation.hh"

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <utility>

Simulation simulation;

namespace {

// A schedule with more steps is reported as endless. Four clients of example 14 that start
// together compete for the servers for up to MAJORITY_MS, in 171,808 steps (log-5-amnesia, seed
// 40882).
constexpr uint32_t STEPS_MAX = 400000;

} // namespace

void Simulation::load_programs(const Configuration &chosen, const std::string &modules) {
    configuration = &chosen;
    std::string path = modules + "/" + configuration->oracle->example;
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
        bool is_other = configuration->first_client && !process.is_server && number == 0;
        if (is_other)
            process.machine = machines[0].get();
        process.load(is_other ? modules + "/" + configuration->first_client + ".so"
                              : path + (process.is_server ? "-server.so" : "-client.so"));
    }
    reader.name = "reader";
    reader.machine = machines.back().get();
    if (configuration->oracle->has_reader)
        reader.load(path + "-reader.so");
}

void Simulation::begin(Schedule &schedule) {
    for (auto &process : processes)
        process->caller = {};
    static_cast<SimulationState &>(*this) = {};
    schedule_ = &schedule;
    random_state_ = schedule.salt;
    checked_changes_ = 0;
    running_ = nullptr;
    schedule.begin();
    for (auto &machine : machines) {
        static_cast<MachineState &>(*machine) = {};
        machine->memory.reset();
    }
    network.begin(static_cast<unsigned>(machines.size()), !configuration->emulated);
    configuration->oracle->begin();
    for (auto &process : processes) {
        static_cast<ProcessState &>(*process) = {};
        process->lines =
            process == processes.back() ? configuration->last_lines : configuration->lines;
        if (process->is_server)
            start(*process);
    }
}

void Simulation::start(Process &process) {
    Arguments arguments = configuration->oracle->arguments(process);
    arguments.insert(arguments.begin(), process.name);
    process.machine->on = true;
    network.set_power(*process.machine, true);
    process.start(arguments);
}

bool Simulation::run(Schedule &schedule) {
    begin(schedule);
    while (finding.empty() && !clients_are_done())
        step();
    if (finding.empty())
        repair();
    if (finding.empty())
        run_reader();
    return finding.empty();
}

void Simulation::run_more(const std::vector<Process *> &more, bool until_they_end) {
    finding = "not checked";
    for (Process *process : more)
        start(*process);
    auto is_running = [&](const Process *process) {
        return until_they_end ? process->state != Process::OFF : is_ready(*process);
    };
    for (unsigned i = 0; i < STEPS_MAX && std::ranges::any_of(more, is_running); i++)
        apply(default_event());
}

bool Simulation::clients_are_done() {
    return std::all_of(
        processes.begin() + configuration->servers, processes.end() - 1,
        [](const auto &client) { return client->state == Process::OFF && client->starts; });
}

// Ends all faults, so the last client must succeed, and the servers must end.
void Simulation::repair() {
    repaired = true;
    faulted = false;
    schedule_->stop_faults();
    trace("all faults end");
    auto step_while = [this](auto condition) {
        for (auto &process : processes)
            while (finding.empty() && condition(*process))
                step();
    };
    network.accept_posts();
    for (auto &machine : machines)
        if (machine->disconnected)
            reconnect(*machine);
    for (auto &process : processes) {
        process->frozen_until = 0;
        if (process->is_server && process->state == Process::OFF)
            start(*process);
    }
    step_while([this](const Process &process) { return is_ready(process); });
    Process &last = *processes.back();
    Arguments tried;
    do { // repeats the start while the operator's arguments change
        tried = configuration->oracle->arguments(last);
        start(last);
        step_while([&last](const Process &) { return last.state != Process::OFF; });
    } while (finding.empty() && last.status && tried != configuration->oracle->arguments(last));
    if (finding.empty() && last.status)
        finding = "all servers run, but the last client fails: " + last.first_error();
    for (unsigned i = 0; i < configuration->servers; i++)
        processes[i]->stop_requested = true;
    step_while([](const Process &process) {
        return process.is_server && process.state != Process::OFF;
    });
}

// Runs the example's own reader on the memories that a power failure leaves.
void Simulation::run_reader() {
    for (unsigned i = 0; i < configuration->servers; i++)
        machines[i]->memory.lose_power([this] { return random_bit(); });
    if (configuration->oracle->has_reader && !reader_accepts() && finding.empty())
        finding = "the reader rejects the logs: " + reader.first_error();
}

bool Simulation::reader_accepts() {
    Arguments arguments{reader.name};
    for (unsigned i = 0; i < configuration->log_servers(); i++)
        if (configuration->has_file(i))
            arguments.insert(arguments.end(), {machines[i]->name, "1"});
    reader.lines_read = 0;
    reader.lines = client_lines.size();
    reader.start(arguments);
    while (reader.state != Process::OFF && reader.lines_read <= reader.lines)
        reader.resume();
    return reader.status == 0;
}

void Simulation::preemption_point() {
    if (current == &reader || schedule_->is_default())
        return;
    schedule_->stop();
    current->yield();
}

void Simulation::step() {
    for (const Event &event : std::exchange(triggered, {}))
        apply(event);
    if (schedule_->position() > STEPS_MAX) {
        finding = "the schedule does not end";
        return;
    }
    Event event;
    if (schedule_->is_default() || !schedule_->choose(options(), event))
        event = default_event();
    apply(event);
    uint64_t changes = 0;
    for (auto &machine : machines)
        changes += machine->memory.changes();
    if (changes != checked_changes_ && finding.empty())
        configuration->oracle->check();
    checked_changes_ = changes;
}

// ---- calls of processes

bool Simulation::random_bit() {
    return sim::next_random(random_state_) >> 63;
}

void Simulation::fail(const char *format, ...) {
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    finding = (current ? current->name + ": " : "") + text;
    if (current)
        current->yield(); // never continues
}

void Simulation::trace(const std::string &text) {
    if (tracing)
        printf("%6u %8.3f s  %s\n", schedule_->position(),
               static_cast<double>(now - START) / 1000, text.c_str());
}

// Handles SIGSEGV and similar signals: ends the schedule, so the coroutine never continues.
void Simulation::handle_crash(int signal) {
    if (!simulation.current)
        abort();
    simulation.fail("ends with signal %d", signal);
}

int Simulation::open_descriptor(Descriptor::Kind kind, Object *object) {
    descriptors.push_back({.kind = kind, .owner = current, .object = object});
    return FIRST_DESCRIPTOR + static_cast<int>(descriptors.size()) - 1;
}

Descriptor &Simulation::descriptor(int fd) {
    size_t index = static_cast<size_t>(fd - FIRST_DESCRIPTOR);
    if (index >= descriptors.size() || descriptors[index].owner != current)
        fail("uses descriptor %d, which it has not opened", fd);
    return descriptors[index];
}

bool Simulation::is_readable(int fd) {
    const Descriptor &descriptor = descriptors[static_cast<size_t>(fd - FIRST_DESCRIPTOR)];
    if (descriptor.closed)
        fail("waits for a descriptor of an object that it has deleted");
    return descriptor.kind == Descriptor::SIGNALS ? descriptor.owner->stop_requested
                                                  : descriptor.raised;
}

bool Simulation::wait_for(int fd) {
    while (!is_readable(fd)) {
        if (descriptor(fd).nonblocking)
            return false;
        const pollfd fds{fd, POLLIN, 0};
        current->wait_until(&fds, 1, NEVER);
    }
    preemption_point();
    return true;
}

Machine *Simulation::machine(const std::string &addr) {
    for (auto &machine : machines)
        if (machine->name == addr)
            return machine.get();
    return nullptr;
}

void Simulation::process_ended(Process &process) {
    if (process.status == 0 && &process != &reader) {
        if (const char *left = network.leaked_object(process))
            return fail("succeeds without deleting %s", left);
        if (process.heap.blocks() > network.contexts(process))
            return fail("succeeds without freeing %u blocks of memory",
                        process.heap.blocks() - network.contexts(process));
    }
    network.process_ended(process);
    for (auto &object : objects)
        if (object->owner == &process)
            object->alive = false;
    if (process.status == Process::KILLED)
        return;
    trace(process.name + " ends with status " + std::to_string(process.status));
    if (&process != &reader && finding.empty())
        configuration->oracle->on_end(process);
}

const End *lost_end(const Process &client, const char *line) {
    char server[64];
    if (sscanf(line, "%*[^:]: server %63s is lost:", server) != 1)
        return nullptr;
    for (const uint16_t i : simulation.network.open_links)
        if (const Link &link = *simulation.network.links[i]; link.machines[1]->name == server &&
                                                             link.ends[0].id &&
                                                             link.ends[0].owner == &client)
            return &link.ends[0];
    return nullptr;
}

void Simulation::handle_line(Process &process, const std::string &text) {
    std::string line = process.name + " prints: " + text;
    trace(line);
    if (&process == &reader)
        return;
    for (size_t first = next_trigger;
         next_trigger < script.size() && script[next_trigger].text == script[first].text &&
         line.find(script[next_trigger].text) != std::string::npos;
         next_trigger++)
        for (auto &other : processes)
            if (other->name == script[next_trigger].process)
                triggered.push_back(
                    {script[next_trigger].kind, other->index, script[next_trigger].variant});
    if (!process.is_server)
        client_lines.push_back(text);
    if (text.find("(null)") != std::string::npos)
        fail("prints a NULL string: %s", text.c_str());
    process.has_listened |= text.starts_with("server: listening");
    configuration->oracle->on_line(process, text.c_str());
}
