// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// schedule.cc -- one schedule: unchanged programs that run one at a time, in virtual time
//
// A program runs until it sends a request. It receives the reply at its next turn.

#include "explore.hh"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <libgen.h>
#include <poll.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr uint64_t NEVER = UINT64_MAX, MICROSECOND = 1'000, SECOND = 1'000'000'000;
constexpr uint64_t BEGIN = 1000 * SECOND;    // the virtual time at the start
constexpr uint64_t LISTEN_TIMEOUT = SECOND;  // then the next command starts
constexpr uint64_t MAX_IDLE = 1000 * SECOND; // without a request other than a wait
constexpr uint64_t MAX_REQUESTS = 200'000;   // of a schedule
constexpr int MAX_TURN = 10'000;             // milliseconds of real time
constexpr uint64_t LATE[] = {10 * MICROSECOND, 100'000 * MICROSECOND};
constexpr const char *LATE_TEXTS[] = {"10 us", "100 ms"};
constexpr const char *DELAYED[] = {"a message", "the request", "a response"};

std::string describe(int status) {
    return WIFSIGNALED(status)
               ? std::string("is ended by signal ") + std::to_string(WTERMSIG(status)) + " (" +
                     strsignal(WTERMSIG(status)) + ")"
               : "ends with status " + std::to_string(WEXITSTATUS(status));
}

} // namespace

// ---- choices -------------------------------------------------------------------------------

Chooser::Chooser(uint64_t seed) : is_random_(true), state_(seed), weak_state_(~seed) {
    faults_left_ = static_cast<uint32_t>(sim::next_random(state_) % 3);
    for (size_t kind = 0; kind < KINDS; kind++)
        limits_[kind] =
            (uint64_t{1} << 32) / (uint64_t{2} << sim::next_random(state_of(kind)) % 4);
    limits_[DELAY] += limits_[DELAY] / 2;
    limits_[FAULT] /= 16;
    limits_[POWER] = uint64_t{1} << 31;
}

uint32_t Chooser::choose(Kind kind, size_t options, const sim::ExploredFaults *faults) {
    const bool is_fault = kind == FAULT || kind == POWER;
    if (options == 0)
        return 0;
    // Each kind counts its own positions, so that an omitted choice does not shift those of
    // others.
    const uint32_t position = positions_[kind]++ * KINDS + kind;
    if (!is_random_) {
        const auto found = std::ranges::find(choices, position, &sim::Choice::position);
        if (found == choices.end() || found->option > options)
            return 0;
        reached++;
        return found->option;
    }
    uint64_t &state = state_of(kind);
    if (sim::next_random(state) >> 32 >= limits_[kind] || (is_fault && faults_left_ == 0))
        return 0;
    faults_left_ -= is_fault;
    const uint64_t random = sim::next_random(state);
    const uint64_t option = faults != nullptr ? faults->choose(random) : random % options;
    choices.push_back({position, static_cast<uint32_t>(option) + 1});
    return choices.back().option;
}

// ---- a schedule ----------------------------------------------------------------------------

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

std::string Schedule::output_path(const Process &process, const char *suffix) const {
    return exploration_.directory.path() + "/" + std::to_string(process.number) + suffix;
}

void Schedule::start(Process &process) {
    const unsigned host = process.command->host;
    if (process.out < 0) {
        process.out = open_output(output_path(process, ".out"));
        process.err = open_output(output_path(process, ".err"));
    }
    process.pid = fork_command(true, process.out, process.err, [&] {
        (void)personality(ADDR_NO_RANDOMIZE); // the same addresses in each run
        set_environment(host, settings_.fabric.hosts, exploration_.directory.path(),
                        exploration_.libraries, pmem_.ids(host));
        setenv("RDMA_SIM_CLOCK", (exploration_.directory.path() + "/clock").c_str(), 1);
        set_variable("SEED", std::to_string(seed_ + process.number));
        execute(*process.command);
    });
    process.pidfd = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
    if (process.pidfd < 0)
        refuse("pidfd_open: %s", strerror(errno));
    await(process);
}

// ---- turns ---------------------------------------------------------------------------------

// Waits until the process has sent a request, or has ended.
void Schedule::await(Process &process) {
    pollfd events[] = {{server_->descriptor(), POLLIN, 0},
                       {process.pidfd, POLLIN, 0},
                       {exploration_.signals.descriptor(), POLLIN, 0}};
    while (server_->held(process.pid) == nullptr) {
        const int count = poll(events, std::size(events), MAX_TURN);
        exploration_.check_signals();
        if (count == 0)
            return record_finding(process.name +
                                  " makes no call for 10 s: it loops, or waits for "
                                  "something that explore does not control");
        server_->step(0);
        if (events[1].revents != 0)
            return handle_exit(process);
    }
    read_request(process);
}

void Schedule::read_request(Process &process) {
    const std::vector<std::byte> &request = *server_->held(process.pid);
    uint32_t op;
    memcpy(&op, request.data(), sizeof(op));
    process.waits = op == sim::OP_WAIT && request.size() >= sizeof(sim::Wait);
    process.changes = changes_;
    if (!process.waits) {
        process.idle_since = server_->fabric().now();
        return;
    }
    memcpy(&process.wait, request.data(), sizeof(process.wait));
    if (process.wait.kind == sim::Wait::UNSUPPORTED)
        refuse("%s calls %s(): explore runs programs of one thread and one process, without "
               "sockets of the Internet, timers and signals",
               process.command->argv[0], process.wait.function);
    // While a program polls, time advances in growing steps.
    const uint64_t now = server_->fabric().now(), idle = now - process.idle_since;
    if (process.wait.kind == sim::Wait::POLL)
        process.wait.until = now + std::min(std::max(idle / 8, MICROSECOND), SECOND);
}

void Schedule::handle_exit(Process &process) {
    waitpid(process.pid, &process.status, 0);
    process.is_alive = false;
    while (server_->has_client(process.pid))
        server_->step(-1); // closes its connections
    changes_++;
    progress_at_ = server_->fabric().now();
    add_output_steps(process);
    add_step("  ", process.name,
             process.ignores_status ? "is killed" : describe(process.status));
    const unsigned host = process.command->host;
    if (process.status != 0 && !process.ignores_status &&
        (faults == 0 || WIFSIGNALED(process.status))) {
        const std::string line = first_line(output_path(process, ".err"));
        record_finding(process.name + " " + describe(process.status) +
                       (line.empty() ? "" : ": " + line));
    }
    const bool is_host_running = std::ranges::any_of(processes_, [&](const Process &other) {
        return other.is_alive && other.command->host == host;
    });
    if (process.restarts)
        return;
    is_finished_ =
        is_finished_ || settings_.until == Until::FIRST ||
        (settings_.until == Until::HOST && settings_.until_host == host && !is_host_running);
}

void Schedule::kill_process(Process &process) {
    if (!process.is_alive)
        return;
    process.ignores_status = true;
    fabric().interrupt_writes(process.pid);
    ::kill(process.pid, SIGKILL);
    pollfd event = {process.pidfd, POLLIN, 0};
    while (poll(&event, 1, -1) < 0)
        ;
    server_->step(0); // reads a pending request, which is dropped with the connection
    handle_exit(process);
}

void Schedule::end_all() {
    for (Process &process : processes_)
        if (process.pidfd >= 0)
            kill_process(process);
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
    if (!process.is_alive || process.paused_until > now)
        return false;
    if (!process.is_started)
        return can_start(process);
    // After exec(), the new program of a started process sends START again.
    const bool may_change = process.wait.kind != sim::Wait::SLEEP;
    return !process.waits || process.wait.until <= now ||
           process.wait.kind == sim::Wait::START || (may_change && process.changes != changes_);
}

// Returns the time of the next event if no program is ready.
uint64_t Schedule::next_time() const {
    uint64_t next = server_->fabric().next_timer();
    for (const Process &process : processes_) {
        if (!process.is_alive)
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
        if (process.is_alive)
            all +=
                (all.empty() ? "" : ", ") + process.name + " waits in " + process.wait.function;
    return all;
}

// Returns false if the programs wait forever.
bool Schedule::pass_time() {
    const uint64_t next = next_time();
    const bool is_idle = server_->fabric().next_timer() == NEVER &&
                         server_->fabric().now() > progress_at_ + MAX_IDLE;
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
    const bool is_any_alive = std::ranges::any_of(processes_, &Process::is_alive);
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
    current_ = process.number - 1;
    if (++requests_ > MAX_REQUESTS)
        return record_finding("the programs do not end within 200000 calls");
    if (!process.waits) {
        const std::vector<std::byte> request = *server_->held(process.pid);
        sim::Reply reply;
        const size_t before = steps.size();
        const sim::CallName *const call =
            is_traced_ ? name_of_call(fabric(), request) : nullptr;
        const int error = server_->execute_held(process.pid, reply);
        uint32_t op;
        memcpy(&op, request.data(), sizeof(op));
        process.is_listening |= op == sim::OP_CM_LISTEN && error == 0;
        progress_at_ = server_->fabric().now();
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
        server_->release_held(process.pid);
    }
    await(process);
    add_output_steps(process);
}

// ---- delays and faults ---------------------------------------------------------------------

uint64_t Schedule::delay(sim::Delayed what) {
    const uint32_t option = chooser_.choose(Chooser::DELAY, std::size(LATE));
    if (option == 0)
        return 0;
    add_step("- ", "",
             std::string(DELAYED[(size_t)what]) + " arrives " + LATE_TEXTS[option - 1] +
                 " late");
    return LATE[option - 1];
}

unsigned Schedule::choose(sim::Weakness weakness, unsigned options) {
    const uint32_t option = chooser_.choose(weakness, options);
    if (option != 0)
        add_step("- ", "",
                 std::string("weakness ") + kind_of(weakness).name + ": " +
                     kind_of(weakness).text);
    return option;
}

void Schedule::completed(const sim::Cq &cq, const ibv_wc &wc) {
    changes_++;
    if (is_traced_ && cq.session != nullptr)
        add_step("  ", "host" + std::to_string(cq.session->host->number), describe(wc));
}

// Calls the function for the program of the fault, or for all programs of its host.
template <class Function>
void Schedule::for_each_process(const sim::Fault &fault, Function function) {
    for (Process &process : processes_)
        if (fault.program != 0 ? process.number == fault.program
                               : process.command->host == fault.hosts[0])
            function(process);
}

bool Schedule::has_process(const sim::Fault &fault) const {
    return std::ranges::any_of(processes_, [&](const Process &process) {
        return process.is_alive &&
               (fault.program == 0 ? process.command->host == fault.hosts[0]
                                   : process.number == fault.program && process.is_started);
    });
}

void Schedule::apply(const sim::Fault &fault) {
    faults++;
    std::string text = "fault: " + fault.text;
    if (fault.program != 0)
        if (const std::string &name = processes_[fault.program - 1].name;
            fault.text.find(name) == fault.text.npos)
            text += " (" + name + ")";
    add_step("- ", "", text);
    sim::apply(*this, fault);
    if (fault.lasts == 0)
        return;
    pending_ends_++;
    fabric().at(fabric().now() + fault.lasts, [this, &fault] { due_ends_.push_back(&fault); });
}

// Not in the timer: the end of a fault may start programs.
void Schedule::end_due_faults() {
    for (const sim::Fault *const fault : std::exchange(due_ends_, {})) {
        add_step("  ", "", "the fault ends: " + fault->text);
        pending_ends_--;
        sim::end(*this, *fault);
    }
}

void Schedule::kill(const sim::Fault &fault) {
    for_each_process(fault, [&](Process &process) {
        process.restarts = fault.lasts != 0;
        kill_process(process);
    });
}

// A program that has ended by itself, or has not started yet, is not started.
void Schedule::start(const sim::Fault &fault) {
    for_each_process(fault, [&](Process &process) {
        if (process.is_alive || !std::exchange(process.restarts, false))
            return;
        close(process.pidfd);
        process = {.command = process.command,
                   .number = process.number,
                   .name = process.name,
                   .out = process.out, // the new output follows the old one
                   .err = process.err,
                   .out_shown = process.out_shown,
                   .err_shown = process.err_shown};
        start(process);
    });
}

void Schedule::suspend(const sim::Fault &fault, bool is_suspended) {
    for_each_process(
        fault, [&](Process &process) { process.paused_until = is_suspended ? NEVER : 0; });
}

void Schedule::power_off(const sim::Fault &fault) {
    const unsigned host = fault.hosts[0];
    fabric().set_power(host, false);
    kill(fault);
    const uint64_t lost = pmem_.lose_power(host, fault.is_random ? &generator_ : nullptr);
    add_step("  ", "host" + std::to_string(host),
             "has lost " + std::to_string(lost) + " words that were not persistent");
}

// ---- the result ----------------------------------------------------------------------------

void Schedule::record_finding(const std::string &what) {
    if (finding.empty())
        finding = what;
}

void Schedule::check() {
    const std::string output = exploration_.directory.path() + "/check";
    const int fd = open_output(output);
    const pid_t pid = fork_command(true, fd, fd, [&] {
        for (const Process &process : processes_) {
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
    for (Process &process : processes_)
        start(process);
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

// ---- steps ---------------------------------------------------------------------------------

void Schedule::add_step(const char *mark, const std::string &who, const std::string &what) {
    if (!is_traced_ || what.empty())
        return;
    char time[64];
    snprintf(time, sizeof(time), "%12.3f ms ",
             static_cast<double>(server_->fabric().now() - BEGIN) / 1e6);
    steps.push_back(time + std::string(mark) + who + (who.empty() ? "" : " ") + what);
}

void Schedule::add_output_steps(Process &process) {
    if (!is_traced_)
        return;
    for (auto [fd, shown] : {std::pair{process.out, &process.out_shown},
                             std::pair{process.err, &process.err_shown}}) {
        std::string text;
        char part[4096];
        for (ssize_t length; (length = pread(fd, part, sizeof(part), *shown)) > 0;
             *shown += length)
            text.append(part, static_cast<size_t>(length));
        for (size_t begin = 0; begin < text.size();) {
            const size_t end = std::min(text.find('\n', begin), text.size());
            add_step("  ", process.name,
                     "prints: " + printable(text.substr(begin, end - begin)));
            begin = end + 1;
        }
    }
}
