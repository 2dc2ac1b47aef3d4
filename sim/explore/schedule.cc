// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// schedule.cc -- one schedule: unchanged programs that run one at a time, in virtual time

#include "schedule.hh"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr uint64_t LISTEN_TIMEOUT = SECOND; // then the next command starts
constexpr uint64_t LATE_STARTS[] = {MICROSECOND, 1000 * MICROSECOND, 100'000 * MICROSECOND,
                                    2 * SECOND};
constexpr useconds_t GDB_INTERVAL = 10'000;
constexpr const char *LATE_START_TEXTS[] = {"1 us", "1 ms", "100 ms", "2 s"};

} // namespace

Schedule::Schedule(Exploration &exploration, uint64_t seed, Chooser &chooser, bool is_traced)
    : exploration_(exploration), settings_(exploration.settings), seed_(seed),
      chooser_(chooser), trace_(is_traced), generator_(seed) {
    for (const OriginalFile &file : exploration.pmem)
        file.restore_copy();
    open_pmem(settings_, pmem_);
    pmem_.keep_history();
    sim::Options options = settings_.fabric;
    options.seed = seed;
    options.scheduler = this;
    server_ = std::make_unique<sim::Server>(options, static_cast<sim::Persistence *>(this),
                                            settings_.uses_threads, true);
    const std::string socket = exploration.directory.path() + "/socket";
    sockets_.emplace(
        fabric(), *exploration.clock, sim::loopback_of_run(socket.c_str()),
        [this](unsigned from, unsigned to, const std::string &what) {
            trace_.packet(from, to, what);
        },
        [this] { return owners(); });
    server_->fabric().set_between_steps([&exploration] { exploration.check_signals(); });
    if (const int error = server_->listen(socket))
        refuse("%s: %s", socket.c_str(), strerror(error));
    *exploration.clock = {};
    exploration.clock->seed = seed;
    exploration.clock->is_traced = is_traced;
    advance(BEGIN);
    trace_.begin(fabric());
    progress_at_ = BEGIN;
    for (const Command &command : settings_.commands) {
        Process process;
        process.command = &command;
        process.index = processes_.size();
        process.number = static_cast<unsigned>(processes_.size()) + 1;
        process.name = name_of(command);
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

// A client needs its server: a program starts when the first one, and each earlier one that
// listens, listens or has ended, or after a time. Returns NEVER if such a program has not
// started.
uint64_t Schedule::can_start_at(const Process &process) const {
    uint64_t time = 0;
    const bool is_in_order = settings_.starts_in_order || exploration_.is_rehearsal;
    for (const Process &other : processes_) {
        if (!is_command(other) || other.number >= process.number || settings_.starts_together)
            break;
        const bool is_needed =
            is_in_order ? other.number + 1 == process.number
                        : other.number == 1 || exploration_.listens[other.number - 1];
        if (!is_needed || !other.is_alive || other.is_listening)
            continue;
        time = std::max(time, other.is_started ? other.started_at + LISTEN_TIMEOUT : NEVER);
    }
    return time;
}

void Schedule::permit_starts() {
    for (Process &process : processes_) {
        if (!is_command(process) || process.may_start || !process.is_alive ||
            can_start_at(process) > server_->fabric().now())
            continue;
        process.may_start = true;
        const uint32_t option =
            process.number == 1 ? 0 : chooser_.choose(Chooser::START, std::size(LATE_STARTS));
        if (option == 0)
            continue;
        process.starts_at = server_->fabric().now() + LATE_STARTS[option - 1];
        add_step(Step::CHOICE, std::string("starts ") + LATE_START_TEXTS[option - 1] + " late",
                 &process);
    }
}

bool Schedule::is_client(const Process &process) const {
    return process.number != 1 && !exploration_.is_rehearsal &&
           !exploration_.listens[process.number - 1];
}

std::vector<bool> Schedule::listening() const {
    std::vector<bool> all;
    for (const Process &process : processes_)
        if (is_command(process))
            all.push_back(process.is_listening);
    return all;
}

bool Schedule::is_ready(const Process &process) const {
    const uint64_t now = server_->fabric().now();
    if (!process.is_alive || process.has_ended ||
        processes_[process.number - 1].paused_until > now)
        return false;
    if (!process.is_started)
        return process.may_start && process.starts_at <= now;
    if (process.spin.is_stopped())
        return process.writes != writes(process);
    if (!process.waits || process.wait.until <= now || process.is_signaled)
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
    uint64_t next =
        std::min({server_->fabric().next_timer(), sockets_->next_timeout(), next_end()});
    for (const Process &process : processes_) {
        if (!process.is_alive || process.has_ended)
            continue;
        // A thread of a frozen program is not ready, although its own wait may have ended.
        if (const uint64_t paused_until = processes_[process.number - 1].paused_until;
            paused_until > server_->fabric().now())
            next = std::min(next, paused_until);
        else if (process.is_started)
            next = std::min(next, process.wait.until);
        else
            next =
                std::min(next, process.may_start ? process.starts_at : can_start_at(process));
    }
    return next;
}

// Returns the time until which the clock advances if it continues before programs that are
// ready. With each second seed, it does not pass a fault at once: they run during the fault.
uint64_t Schedule::time_before_programs() const {
    const bool runs_during_fault = seed_ % 2 != 0 && !ends_.empty();
    return std::min(
        {server_->fabric().next_timer(), next_end(),
         runs_during_fault ? server_->fabric().now() + std::ranges::max(LATE) : NEVER});
}

void Schedule::advance(uint64_t time) {
    order_.time_passes();
    server_->fabric().advance(time);
    exploration_.clock->now = server_->fabric().now();
}

// An object is destroyed once its events are acknowledged.
std::string Schedule::after_destruction(const Process &process) {
    const std::string_view call = process.last_call == nullptr ? "" : process.last_call->name;
    return call.find("_destroy_") != call.npos &&
                   strcmp(process.wait.function, "pthread_cond_wait") == 0
               ? " after " + std::string(call)
               : "";
}

std::string Schedule::waiting() const {
    std::string all;
    for (const Process &process : processes_)
        if (process.is_alive && !process.has_ended && (faults == 0 || is_asked_to_end(process)))
            all += (all.empty() ? "" : ", ") + process.name + " waits in " +
                   process.wait.function + after_destruction(process);
    return all;
}

// With --live, that time is the limit.
bool Schedule::is_idle() const {
    const auto all_last_for_ever = [this] {
        return std::ranges::all_of(processes_, [](const Process &process) {
            return !process.is_alive || process.has_ended || process.wait.until == NEVER ||
                   process.timed_waits.last_for_ever();
        });
    };
    if (settings_.live != 0 && is_healed())
        return false;
    return ::is_idle(server_->fabric().now() - progress_at_, requests_ - progress_requests_,
                     faults != 0, all_last_for_ever);
}

// Returns false if the programs wait forever.
bool Schedule::pass_time() {
    const uint64_t next = next_time();
    const bool waits_forever =
        server_->fabric().next_timer() == NEVER && ends_.empty() && is_idle();
    const uint64_t deadline = server_->fabric().next_deadline();
    if (next < deadline && !waits_forever) {
        advance(next);
        return true;
    }
    if (sockets_->settle()) {
        descriptors_changed();
        return true;
    }
    if (deadline != NEVER) {
        advance(deadline);
        return true;
    }
    stop_waiting();
    return false;
}

// Programs that only wait, or loop. After a fault this is no defect without --live: a program
// can wait for one that the fault has ended.
void Schedule::stop_waiting() {
    is_finished_ = true;
    for (const Process &process : processes_)
        if (process.is_alive && process.is_started && !process.has_ended)
            add_waiting(process);
    if (faults == 0)
        return record_finding("the programs wait for ever: " + waiting());
    coverage.waited |= is_healed();
    if (settings_.live != 0 && is_healed())
        record_finding("the programs do not end after the last fault: " + waiting());
}

// Returns true if the programs must end now: each fault has ended, or they can notice it. A
// program that only receives notices no cut; one of the host of --until has to, by a timeout.
bool Schedule::is_healed() const {
    return faults != 0 && ends_.empty() &&
           (!has_lasting_fault_ || settings_.until == Until::HOST);
}

bool Schedule::is_asked_to_end(const Process &process) const {
    return process.is_alive &&
           (settings_.until != Until::HOST || settings_.is_until(process.command->host));
}

bool Schedule::step() {
    end_due_faults();
    if (sockets_->deliver()) {
        descriptors_changed();
        record_progress();
    }
    const auto is_over = [this] {
        return ends_.empty() && std::ranges::none_of(processes_, [this](const auto &each) {
                   return each.is_alive && is_command(each);
               });
    };
    if (!finding.empty() || is_finished_ || is_over())
        return false;
    if (settings_.live != 0 && is_healed() &&
        fabric().now() > last_fault_at_ + settings_.live) {
        stop_waiting();
        return false;
    }
    if (const sim::Fault *const fault =
            chooser_.choose(Chooser::FAULT, exploration_.faults, window(), posting_program());
        fault != nullptr && has_process(*fault))
        apply(*fault);
    permit_starts();
    // By default, a program continues until it waits. Then the next one runs. One that ends is
    // the last one: its threads use what it has released, until the kernel has ended them.
    std::vector<unsigned> ready;
    for (size_t i = 0; i < processes_.size(); i++)
        if (const Process &process = processes_[(current_ + i) % processes_.size()];
            is_ready(process))
            ready.push_back(static_cast<unsigned>(process.index) + 1);
    std::stable_partition(ready.begin(), ready.end(), [this](unsigned thread) {
        const Process &process = processes_[thread - 1];
        return !process.waits || process.wait.kind != sim::Wait::ENDS;
    });
    if (ready.empty())
        return !is_over() && pass_time(); // the fault can have ended the last program
    if (const std::optional<uint64_t> time =
            order_.due_time(fabric().now(), time_before_programs()))
        advance(*time);
    const uint64_t timer = time_before_programs();
    const auto [thread, instead, changed] = order_.choose(chooser_, ready, timer != NEVER);
    for (const Chooser::Priority &each : changed)
        add_step(Step::CHOICE, priority_text(each),
                 each.thread == 0 ? nullptr : &processes_[each.thread - 1]);
    if (thread == 0) {
        add_step(Step::CHOICE, "time passes before a program continues");
        advance(timer);
        return true;
    }
    Process &next = processes_[thread - 1];
    if (thread != instead)
        add_step(Step::CHOICE,
                 "continues before " +
                     (instead == 0 ? "time passes" : processes_[instead - 1].name),
                 &next);
    run_turn(next);
    return true;
}

// Executes a request to the fabric.
void Schedule::execute(Process &process, uint32_t op, const std::vector<std::byte> &request) {
    sim::Reply reply;
    const size_t before = trace_.size();
    const int error = server_->execute_held(client_of(process), reply);
    first_of(process).is_listening |= op == sim::OP_CM_LISTEN && error == 0;
    if (op == sim::OP_POST_SEND) {
        posted_at_ = requests_;
        coverage.posts++;
    }
    record_progress();
    if (trace_)
        add_call(process, describe(fabric(), process.last_call, request, error, reply), before);
}

void Schedule::run_turn(Process &process) {
    current_ = process.index;
    process.is_signaled = false;
    if (++requests_ > MAX_REQUESTS) {
        if (faults != 0 && (settings_.live == 0 || !is_healed()))
            return stop_waiting();
        return record_finding("the programs do not end within 200000 calls");
    }
    coverage.add_to_digest(process.index << 1 | process.waits);
    if (process.command->host == settings_.gdb_host && is_command(process))
        stop_in_gdb(process);
    if (!process.spin.is_stopped()) {
        turns_[process.command->host]++;
    } else {
        process.writes = writes(process);
        if (process.spin.is_unchanged())
            return;
        return await(process);
    }
    // The kernel has ended the process meanwhile, for example by a signal of another program.
    if (server_->held(client_of(process)) == nullptr)
        return await(process);
    if (!process.waits) {
        first_of(process).has_called = true;
        coverage.overlapped |=
            is_client(process) && std::ranges::any_of(processes_, [&](const Process &other) {
                return other.number != process.number && other.is_alive && other.has_called &&
                       is_client(other);
            });
        const std::vector<std::byte> request = *server_->held(client_of(process));
        const sim::CallName *const call = name_of_call(fabric(), request);
        process.last_call = call;
        if (call != nullptr)
            coverage.calls.set(static_cast<size_t>(call - sim::call_names().data()));
        uint32_t op;
        memcpy(&op, request.data(), sizeof(op));
        if (op != sim::OP_REQ_NOTIFY && op != sim::OP_TAKE_EVENT) // parts of a wait
            chooser_.add_call();
        if (op == sim::OP_TRANSMIT)
            transmit(process, request);
        else
            execute(process, op, request);
        coverage.add_to_digest(op);
    } else {
        if (!process.is_started)
            add_step(Step::PROCESS, "starts", &process);
        end_wait(process);
        first_of(process).is_listening |= process.wait.kind == sim::Wait::LISTENS;
        server_->release_held(client_of(process));
        if (process.wait.kind == sim::Wait::EXIT)
            return end_thread(process);
    }
    await(process);
    add_output_steps(first_of(process));
}

// Starts gdb at the chosen turn of the program, and waits until it has stopped it.
void Schedule::stop_in_gdb(const Process &process) {
    turns_of_host++;
    if (turn_after_choices == 0 && chooser_.reached == chooser_.choices.size())
        turn_after_choices = turns_of_host;
    if (turns_of_host != stops_at)
        return;
    exploration_.signals.leave_interrupts();
    gdb_ = fork_command(false, -1, -1, [&] {
        execl(settings_.gdb.c_str(), "gdb", "-q", "-p", std::to_string(process.pid).c_str(),
              nullptr);
    });
    constexpr std::string_view NAME = "TracerPid:\t";
    const auto is_traced = [&] {
        const std::string status = read_proc(process.pid, "status");
        const size_t at = status.find(NAME);
        return at != status.npos && status[at + NAME.size()] != '0';
    };
    while (has_gdb() && !is_traced())
        usleep(GDB_INTERVAL);
}

// Returns true while gdb runs, which may stop its program for any time.
bool Schedule::has_gdb() {
    if (gdb_ > 0 && waitpid(gdb_, nullptr, WNOHANG) != 0)
        gdb_ = -1;
    return gdb_ > 0;
}

void Schedule::record_finding(const std::string &what) {
    if (finding.empty())
        finding = what;
}

// Executes a command without syntax of the shell directly, because a shell takes longer than
// many a schedule. A word that is no program is one of the shell.
[[noreturn]] static void execute_check(const std::string &check) {
    std::istringstream text(check);
    std::vector<std::string> words;
    for (std::string word; is_simple_command(check) && text >> word;)
        words.push_back(word);
    std::vector<char *> argv;
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    if (argv[0] != nullptr)
        execvp(argv[0], argv.data());
    execl("/bin/sh", "sh", "-c", check.c_str(), nullptr);
    _exit(127);
}

void Schedule::check() {
    if (settings_.check == "true" || settings_.check == ":")
        return;
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
        execute_check(settings_.check);
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
    exploration_.processor.choose(exploration_.fork_servers);
    for (size_t i = 0; i < settings_.commands.size(); i++)
        start(processes_[i]);
    while (step())
        ;
    while (has_gdb())
        usleep(GDB_INTERVAL);
    if (!finding.empty()) { // the end of the other programs is no part of it
        add_step(Step::FOUND, "FOUND: " + finding);
        trace_.end();
    }
    end_all();
    coverage.weaknesses = fabric().shown();
    coverage.turns = chooser_.turns();
    coverage.threads = processes_.size() + 1; // and the clock
    if (settings_.is_strict)
        for (const std::string &line : Misuses::take_all(exploration_.directory.path()))
            record_finding("misuse: " + line);
    if (exploration_.is_rehearsal)
        return;
    // Flushed data must also survive a power failure after the programs have ended.
    if (const sim::Fault *const fault =
            chooser_.choose(Chooser::POWER, exploration_.power_failures))
        apply(*fault);
    if (finding.empty())
        check();
    if (!finding.empty())
        add_step(Step::FOUND, "FOUND: " + finding);
}
