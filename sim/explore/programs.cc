// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// programs.cc -- the programs of a schedule: their start, their requests and their end
//
// A program runs until it sends a request. It receives the reply at its next turn.

#include "schedule.hh"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <libgen.h>
#include <poll.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int FIRST_CHECK = 2, THOROUGH_CHECK = 30; // milliseconds of real time
// The dynamic linker has loaded libibverbs of the system next to a library of the fabric.
constexpr char VERSION_IS_MISSING[] = "version `RDMA_SIM' not found";

// Returns the value of a line of /proc/PID/status, or 0.
uint64_t mask_of(const std::string &status, const char *name) {
    const size_t at = status.find(name);
    return at == status.npos ? 0 : strtoull(&status[at + strlen(name)], nullptr, 16);
}

// Returns true if a signal is pending that the first thread does not block.
bool has_deliverable_signal(pid_t pid) {
    const std::string text = read_proc(pid, "status");
    return ((mask_of(text, "SigPnd:") | mask_of(text, "ShdPnd:")) &
            ~mask_of(text, "SigBlk:")) != 0;
}

// Returns the state of a thread in /proc/PID/task/TID/stat, or 'X' if it has ended.
char state_of(pid_t pid, pid_t thread) {
    const std::string text =
        read_proc(pid, ("task/" + std::to_string(thread) + "/stat").c_str());
    const size_t end = text.rfind(')'); // of its name
    return end == text.npos || end + 2 >= text.size() ? 'X' : text[end + 2];
}

// Returns the name of the program that a process executes, which is not the one of its COMMAND
// after exec(). The kernel has at most 15 bytes of it.
std::string name_of_program(pid_t pid) {
    std::string name = read_proc(pid, "comm"), first = read_proc(pid, "cmdline").c_str();
    name = name.substr(0, name.find('\n'));
    first = basename(first.data());
    return first.starts_with(name) ? first : name;
}

// The status of a process that its parent has not waited for: proc_pid_stat(5), exit_code.
int status_of_zombie(pid_t pid) {
    const std::string text = read_proc(pid, "stat");
    const size_t last = text.rfind(' ');
    return last == text.npos ? 0 : atoi(&text[last]);
}

// Signals that a process gets because of a mistake of its own.
bool is_crash(int status) {
    constexpr int CRASHES[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    return WIFSIGNALED(status) &&
           std::ranges::find(CRASHES, WTERMSIG(status)) != std::end(CRASHES);
}

std::string describe(int status) {
    return WIFSIGNALED(status)
               ? std::string("is ended by signal ") + std::to_string(WTERMSIG(status)) + " (" +
                     strsignal(WTERMSIG(status)) + ")"
               : "ends with status " + std::to_string(WEXITSTATUS(status));
}

// Quotes why a program has ended: its last line on standard error, or that of a sanitizer, or
// its last line on standard output. A signal is not related to that.
std::string reason(int status, const std::string &out, const std::string &err) {
    const std::string sanitizer = last_line(err, "Sanitizer: "),
                      error = sanitizer.empty() ? last_line(err) : sanitizer;
    const std::string line = !error.empty() || WIFSIGNALED(status) ? error : last_line(out);
    return line.empty() ? "" : ": " + line;
}

} // namespace

std::string Schedule::output_path(const Process &process, const char *suffix) const {
    return exploration_.directory.path() + "/" + std::to_string(process.number) + suffix;
}

// The number of the host, and, if it has several commands, the name of the program; if several
// of them have this name, also a number from 1.
std::string Schedule::name_of(const Command &command) const {
    std::string name = "host" + std::to_string(command.host);
    if (std::ranges::count(settings_.commands, command.host, &Command::host) == 1)
        return name;
    const auto program_of = [this](const Command &of) {
        const std::string &run =
            exploration_.names[static_cast<size_t>(&of - settings_.commands.data())];
        return run.empty() ? basename(of.argv[0]) : run;
    };
    const std::string program = program_of(command);
    name += " " + program;
    size_t namesakes = 0, number = 0;
    for (const Command &other : settings_.commands) {
        namesakes += other.host == command.host && program_of(other) == program;
        if (&other == &command)
            number = namesakes;
    }
    return namesakes == 1 ? name : name + " #" + std::to_string(number);
}

void Schedule::start(Process &process) {
    const unsigned host = process.command->host;
    if (process.out < 0) {
        process.out = open_output(output_path(process, ".out"));
        process.err = open_output(output_path(process, ".err"));
    }
    const auto execute = [&] {
        (void)personality(ADDR_NO_RANDOMIZE); // the same addresses in each run
        set_environment(host, settings_.fabric.hosts, exploration_.directory.path(),
                        exploration_.libraries, pmem_.ids(host));
        setenv("RDMA_SIM_CLOCK", (exploration_.directory.path() + "/clock").c_str(), 1);
        setenv("RDMA_SIM_PROGRAM", std::to_string(process.number).c_str(), 1);
        ::execute(*process.command);
    };
    ForkServer &forks = exploration_.fork_servers[process.number - 1];
    process.pid = forks.fork(process.out, process.err, exploration_.signals, execute);
    if (process.pid < 0)
        process.pid = fork_command(true, process.out, process.err, execute);
    process.thread = process.pid;
    process.pidfd = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
    if (process.pidfd < 0)
        refuse("pidfd_open: %s", strerror(errno));
    await(process);
}

// Returns a client of the process that no thread here has, or 0.
uint64_t Schedule::unknown_client(pid_t pid, sim::Wait::Kind kind) const {
    for (const uint64_t client : server_->clients_with_request(pid)) {
        const auto has_client = [&](const Process &each) { return each.client == client; };
        sim::Wait wait{};
        const std::vector<std::byte> &request = *server_->held(client);
        memcpy(&wait, request.data(), std::min(request.size(), sizeof(wait)));
        if (wait.op == sim::OP_WAIT && wait.kind == kind &&
            std::ranges::none_of(processes_, has_client))
            return client;
    }
    return 0;
}

// A thread that makes memory persistent has another connection for it:
// client/preload/persist.cc.
uint64_t Schedule::other_client(const Process &process) const {
    for (const uint64_t client : server_->clients_with_request(process.pid)) {
        sim::Persist request{};
        const std::vector<std::byte> &held = *server_->held(client);
        memcpy(&request, held.data(), std::min(held.size(), sizeof(request)));
        if (request.op == sim::OP_PERSIST &&
            static_cast<pid_t>(request.thread) == process.thread)
            return client;
    }
    return 0;
}

bool Schedule::has_request(Process &process) {
    process.other_client = 0;
    if (process.client != 0 && server_->held(process.client) != nullptr)
        return true;
    process.other_client = other_client(process);
    if (process.other_client != 0)
        return true;
    if (process.first != nullptr)
        return false;
    // A program that another one has executed is a new client.
    const uint64_t client = unknown_client(process.pid, sim::Wait::START);
    if (client == 0)
        return false;
    process.client = client;
    process.has_ended = false;
    for (Process &each : processes_)
        if (each.first == &process)
            each.is_alive = false;
    return true;
}

// Returns true if a thread other than the first has executed another program.
bool Schedule::executes_another(Process &thread) {
    if (thread.first == nullptr || unknown_client(thread.pid, sim::Wait::START) == 0 ||
        !has_request(*thread.first))
        return false;
    read_request(*thread.first);
    return true;
}

// Waits until the thread has sent a request, its process has ended, or it waits in a loop for
// memory.
void Schedule::await(Process &process) {
    pollfd events[] = {{server_->descriptor(), POLLIN, 0},
                       {first_of(process).pidfd, POLLIN, 0},
                       {exploration_.signals.descriptor(), POLLIN, 0},
                       {-1, POLLIN, 0}};
    for (int passed = 0, timeout = FIRST_CHECK; !has_request(process);) {
        events[3].fd = server_->socket_of(process.client);
        const int count = poll(events, std::size(events), timeout);
        if (count < 0 || events[2].revents != 0)
            exploration_.check_signals();
        const bool has_stopped = count == 0 && !has_gdb(); // gdb is the one that traces it
        if (has_stopped && is_spinning(process, passed >= THOROUGH_CHECK))
            return;
        if (has_stopped) {
            passed += timeout;
            timeout = std::min(2 * timeout, MAX_TURN - passed);
        }
        if (passed >= MAX_TURN)
            return record_finding(process.name +
                                  " makes no call for 10 s: it computes, or waits for "
                                  "something that explore does not control");
        if (events[3].revents != 0)
            server_->serve(events[3].fd); // most often it is the only one
        else
            server_->step(0);
        if (executes_another(process))
            return;
        if (events[1].revents != 0)
            return handle_exit(first_of(process));
    }
    read_request(process);
}

// Adds the thread that the last request reports. It has sent its own request, or sends it now.
void Schedule::add_thread(Process &creator) {
    pollfd events[] = {{server_->descriptor(), POLLIN, 0},
                       {first_of(creator).pidfd, POLLIN, 0},
                       {exploration_.signals.descriptor(), POLLIN, 0}};
    uint64_t client;
    while ((client = unknown_client(creator.pid, sim::Wait::THREAD)) == 0) {
        poll(events, std::size(events), MAX_TURN);
        exploration_.check_signals();
        server_->step(0);
        if (events[1].revents != 0)
            return;
    }
    Process &command = first_of(creator);
    processes_.push_back(
        {.command = creator.command,
         .number = creator.number,
         .name = command.name + " thread " + std::to_string(++command.threads + 1),
         .index = processes_.size(),
         .first = &command,
         .client = client,
         .pid = creator.pid,
         .is_started = true});
    Process &added = processes_.back();
    read_request(added);
    added.thread = static_cast<pid_t>(added.wait.object);
    added.polling.progress(server_->fabric().now());
}

// Adds the process that the last request reports. It has made its first request afterwards.
void Schedule::add_process(Process &creator) {
    Process &command = processes_[creator.number - 1];
    const auto pid = static_cast<pid_t>(creator.wait.object);
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) // it has ended, and its parent ignores the end of children
        return;
    processes_.push_back(
        {.command = creator.command,
         .number = creator.number,
         .name = command.name + " process " + std::to_string(++command.children + 1),
         .index = processes_.size(),
         .parent = &first_of(creator),
         .pid = pid,
         .thread = pid,
         .pidfd = pidfd,
         .is_started = true});
    processes_.back().polling.progress(server_->fabric().now());
    await(processes_.back());
}

void Schedule::set_signaled(const Process &process) {
    for (Process &each : processes_)
        each.is_signaled |= &first_of(each) == &process;
}

bool Schedule::has_ended(const Process &process) const {
    pollfd event = {process.pidfd, POLLIN, 0};
    return poll(&event, 1, 0) == 1;
}

// Returns true if all threads wait for a reply. Those of a process that a signal ends are
// awake, also after they have taken the signal.
bool Schedule::is_quiet(const Process &first) {
    return std::ranges::all_of(processes_, [&](Process &each) {
        return &first_of(each) != &first || !each.is_alive || each.has_ended ||
               strchr("StT", state_of(each.pid, each.thread)) != nullptr;
    });
}

// Signals without a handler act at once: waits until the kernel has delivered them. A program
// with a handler blocks them until its next turn.
void Schedule::deliver_signals(const Process &sender) {
    set_signaled(sender.first == nullptr ? sender : *sender.first); // its other threads
    for (size_t i = 0; i < processes_.size(); i++) {
        Process &each = processes_[i];
        if (each.first != nullptr || !each.is_alive || each.pid == sender.pid ||
            each.number != sender.number)
            continue;
        while (!has_ended(each) && (has_deliverable_signal(each.pid) || !is_quiet(each)))
            usleep(20);
        if (has_ended(each))
            handle_exit(each);
        else
            set_signaled(each);
    }
}

// The next turn begins after the thread has freed its memory, so that addresses are the same in
// each run.
void Schedule::end_thread(Process &process) {
    while (strchr("ZX", state_of(process.pid, process.thread)) == nullptr)
        usleep(20);
    process.has_ended = true;
    Process &first = first_of(process);
    process.is_alive = &process == &first;
    const bool is_last =
        first.has_ended && std::ranges::none_of(processes_, [&](Process &each) {
            return each.is_alive && each.first == &first;
        });
    pollfd event = {first.pidfd, POLLIN, 0};
    if (!is_last)
        return;
    while (poll(&event, 1, -1) < 0)
        ;
    handle_exit(first);
}

// A program that computes continues, so that real time has no effect on the schedule.
bool Schedule::is_spinning(Process &process, bool is_thorough) {
    if (!process.spin.stop(process.thread, is_command(process), is_thorough))
        return false;
    process.waits = true;
    process.wait = {};
    process.wait.kind = sim::Wait::MEMORY;
    process.wait.until = NEVER;
    strcpy(process.wait.function, "a loop that reads memory");
    process.writes = writes(process);
    return true;
}

// Programs of a host can share memory.
uint64_t Schedule::writes(const Process &process) const {
    const auto turns = turns_.find(process.command->host);
    return server_->writes(process.pid) + (turns == turns_.end() ? 0 : turns->second);
}

uint64_t Schedule::object_changes(const Process &process) const {
    return exploration_.clock->changes[process.wait.object % sim::VirtualClock::OBJECTS];
}

void Schedule::read_request(Process &process) {
    const std::vector<std::byte> &request = *server_->held(client_of(process));
    uint32_t op;
    memcpy(&op, request.data(), sizeof(op));
    process.waits = op == sim::OP_WAIT && request.size() >= sizeof(sim::Wait);
    process.persists = op == sim::OP_PERSIST;
    process.changes = changes_;
    if (trace_)
        process.place = exploration_.lines.add(
            process.pid, {exploration_.clock->addresses,
                          std::exchange(exploration_.clock->address_count, 0)});
    if (!process.waits) {
        process.polling.progress(server_->fabric().now());
        return;
    }
    memcpy(&process.wait, request.data(), sizeof(process.wait));
    process.wait.function[sizeof(process.wait.function) - 1] = '\0';
    if (process.wait.kind == sim::Wait::UNSUPPORTED)
        refuse("%s calls %s%s, which explore does not control", process.command->argv[0],
               process.wait.function,
               strchr(process.wait.function, '(') == nullptr ? "()" : "");
    if (process.wait.kind == sim::Wait::START && exploration_.is_rehearsal &&
        is_command(process))
        exploration_.names[process.index] = name_of_program(process.pid);
    if (process.wait.kind == sim::Wait::CREATED)
        add_thread(process);
    if (process.wait.kind == sim::Wait::FORKED)
        add_process(process);
    if (process.wait.kind == sim::Wait::SIGNALED)
        deliver_signals(process);
    if (process.wait.kind == sim::Wait::EVENT)
        process.object_changes = object_changes(process);
    const uint64_t now = server_->fabric().now();
    if (process.wait.kind == sim::Wait::POLL)
        process.wait.until = process.polling.next(now);
    if (process.wait.kind == sim::Wait::SLEEP)
        process.wait.until = process.polling.end_of_sleep(now, process.wait.until);
    process.timed_waits.add(process.wait.until, progress_requests_);
}

void Schedule::end_wait(Process &process) {
    const uint64_t now = server_->fabric().now();
    if (!process.is_started)
        process.started_at = now;
    if (!process.is_started || process.changes != changes_)
        process.polling.progress(now);
    else if (process.wait.kind != sim::Wait::POLL && process.wait.until <= now)
        process.polling.waited(now);
    process.is_started = true;
}

void Schedule::handle_exit(Process &process) {
    if (is_command(process))
        waitpid(process.pid, &process.status, 0);
    else
        process.status = status_of_zombie(process.pid);
    for (Process &each : processes_)
        if (&first_of(each) == &process)
            each.is_alive = false;
    while (server_->has_client(process.pid) && server_->step(0))
        ; // closes its connections, unless a child of it shares them
    if (const std::string line = last_line(output_path(process, ".err"), VERSION_IS_MISSING);
        process.status != 0 && !line.empty())
        refuse(sim::PRELOAD_IS_LOST, line.substr(0, line.find(':')).c_str());
    if (process.parent != nullptr)
        set_signaled(*process.parent);
    descriptors_changed();
    progress_at_ = server_->fabric().now();
    add_output_steps(process);
    add_step(Step::PROCESS, process.ignores_status ? "is killed" : describe(process.status),
             &process);
    if (process.status != 0 && !process.ignores_status &&
        (is_command(process) ? faults == 0 || WIFSIGNALED(process.status)
                             : is_crash(process.status))) {
        record_finding(
            process.name + " " + describe(process.status) +
            reason(process.status, output_path(process, ".out"), output_path(process, ".err")));
    }
    const bool is_awaited = std::ranges::any_of(processes_, [&](const Process &other) {
        return (other.is_alive || other.restarts) && is_command(other) &&
               settings_.is_until(other.command->host);
    });
    if (process.restarts || !is_command(process)) // its parent judges its status
        return;
    is_finished_ = is_finished_ || settings_.until == Until::FIRST ||
                   (settings_.until == Until::HOST && !is_awaited);
}

// The children first: they end with the command.
void Schedule::kill_command(const Process &command) {
    for (Process &each : processes_)
        if (each.number == command.number)
            each.spin.release();
    for (size_t i = processes_.size(); i-- > 0;)
        if (processes_[i].number == command.number && processes_[i].first == nullptr)
            kill_process(processes_[i]);
}

void Schedule::kill_process(Process &process) {
    process.ignores_status |= process.is_alive;
    fabric().interrupt_writes(process.pid);
    ::kill(-process.pid, SIGKILL);
    if (!process.is_alive)
        return;
    ::kill(process.pid, SIGKILL);
    pollfd event = {process.pidfd, POLLIN, 0};
    while (poll(&event, 1, -1) < 0)
        ;
    server_->step(0); // reads a pending request, which is dropped with the connection
    handle_exit(process);
}

void Schedule::end_all() {
    for (Process &process : processes_)
        if (is_command(process) && process.pidfd >= 0)
            kill_command(process);
}
