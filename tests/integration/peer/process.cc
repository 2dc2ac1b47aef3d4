// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// process.cc -- commands for forks, other programs, and signals

#include "peer.hh"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Starts an independent side with its own standard streams. Forking twice leaves the new
// process without a parent here, so that the test adopts and reaps it.
void fork_side(const Args &args) {
    static const std::pair<const char *, int> streams[] = {
        {"input", O_RDONLY}, {"output", O_WRONLY}, {"errors", O_WRONLY | O_APPEND}};
    int status = 0;
    const pid_t between = fork();
    require_system(between >= 0, "fork");
    if (between > 0) {
        require_system(waitpid(between, &status, 0) == between && status == 0, "waitpid");
        return;
    }
    for (int stream = 0; stream < 3; stream++) {
        const int fd = open(args.text(streams[stream].first).c_str(), streams[stream].second);
        if (fd < 0 || dup2(fd, stream) < 0 || close(fd) != 0)
            _exit(3);
    }
    if (const pid_t side = fork(); side != 0)
        _exit(side < 0 ? 3 : 0);
    reply("pid", getpid());
}

// Runs another program, which fails if it inherits a descriptor of a device.
void run(const Args &) {
    const int status = system("! ls -l /proc/self/fd | grep infiniband >&2");
    require(WIFEXITED(status) && WEXITSTATUS(status) == 0, ERR_SYSTEM);
}

// The fork support of libibverbs, as reported by ibv_is_fork_initialized().
void fork_status(const Args &) {
    static const char *const names[] = {"disabled", "enabled", "unneeded"};
    reply("fork", names[ibv_is_fork_initialized()]);
}

// The test waits for this line.
void report_signal(int) {
    static const char line[] = "signal\n";
    if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
        _exit(4);
}

void handle_signal(const Args &args) {
    struct sigaction action = {};
    action.sa_handler = report_signal;
    action.sa_flags = args.number<bool>("restart") ? SA_RESTART : 0;
    require_system(sigaction(args.number<int>("signal"), &action, nullptr) == 0, "sigaction");
}

const Commands here{
    {"fork", fork_side},
    // Clears the handles without deleting the objects, which belong to the parent.
    {"forget", [](const Args &) { fixture = {}; }},
    {"run", run},
    {"fork-status", fork_status},
    {"handle-signal", handle_signal},
};

} // namespace
