// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "fork_server.hh"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits.hh"

namespace {

constexpr unsigned PERIOD = 64;       // schedules
constexpr int FIRST_DESCRIPTOR = 200; // of the program's socket, which no program should see

} // namespace

Processor::Processor() {
    CPU_ZERO(&allowed_);
    (void)sched_getaffinity(0, sizeof(allowed_), &allowed_);
}

void Processor::choose(std::span<const ForkServer> servers) {
    const unsigned number = schedules_++ % PERIOD;
    cpu_set_t set = allowed_;
    if (CPU_COUNT(&allowed_) < 2 || number > 1)
        return;
    if (number == 1) {
        CPU_ZERO(&set);
        CPU_SET(sched_getcpu(), &set);
    }
    (void)sched_setaffinity(0, sizeof(set), &set);
    for (const ForkServer &each : servers)
        each.set_processors(set);
}

void ForkServer::set_processors(const cpu_set_t &set) const {
    if (pid_ > 0)
        (void)sched_setaffinity(pid_, sizeof(set), &set);
}

ForkServer::~ForkServer() {
    end();
}

void ForkServer::end() {
    if (socket_ >= 0)
        close(socket_);
    if (pid_ > 0) {
        kill(-pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    socket_ = pid_ = -1;
}

// A program that does not come as far as this library has ended, or executes another one.
bool ForkServer::has_message(Signals &signals) const {
    pollfd events[] = {{socket_, POLLIN, 0}, {signals.descriptor(), POLLIN, 0}};
    for (int passed = 0; passed < MAX_TURN; passed += MAX_TURN / 100) {
        poll(events, 2, MAX_TURN / 100);
        if (signals.received() != 0 || events[0].revents != 0)
            break;
    }
    return events[0].revents != 0;
}

pid_t ForkServer::fork(int out, int err, Signals &signals,
                       const std::function<void()> &execute) {
    pid_t pid = -1;
    if (state_ == NOT_STARTED) {
        int ends[2];
        state_ = CANNOT_FORK;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
            return -1;
        socket_ = ends[0];
        pid_ = fork_command(true, out, err, [&] {
            const int fd = fcntl(ends[1], F_DUPFD, FIRST_DESCRIPTOR);
            setenv("LIBRDMA_SIM_FORKS", std::to_string(fd).c_str(), 1);
            execute();
        });
        close(ends[1]);
        if (has_message(signals) && recv(socket_, &pid, sizeof(pid), 0) == sizeof(pid))
            state_ = LOADED;
    }
    const char request = 0;
    if (state_ == LOADED &&
        (send(socket_, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request) ||
         !has_message(signals) || recv(socket_, &pid, sizeof(pid), 0) != sizeof(pid)))
        state_ = CANNOT_FORK;
    if (state_ == LOADED && pid > 0) {
        (void)setpgid(pid, pid);
        return pid;
    }
    end();
    state_ = CANNOT_FORK;
    return -1;
}
