// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// run.cc -- starts the commands, serves their requests, applies faults, and ends all processes

#include "run.hh"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace {

constexpr uint64_t SECOND = 1'000'000'000;
constexpr uint64_t TERMINATION_TIMEOUT = SECOND; // from SIGTERM to SIGKILL
constexpr uint64_t MAX_IDLE = 5 * SECOND;        // after a failure
constexpr uint64_t LISTEN_TIMEOUT = SECOND;      // then the next command starts
constexpr uint64_t LISTEN_INTERVAL = 2'000'000;

// Also works for processes that are not children of this one.
void kill_and_wait(pid_t pid) {
    pollfd event = {static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), POLLIN, 0};
    if (event.fd < 0)
        return; // the process has ended
    kill(pid, SIGKILL);
    poll(&event, 1, -1);
    close(event.fd);
}

// Returns all processes for which the predicate is true.
template <class Predicate> std::vector<pid_t> find_processes(Predicate predicate) {
    std::vector<pid_t> found;
    DIR *const directory = opendir("/proc");
    while (const dirent *const entry = directory == nullptr ? nullptr : readdir(directory))
        if (const pid_t pid = atoi(entry->d_name); pid > 0 && predicate(pid))
            found.push_back(pid);
    if (directory != nullptr)
        closedir(directory);
    return found;
}

std::string read_all(pid_t pid, const char *name) {
    std::string content;
    char path[64], part[4096];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    FILE *const file = fopen(path, "re");
    if (file == nullptr)
        return content;
    for (size_t length; (length = fread(part, 1, sizeof(part), file)) > 0;)
        content.append(part, length);
    fclose(file);
    return content;
}

bool is_child(pid_t pid) {
    const std::string text = read_all(pid, "stat");
    // The name of the program, in parentheses, may contain any character.
    const size_t end = text.rfind(')');
    int parent = 0;
    return end != text.npos && sscanf(text.c_str() + end + 1, " %*c %d", &parent) == 1 &&
           parent == getpid();
}

} // namespace

void open_pmem(const Settings &settings, sim::PmemFiles &files) {
    for (const auto &[host, path] : settings.pmem) {
        std::string error;
        std::unique_ptr<sim::PmemFile> file = sim::PmemFile::open(path, error);
        if (!file)
            refuse("--pmem %s: %s", path.c_str(), error.c_str());
        files.add(host, std::move(file));
    }
}

Run::Run(Settings &settings, const Libraries &libraries)
    : settings_(settings), libraries_(libraries), directory_(settings.name),
      server_(settings.fabric, &pmem_, settings.uses_threads), generator_(settings.fabric.seed),
      misuses_(directory_.path()) {
    open_pmem(settings, pmem_);
    server_.fabric().set_between_steps([this] {
        if (const int number = signals_.received())
            throw Exit{128 + number, ""};
    });
    server_.wake_by(signals_.descriptor());
    if (const int error = server_.listen(directory_.path() + "/socket"); error != 0)
        refuse("%s/socket: %s", directory_.path().c_str(), strerror(error));
    for (const auto &host : server_.fabric().hosts())
        directory_.add_host(*host, pmem_.ids(host->number));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Run::~Run() {
    kill_all_processes();
}

void Run::report(const char *format, ...) const {
    if (!settings_.is_verbose)
        return;
    va_list arguments;
    char line[4096];
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    fprintf(stderr, "rdma-sim: %.3f s: %s\n", static_cast<double>(now() - started_at_) / SECOND,
            printable(line).c_str());
}

void Run::start(const Command &command) {
    int out = -1, err = -1;
    if (settings_.prefixes) {
        out = outputs_.add(command.host, STDOUT_FILENO);
        err = outputs_.add(command.host, STDERR_FILENO);
    }
    // A single command keeps the terminal, because it may be a shell.
    const bool is_alone = settings_.commands.size() == 1;
    const pid_t pid = fork_command(!is_alone, out, err, [&] {
        set_environment(command.host, settings_.fabric.hosts, directory_.path(), libraries_,
                        pmem_.ids(command.host));
        setenv("RDMA_SIM_LISTENING", listening_path(command).c_str(), 1);
        execute(command);
    });
    if (out >= 0) {
        close(out);
        close(err);
    }
    report("host%u starts %s (process %d)", command.host, command.argv[0], pid);
    active_at_ = now();
    children_.push_back({&command, pid, !is_alone, active_at_});
}

std::string Run::listening_path(const Command &command) const {
    return directory_.path() + "/listening" +
           std::to_string(&command - settings_.commands.data());
}

// The command has started, perhaps several times.
const Child &Run::last_child_of(const Command &command) const {
    return *std::find_if(children_.rbegin(), children_.rend(),
                         [&](const Child &child) { return child.command == &command; });
}

// A command starts when the previous one listens or has ended: a client needs its server.
void Run::start_next() {
    while (started_ < settings_.commands.size()) {
        if (started_ > 0 && !settings_.starts_together) {
            const Child &before = last_child_of(settings_.commands[started_ - 1]);
            if (before.is_running && now() < before.started_at + LISTEN_TIMEOUT &&
                access(listening_path(*before.command).c_str(), F_OK) != 0)
                return;
        }
        start(settings_.commands[started_++]);
    }
}

void Run::schedule(const sim::Fault &fault) {
    schedule({&fault, false, fault.after != 0 || fault.kind->starts_programs}, fault.time);
}

void Run::schedule(const DueFault &due, uint64_t delay) {
    scheduled_faults_++;
    pending_faults_ += due.keeps_running;
    server_.fabric().at(now() + delay, [this, due] { due_faults_.push_back(due); });
}

// Returns the processes whose environment names this directory of the fabric, including those
// that joined the fabric or left their process group.
std::vector<pid_t> Run::processes(const std::string &root) const {
    const std::string variable = "RDMA_SIM_ROOT=" + directory_.path() + "/" + root;
    return find_processes([&](pid_t pid) {
        const std::string variables = read_all(pid, "environ");
        for (size_t at = 0; (at = variables.find(variable, at)) != variables.npos; at++)
            if ((at == 0 || variables[at - 1] == '\0') &&
                (root.empty() || variables[at + variable.size()] == '\0'))
                return true;
        return false;
    });
}

void Run::signal_host(unsigned host, int number) {
    for (Child &child : children_) {
        if (!child.is_running || child.command->host != host)
            continue;
        child.ignores_status = child.ignores_status || number == SIGKILL;
        ::kill(child.has_group ? -child.pid : child.pid, number);
    }
    for (const pid_t pid : processes("host" + std::to_string(host)))
        ::kill(pid, number);
    if (number == SIGKILL)
        killed_host_ = host;
}

void Run::kill(const sim::Fault &fault) {
    signal_host(fault.hosts[0], SIGKILL);
}

void Run::suspend(const sim::Fault &fault, bool is_suspended) {
    signal_host(fault.hosts[0], is_suspended ? SIGSTOP : SIGCONT);
}

void Run::power_off(const sim::Fault &fault) {
    const unsigned host = fault.hosts[0];
    const bool is_random = fault.is_random || settings_.loses_at_random;
    server_.fabric().set_power(host, false);
    signal_host(host, SIGKILL);
    // The processes can write to the files until they have ended.
    for (const pid_t pid : processes("host" + std::to_string(host)))
        kill_and_wait(pid);
    for (Child &child : children_) {
        int status = 0;
        if (child.is_running && child.command->host == host &&
            waitpid(child.pid, &status, 0) == child.pid)
            handle_exit(child, status);
    }
    const uint64_t lost = pmem_.lose_power(host, is_random ? &generator_ : nullptr);
    report("host%u lost power, and %llu words of its files", host,
           static_cast<unsigned long long>(lost));
}

void Run::start(const sim::Fault &fault) {
    for (size_t i = 0; i < started_; i++)
        if (const Command &command = settings_.commands[i];
            command.host == fault.hosts[0] && !last_child_of(command).is_running)
            start(command);
}

// The end of a fault may start programs: the run waits for it.
void Run::apply(const DueFault &due) {
    const sim::Fault &fault = *due.fault;
    report("%s: %s", due.is_end ? "the fault ends" : "fault", fault.text.c_str());
    active_at_ = now();
    if (due.is_end)
        sim::end(*this, fault);
    else
        sim::apply(*this, fault);
    if (!due.is_end && fault.lasts != 0)
        schedule({&fault, true, true}, fault.lasts);
    for (const auto &host : server_.fabric().hosts())
        directory_.update_host(*host);
}

void Run::apply_due_faults() {
    for (const DueFault &due : std::exchange(due_faults_, {})) {
        scheduled_faults_--;
        pending_faults_ -= due.keeps_running;
        apply(due);
    }
}

// Applies the faults of this call. Returns false if they have killed its program.
bool Run::before_call(const sim::Caller &caller, std::span<const std::byte> request) {
    killed_host_ = 0;
    for (const sim::Fault *const fault : call_faults_.take(fabric(), caller, request))
        if (fault->time != 0)
            schedule(*fault);
        else
            apply({fault, false, false});
    return killed_host_ != caller.session->host->number;
}

void Run::report_missing_calls() const {
    for (const auto &each : call_faults_.pending())
        fprintf(stderr,
                "rdma-sim: --fault '%s' did not occur: host%u has called %s() %llu times\n",
                each.fault->text.c_str(), each.fault->caller, each.fault->call->name,
                static_cast<unsigned long long>(each.calls));
}

void Run::handle_exit(Child &child, int status) {
    child.is_running = false;
    child.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    has_ended_ = true;
    active_at_ = now();
    report("host%u: %s ended with status %d", child.command->host, child.command->argv[0],
           child.status);
    if (child.status != 0 && !child.ignores_status && failed_ == nullptr)
        failed_ = &child;
    if (is_host_running(child.command->host))
        return;
    // Each fault occurs once, although its effect may start and end the programs again.
    std::erase_if(later_faults_, [&](const sim::Fault *fault) {
        const bool is_now = fault->after == child.command->host;
        if (is_now)
            schedule(*fault);
        return is_now;
    });
}

// Also true if a COMMAND of the host has not started yet.
bool Run::is_host_running(unsigned host) const {
    return std::any_of(children_.begin(), children_.end(),
                       [&](const Child &child) {
                           return child.is_running && child.command->host == host;
                       }) ||
           std::any_of(settings_.commands.begin() + static_cast<std::ptrdiff_t>(started_),
                       settings_.commands.end(),
                       [&](const Command &command) { return command.host == host; });
}

// A fabric without COMMANDs does not end: it serves programs that join it.
bool Run::is_finished() const {
    if (pending_faults_ > 0 || settings_.commands.empty())
        return false;
    if (started_ == settings_.commands.size() && !is_any_running())
        return true;
    return (settings_.until == Until::FIRST && has_ended_) ||
           (settings_.until == Until::HOST &&
            std::ranges::none_of(settings_.until_hosts,
                                 [this](unsigned host) { return is_host_running(host); }));
}

// After a failure, returns the time at which the others are ended unless one makes a call: they
// may wait for the failed program for ever. A program that joins a named fabric may still come.
uint64_t Run::idle_limit() const {
    return failed_ == nullptr || scheduled_faults_ > 0 || settings_.until == Until::ALL ||
                   !settings_.name.empty()
               ? UINT64_MAX
               : active_at_ + MAX_IDLE;
}

void Run::reap() {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (Child &child : children_)
            if (child.is_running && child.pid == pid)
                handle_exit(child, status);
}

// Returns false if a signal ends the run.
bool Run::handle_signals() {
    if (server_.is_woken())
        signals_.received();
    if (signals_.first() != 0)
        return false;
    if (signals_.take_child())
        reap();
    return true;
}

// Waits for an event, at most `limit` nanoseconds. Without pipes of programs, the server waits,
// which takes one system call per request instead of two.
void Run::step(uint64_t limit) {
    std::vector<pollfd> events;
    outputs_.add_events(events);
    if (events.empty()) {
        if (server_.step(limit))
            active_at_ = server_.fabric().now();
        return;
    }
    const uint64_t timer = server_.fabric().next_time(), time_now = now();
    const uint64_t wait = std::min(limit, timer > time_now ? timer - time_now : 0);
    events.push_back({server_.descriptor(), POLLIN, 0});
    const timespec time = {static_cast<time_t>(wait / SECOND),
                           static_cast<long>(wait % SECOND)};
    ppoll(events.data(), events.size(), wait == UINT64_MAX ? nullptr : &time, nullptr);
    const bool has_output = std::any_of(events.begin(), events.end() - 1,
                                        [](const pollfd &event) { return event.revents != 0; });
    if (server_.step(0) || has_output)
        active_at_ = now();
    outputs_.serve();
}

// Servers get a second to end.
void Run::end_commands() {
    const uint64_t limit = now() + TERMINATION_TIMEOUT;
    for (Child &child : children_) {
        child.ignores_status = true;
        if (child.is_running)
            ::kill(child.has_group ? -child.pid : child.pid, SIGTERM);
    }
    while (is_any_running() && now() < limit && handle_signals())
        step(limit - std::min(limit, now()));
}

bool Run::is_any_running() const {
    return std::any_of(children_.begin(), children_.end(),
                       [](const Child &child) { return child.is_running; });
}

// Repeats the search, because orphans of killed processes become children of this one.
void Run::kill_all_processes() {
    while (waitpid(-1, nullptr, WNOHANG) >= 0) {
        for (const pid_t pid : find_processes(is_child))
            ::kill(pid, SIGKILL);
        usleep(1000);
    }
    for (const pid_t pid : processes(""))
        kill_and_wait(pid);
    outputs_.close_all();
}

void Run::write_outputs() {
    while (!outputs_.is_written() && signals_.received() == 0)
        step(UINT64_MAX);
}

void Run::serve() {
    for (const sim::Fault &fault : settings_.faults)
        if (fault.call != nullptr)
            call_faults_.add(fault);
        else if (fault.after == 0)
            schedule(fault);
        else
            later_faults_.push_back(&fault);
    if (!call_faults_.pending().empty())
        server_.fabric().set_before_call(
            [this](const sim::Caller &caller, std::span<const std::byte> request) {
                return before_call(caller, request);
            });
    while (handle_signals() && !is_finished()) {
        start_next();
        const uint64_t limit = idle_limit(), time_now = limit == UINT64_MAX ? 0 : now();
        if (time_now >= limit) {
            fprintf(stderr,
                    "rdma-sim: host%u: %s ended with status %d, and no program has made a call "
                    "for 5 s: the others are ended; --until all waits for them\n",
                    failed_->command->host, printable(failed_->command->argv[0]).c_str(),
                    failed_->status);
            break;
        }
        report_misuses();
        step(std::min(started_ < settings_.commands.size() ? LISTEN_INTERVAL : UINT64_MAX,
                      limit == UINT64_MAX ? limit : limit - time_now));
        apply_due_faults();
    }
    end_commands();
    report_missing_calls();
}

void Run::report_misuses() {
    if (!settings_.is_strict)
        return;
    for (const std::string &line : misuses_.take())
        fprintf(stderr, "rdma-sim: %s\n", printable(line).c_str());
}

int Run::main() {
    try {
        serve();
    } catch (...) {
        kill_all_processes();
        write_outputs();
        throw;
    }
    kill_all_processes();
    write_outputs();
    report_misuses();
    report("data was moved %s",
           server_.memory_threads() > 0 ? "by threads of the programs" : "directly");
    if (const int number = signals_.received(); number != 0)
        return 128 + number;
    if (failed_ != nullptr)
        return failed_->status;
    return misuses_.count() == 0 ? EXIT_SUCCESS : EXIT_MISUSE;
}
