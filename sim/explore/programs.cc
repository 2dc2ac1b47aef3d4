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
#include <poll.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Milliseconds of real time.
constexpr int MAX_TURN = 10'000, FIRST_CHECK = 2;

std::string describe(int status) {
    return WIFSIGNALED(status)
               ? std::string("is ended by signal ") + std::to_string(WTERMSIG(status)) + " (" +
                     strsignal(WTERMSIG(status)) + ")"
               : "ends with status " + std::to_string(WEXITSTATUS(status));
}

} // namespace

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

// Waits until the process has sent a request, has ended, or waits in a loop for memory.
void Schedule::await(Process &process) {
    pollfd events[] = {{server_->descriptor(), POLLIN, 0},
                       {process.pidfd, POLLIN, 0},
                       {exploration_.signals.descriptor(), POLLIN, 0}};
    for (int passed = 0, timeout = FIRST_CHECK; server_->held(process.pid) == nullptr;) {
        const int count = poll(events, std::size(events), timeout);
        exploration_.check_signals();
        if (count == 0 && is_spinning(process))
            return;
        if (count == 0) {
            passed += timeout;
            timeout = std::min(2 * timeout, MAX_TURN - passed);
        }
        if (passed >= MAX_TURN)
            return record_finding(process.name +
                                  " makes no call for 10 s: it computes, or waits for "
                                  "something that explore does not control");
        server_->step(0);
        if (events[1].revents != 0)
            return handle_exit(process);
    }
    read_request(process);
}

// A program that computes continues, so that real time has no effect on the schedule.
bool Schedule::is_spinning(Process &process) {
    if (!process.spin.stop(process.pid))
        return false;
    process.waits = true;
    process.wait = {};
    process.wait.kind = sim::Wait::MEMORY;
    process.wait.until = NEVER;
    strcpy(process.wait.function, "a loop that reads memory");
    process.writes = server_->writes(process.pid);
    return true;
}

bool Schedule::has_new_writes(const Process &process) const {
    return process.writes != server_->writes(process.pid);
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
        server_->step(UINT64_MAX); // closes its connections
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
    process.spin.release();
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
