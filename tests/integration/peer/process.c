// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// process.c -- commands for forks, other programs, the process' user and signals

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

/* The child is a side of its own: it takes commands from input and answers them to output. */
static int do_fork(const struct args *args) {
    pid_t pid = fork();
    if (pid < 0)
        return ERR_SYSTEM;
    if (pid == 0 && (freopen(arg_text(args, "input"), "r", stdin) == NULL ||
                     freopen(arg_text(args, "output"), "w", stdout) == NULL))
        _exit(3);
    reply("pid=%d", pid == 0 ? getpid() : pid);
    return 0;
}

static int wait_for(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid)
        return ERR_SYSTEM;
    reply("status=%d signal=%d", WEXITSTATUS(status),
          WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return 0;
}

static int do_reap(const struct args *args) {
    return wait_for((pid_t)arg_number(args, "pid"));
}

/* Forgets the objects of the parent without deleting them: they are still the parent's. */
static int do_forget(const struct args *args) {
    (void)args;
    world = (struct world){.epoll_fd = -1};
    return 0;
}

/* Another program: it fails if it inherits a descriptor of a device. */
static char *const look[] = {"/bin/sh", "-c", "! ls -l /proc/self/fd | grep infiniband >&2",
                             NULL};

static int look_after(pid_t pid) {
    if (pid == 0) {
        execv(look[0], look);
        _exit(127);
    }
    return pid < 0 ? ERR_SYSTEM : wait_for(pid);
}

/* Runs that program in the given way. */
static int do_run(const struct args *args) {
    const char *how = arg_text(args, "how");
    pid_t pid = 0;
    if (strcmp(how, "fork") == 0)
        return look_after(fork());
    if (strcmp(how, "vfork") == 0)
        return look_after(vfork());
    if (strcmp(how, "posix_spawn") == 0)
        return posix_spawn(&pid, look[0], NULL, NULL, look, environ) != 0 ? ERR_SYSTEM
                                                                          : wait_for(pid);
    if (strcmp(how, "system") != 0)
        bad_script("run: no way '%s'", how);
    int status = system(look[2]);
    reply("status=%d signal=0", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return status < 0 ? ERR_SYSTEM : 0;
}

/* The measures that libibverbs takes for forks, as ibv_is_fork_initialized() says. */
static int do_fork_status(const struct args *args) {
    static const char *const names[] = {"disabled", "enabled", "unneeded"};
    if (arg_number_or(args, "init", 0) != 0)
        reply("init=%d", ibv_fork_init());
    reply("fork=%s", names[ibv_is_fork_initialized()]);
    return 0;
}

static int do_set_user(const struct args *args) {
    return setuid((uid_t)arg_number(args, "user")) == 0 ? 0 : ERR_SYSTEM;
}

static volatile sig_atomic_t stop;

/* The test reads this line to know that the signal has arrived. */
static void say_signal(int number) {
    static const char said[] = "signal\n";
    (void)number;
    stop = 1;
    if (write(STDERR_FILENO, said, sizeof(said) - 1) < 0)
        _exit(4);
}

static int do_handle_signal(const struct args *args) {
    struct sigaction action = {.sa_handler = say_signal};
    sigemptyset(&action.sa_mask);
    action.sa_flags = arg_number(args, "restart") != 0 ? SA_RESTART : 0;
    return sigaction((int)arg_number(args, "signal"), &action, NULL) == 0 ? 0 : ERR_SYSTEM;
}

/* A typical server: it rejects clients until a signal stops it. */
static int do_refuse_all(const struct args *args) {
    uint64_t refused = 0;
    (void)args;
    stop = 0;
    while (!stop) {
        struct rpma_conn_req *req = NULL;
        if (rpma_ep_next_conn_req(world.ep, NULL, &req) == 0)
            refused += rpma_conn_req_delete(&req) == 0;
    }
    reply("refused=%llu", (unsigned long long)refused);
    return 0;
}

const struct command process_commands[] = {
    {"fork", do_fork},
    {"reap", do_reap},
    {"forget", do_forget},
    {"run", do_run},
    {"fork-status", do_fork_status},
    {"set-user", do_set_user},
    {"handle-signal", do_handle_signal},
    {"refuse-all", do_refuse_all},
    {NULL, NULL},
};
