// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// schedule.cc -- one schedule: unchanged programs that run one at a time, in virtual time

#include "schedule.hh"

#include <algorithm>
#include <cstring>
#include <libgen.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr uint64_t LISTEN_TIMEOUT = SECOND;  // then the next command starts
constexpr uint64_t MAX_IDLE = 1000 * SECOND; // without a request other than a wait
constexpr uint64_t MAX_REQUESTS = 200'000;   // of a schedule
constexpr uint64_t MAX_POLLS = 10'000;       // after a fault, without another request

} // namespace

Schedule::Schedule(Exploration &exploration, uint64_t seed, Chooser &chooser, bool is_traced)
    : exploration_(exploration), settings_(exploration.settings), seed_(seed),
      chooser_(chooser), is_traced_(is_traced), generator_(seed) {
    for (const OriginalFile &file : exploration.pmem)
        file.restore_copy();
    open_pmem(settings_, pmem_);
    pmem_.keep_history();
    sim::Options options = settings_.fabric;
    options.seed = seed;
    options.scheduler = this;
    server_ = std::make_unique<sim::Server>(options, &pmem_, settings_.uses_threads, true);
    server_->fabric().set_between_steps([&exploration] { exploration.check_signals(); });
    if (const int error = server_->listen(exploration.directory.path() + "/socket"))
        refuse("%s/socket: %s", exploration.directory.path().c_str(), strerror(error));
    *exploration.clock = {};
    advance(BEGIN);
    progress_at_ = BEGIN;
    for (const Command &command : settings_.commands) {
        Process process;
        process.command = &command;
        process.index = processes_.size();
        process.number = static_cast<unsigned>(processes_.size()) + 1;
        process.name = "host" + std::to_string(command.host);
        if (std::ranges::count(settings_.commands, command.host, &Command::host) > 1)
            process.name += std::string(" ") + basename(command.argv[0]);
        processes_.push_back(process);
    }
}

Schedule::~Schedule() {
    end_all();
    for (const Process &process : processes_)
        for (const int fd : {process.pidfd, process.out, process.err})
            if (fd >= 0)
                close(fd);
}

// A program starts when the previous one listens or has ended: a client needs its server.
bool Schedule::can_start(const Process &process) const {
    if (process.number == 1 || settings_.starts_together)
        return true;
    const Process &before = processes_[process.number - 2];
    return !before.is_alive || before.is_listening ||
           (before.is_started && server_->fabric().now() >= before.started_at + LISTEN_TIMEOUT);
}

bool Schedule::is_ready(const Process &process) const {
    const uint64_t now = server_->fabric().now();
    if (!process.is_alive || process.has_ended ||
        processes_[process.number - 1].paused_until > now)
        return false;
    if (!process.is_started)
        return can_start(process);
    if (process.spin.is_stopped())
        return process.writes != writes(process);
    if (!process.waits || process.wait.until <= now)
        return true;
    switch (process.wait.kind) {
    case sim::Wait::SLEEP:
        return false;
    case sim::Wait::POLL:
        return process.changes != changes_;
    case sim::Wait::EVENT:
        return process.object_changes != object_changes(process) ||
               (process.wait.object == 0 && process.changes != changes_);
    default: // after exec(), the new program of a started process sends START again
        return true;
    }
}

// Returns the time of the next event if no program is ready.
uint64_t Schedule::next_time() const {
    uint64_t next = server_->fabric().next_timer();
    for (const Process &process : processes_) {
        if (!process.is_alive || process.has_ended)
            continue;
        if (process.paused_until > server_->fabric().now())
            next = std::min(next, process.paused_until);
        else if (process.is_started)
            next = std::min(next, process.wait.until);
        else if (const Process &before = processes_[process.number - 2]; before.is_started)
            next = std::min(next, before.started_at + LISTEN_TIMEOUT);
    }
    return next;
}

void Schedule::advance(uint64_t time) {
    server_->fabric().advance(time);
    exploration_.clock->now = server_->fabric().now();
}

std::string Schedule::waiting() const {
    std::string all;
    for (const Process &process : processes_)
        if (process.is_alive && !process.has_ended)
            all +=
                (all.empty() ? "" : ", ") + process.name + " waits in " + process.wait.function;
    return all;
}

// Returns false if the programs wait forever.
bool Schedule::pass_time() {
    const uint64_t next = next_time();
    const bool polls = faults > 0 && requests_ > progress_requests_ + MAX_POLLS;
    const bool is_idle = server_->fabric().next_timer() == NEVER &&
                         (polls || server_->fabric().now() > progress_at_ + MAX_IDLE);
    if (next != NEVER && !is_idle) {
        advance(next);
        return true;
    }
    // After a fault this is no defect: a program can wait for one that the fault has ended.
    if (faults == 0)
        record_finding("the programs wait for ever: " + waiting());
    return false;
}

bool Schedule::step() {
    end_due_faults();
    const bool is_any_alive = std::ranges::any_of(
        processes_, [this](const Process &each) { return each.is_alive && is_command(each); });
    if (!finding.empty() || is_finished_ || (!is_any_alive && pending_ends_ == 0))
        return false;
    if (const sim::Fault *const fault = chooser_.choose(Chooser::FAULT, exploration_.faults);
        fault != nullptr && has_process(*fault))
        apply(*fault);
    // By default, a program continues until it waits. Then the next one runs.
    std::vector<Process *> ready;
    for (size_t i = 0; i < processes_.size(); i++)
        if (Process &process = processes_[(current_ + i) % processes_.size()];
            is_ready(process))
            ready.push_back(&process);
    if (ready.empty())
        return pass_time();
    const uint64_t timer = server_->fabric().next_timer();
    const uint32_t turn = chooser_.choose(Chooser::TURN, ready.size() - 1 + (timer != NEVER));
    if (turn == ready.size()) {
        add_step("- ", "", "time passes before a program continues");
        advance(timer);
        return true;
    }
    if (turn != 0)
        add_step("- ", ready[turn]->name, "continues before " + ready[0]->name);
    run_turn(*ready[turn]);
    return true;
}

void Schedule::run_turn(Process &process) {
    current_ = process.index;
    if (++requests_ > MAX_REQUESTS) {
        is_finished_ = true;
        if (faults == 0) // after a fault they may try again for ever
            record_finding("the programs do not end within 200000 calls");
        return;
    }
    if (!process.spin.is_stopped()) {
        turns_[process.command->host]++;
    } else {
        process.writes = writes(process);
        if (process.spin.is_unchanged())
            return;
        return await(process);
    }
    if (!process.waits) {
        const std::vector<std::byte> request = *server_->held(process.client);
        sim::Reply reply;
        const size_t before = steps.size();
        const sim::CallName *const call =
            is_traced_ ? name_of_call(fabric(), request) : nullptr;
        const int error = server_->execute_held(process.client, reply);
        uint32_t op;
        memcpy(&op, request.data(), sizeof(op));
        command_of(process).is_listening |= op == sim::OP_CM_LISTEN && error == 0;
        progress_at_ = server_->fabric().now();
        progress_requests_ = requests_;
        // Moves the call before its effects.
        const std::string words = is_traced_ ? describe(call, request, error, reply) : "";
        add_step("  ", process.name, words);
        if (!words.empty())
            std::rotate(steps.begin() + static_cast<ptrdiff_t>(before), steps.end() - 1,
                        steps.end());
    } else {
        if (!process.is_started)
            add_step("  ", process.name, "starts");
        if (!process.is_started || process.changes != changes_)
            process.idle_since = server_->fabric().now();
        if (!process.is_started)
            process.started_at = server_->fabric().now();
        process.is_started = true;
        command_of(process).is_listening |= process.wait.kind == sim::Wait::LISTENS;
        server_->release_held(process.client);
        if (process.wait.kind == sim::Wait::EXIT)
            return end_thread(process);
    }
    await(process);
    add_output_steps(command_of(process));
}

void Schedule::record_finding(const std::string &what) {
    if (finding.empty())
        finding = what;
}

void Schedule::check() {
    const std::string output = exploration_.directory.path() + "/check";
    const int fd = open_output(output);
    const pid_t pid = fork_command(true, fd, fd, [&] {
        for (const Process &process : processes_) {
            if (!is_command(process))
                break;
            const std::string number = std::to_string(process.number);
            set_variable("OUT" + number, output_path(process, ".out"));
            set_variable("ERR" + number, output_path(process, ".err"));
            set_variable("STATUS" + number, process.ignores_status
                                                ? "killed"
                                                : std::to_string(WEXITSTATUS(process.status)));
        }
        set_variable("FAULTS", std::to_string(faults));
        set_variable("SEED", std::to_string(seed_));
        execl("/bin/sh", "sh", "-c", settings_.check.c_str(), nullptr);
        _exit(127);
    });
    close(fd);
    const int status = exploration_.wait_for(pid);
    const std::string line = first_line(output);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127))
        refuse("--check '%s': %s", settings_.check.c_str(), line.c_str());
    if (status != 0)
        record_finding("the check fails" + (line.empty() ? "" : ": " + line));
}

void Schedule::run() {
    for (size_t i = 0; i < settings_.commands.size(); i++)
        start(processes_[i]);
    while (step())
        ;
    end_all();
    // Flushed data must also survive a power failure after the programs have ended.
    if (const sim::Fault *const fault =
            chooser_.choose(Chooser::POWER, exploration_.power_failures))
        apply(*fault);
    if (finding.empty())
        check();
    if (!finding.empty())
        add_step("  ", "", "FOUND: " + finding);
}
