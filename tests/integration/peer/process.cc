// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// process.cc -- commands for forks, other programs, and signals

#include "peer.hh"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <infiniband/verbs.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// The child is a side of its own: it takes commands from input and answers them to output.
void fork_side(const Args &args) {
    const pid_t pid = fork();
    must_system(pid >= 0, "fork");
    if (pid == 0 && (freopen(args.text("input").c_str(), "r", stdin) == nullptr ||
                     freopen(args.text("output").c_str(), "w", stdout) == nullptr))
        _exit(3);
    reply("pid", pid == 0 ? getpid() : pid);
}

void reply_status(int status) {
    reply("status", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    reply("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

void reap(pid_t pid) {
    int status = 0;
    must_system(pid >= 0 && waitpid(pid, &status, 0) == pid, "waitpid");
    reply_status(status);
}

// Runs another program in the given way: it fails if it inherits a descriptor of a device.
void run(const Args &args) {
    static char script[] = "! ls -l /proc/self/fd | grep infiniband >&2", shell[] = "/bin/sh",
                option[] = "-c";
    static char *const look[] = {shell, option, script, nullptr};
    const std::string &how = args.text("how");
    pid_t pid = 0;
    if (how == "system") {
        reply_status(system(script));
        return;
    }
    if (how == "posix_spawn") {
        must_system(posix_spawn(&pid, look[0], nullptr, nullptr, look, environ) == 0, "spawn");
    } else {
        pid = how == "vfork" ? vfork() : fork();
        if (pid == 0) {
            execv(look[0], look);
            _exit(127);
        }
    }
    reap(pid);
}

// The measures that libibverbs takes for forks, as ibv_is_fork_initialized() says.
void fork_status(const Args &) {
    static const char *const names[] = {"disabled", "enabled", "unneeded"};
    reply("fork", names[ibv_is_fork_initialized()]);
}

volatile sig_atomic_t stop;

// The test reads this line to know that the signal has arrived.
void say_signal(int) {
    static const char said[] = "signal\n";
    stop = 1;
    if (write(STDERR_FILENO, said, sizeof(said) - 1) < 0)
        _exit(4);
}

void handle_signal(const Args &args) {
    struct sigaction action = {};
    action.sa_handler = say_signal;
    action.sa_flags = args.number<bool>("restart") ? SA_RESTART : 0;
    must_system(sigaction(args.number<int>("signal"), &action, nullptr) == 0, "sigaction");
}

// A typical server: it rejects clients until a signal stops it.
void refuse_all(const Args &) {
    uint64_t refused = 0;
    stop = 0;
    while (!stop) {
        ScopedReq req;
        refused += rpma_ep_next_conn_req(world.ep, nullptr, &req.it) == 0;
    }
    reply("refused", refused);
}

const Commands here{
    {"fork", fork_side},
    {"reap", [](const Args &args) { reap(args.number<pid_t>("pid")); }},
    // Forgets the objects of the parent without deleting them: they are still the parent's.
    {"forget", [](const Args &) { world = {}; }},
    {"run", run},
    {"fork-status", fork_status},
    {"handle-signal", handle_signal},
    {"refuse-all", refuse_all},
};

} // namespace
