// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// processes.cc -- for "rdma-sim explore": child processes are scheduled as threads are, and
// their numbers are the same in each run

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.hh"

namespace {

using namespace control;

// No process of the system has such a number: a function that is not replaced fails.
constexpr pid_t FIRST_PID = 5'000'000;

pid_t own_pid() {
    return static_cast<pid_t>(REAL(syscall)(SYS_getpid));
}

// Returns the number itself if it is none of a schedule.
pid_t real_pid(pid_t pid) {
    const volatile sim::VirtualClock &clock = shared();
    const pid_t number = pid - FIRST_PID;
    return number >= 0 && static_cast<uint32_t>(number) < clock.processes ? clock.pids[number]
                                                                          : pid;
}

// The newest process has a number that the kernel has used again.
pid_t virtual_pid(pid_t pid) {
    const volatile sim::VirtualClock &clock = shared();
    for (uint32_t i = clock.processes; i-- > 0;)
        if (clock.pids[i] == pid)
            return FIRST_PID + static_cast<pid_t>(i);
    return pid;
}

// Returns the child's number after its first request.
pid_t created(pid_t pid, const char *function) {
    set_has_threads(); // of another process
    add_process(pid);
    wait_for_turn(Wait::FORKED, NEVER, function, static_cast<uint64_t>(pid));
    return virtual_pid(pid);
}

// Calls the function, which does not wait, until it has a result.
template <class Result, class Try>
Result wait_for_child(int options, const char *function, Try try_once) {
    for (;;) {
        const Result result = try_once();
        if (result != 0)
            return result;
        const unsigned before = handled_signals();
        if ((options & WNOHANG) != 0) { // a loop of such calls waits, too
            wait_for_turn(Wait::POLL, NEVER, function);
            return try_once();
        }
        wait_for_turn(Wait::EVENT, NEVER, function);
        if (is_interrupted(before)) {
            errno = EINTR;
            return -1;
        }
    }
}

pid_t wait_for_pid(pid_t pid, int *status, int options, rusage *usage, const char *function) {
    const pid_t in_kernel = pid < -1 ? -real_pid(-pid) : real_pid(pid);
    const auto result = wait_for_child<pid_t>(options, function, [&] {
        return static_cast<pid_t>(
            REAL(syscall)(SYS_wait4, in_kernel, status, options | WNOHANG, usage));
    });
    return result > 0 ? virtual_pid(result) : result;
}

// The child connects to the fabric.
pid_t fork_uncontrolled() {
    const Uncontrolled part;
    const pid_t pid = REAL(fork)();
    if (pid == 0) {
        forget_timers();
        OpenDescriptor::close_all();
        wait_for_turn(Wait::START, NEVER, "its start");
        catch_direct_calls();
    }
    return pid;
}

// Executes a command of the shell; returns 0 or an error number.
int spawn_shell(pid_t &pid, const char *command,
                const posix_spawn_file_actions_t *actions = nullptr) {
    const char *const argv[] = {"sh", "-c", command, nullptr};
    return posix_spawn(&pid, "/bin/sh", actions, nullptr, const_cast<char **>(argv), environ);
}

// A stream of popen().
struct Stream {
    FILE *file;
    pid_t pid;
    Stream *next;
};
Stream *streams;

} // namespace

void control::number_sender(siginfo_t &info) {
    if (info.si_signo == SIGCHLD || info.si_code == SI_USER || info.si_code == SI_QUEUE ||
        info.si_code == SI_TKILL)
        info.si_pid = virtual_pid(info.si_pid);
}

void control::add_process(pid_t pid) {
    volatile sim::VirtualClock &clock = shared();
    if (clock.processes > 0 && virtual_pid(pid) != pid) // exec() keeps the number
        return;
    if (clock.processes == sim::VirtualClock::PROCESSES)
        refuse("fork() more than 1,000 times");
    clock.pids[clock.processes] = pid;
    clock.processes = clock.processes + 1;
}

// ---- end -----------------------------------------------------------------------------------

// Other threads run until the process has ended.
static void end_process(const char *function) {
    if (is_on() && has_threads())
        wait_for_turn(Wait::ENDS, NEVER, function);
}
// Called by exit() and at the end of main(), after the destructors of the program.
__attribute__((destructor)) static void end() {
    end_process("exit");
}
EXPORTED void _exit(int status) {
    end_process("_exit");
    REAL(_exit)(status);
    __builtin_unreachable();
}
EXPORTED void _Exit(int status) noexcept {
    _exit(status);
}
EXPORTED void quick_exit(int status) noexcept {
    end_process("quick_exit");
    REAL(quick_exit)(status);
    __builtin_unreachable();
}

// ---- numbers -------------------------------------------------------------------------------

EXPORTED pid_t getpid() noexcept {
    return is_on() ? virtual_pid(own_pid()) : own_pid();
}
EXPORTED pid_t getppid() noexcept {
    const pid_t in_kernel = REAL(getppid)();
    const pid_t pid = is_on() ? virtual_pid(in_kernel) : in_kernel;
    return is_on() && pid == in_kernel ? 1 : pid; // rdma-sim
}

// ---- creation ------------------------------------------------------------------------------

EXPORTED pid_t fork() noexcept {
    if (!is_on())
        return REAL(fork)();
    yield_before("fork");
    const pid_t pid = fork_uncontrolled();
    return pid > 0 ? created(pid, "fork") : pid;
}
// The child has a copy of the memory, which POSIX permits.
EXPORTED pid_t vfork() noexcept {
    return fork();
}
EXPORTED pid_t _Fork() noexcept {
    return fork();
}

EXPORTED int daemon(int keeps_directory, int keeps_streams) noexcept {
    if (!is_on())
        return REAL(daemon)(keeps_directory, keeps_streams);
    const pid_t pid = fork();
    if (pid > 0)
        _exit(EXIT_SUCCESS);
    if (pid < 0 || setsid() < 0)
        return -1;
    if (keeps_directory == 0)
        (void)!chdir("/");
    const int fd = keeps_streams == 0 ? open("/dev/null", O_RDWR) : -1;
    for (int stream = STDIN_FILENO; fd >= 0 && stream <= STDERR_FILENO; stream++)
        (void)dup2(fd, stream);
    if (fd > STDERR_FILENO)
        close(fd);
    return 0;
}

EXPORTED int clone(int (*function)(void *), void *stack, int flags, void *argument,
                   ...) noexcept {
    if (!is_on()) {
        va_list list;
        va_start(list, argument);
        auto *const parent = va_arg(list, pid_t *);
        auto *const area = va_arg(list, void *);
        auto *const child = va_arg(list, pid_t *);
        va_end(list);
        return REAL(clone)(function, stack, flags, argument, parent, area, child);
    }
    if ((flags & ~CSIGNAL) != 0)
        refuse("clone() with flags");
    const pid_t pid = fork();
    if (pid == 0)
        _exit(function(argument));
    return pid;
}

#define SPAWN(name)                                                                            \
    EXPORTED int name(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, \
                      const posix_spawnattr_t *attr, char *const argv[],                       \
                      char *const environment[]) {                                             \
        pid_t child;                                                                           \
        int error;                                                                             \
        {                                                                                      \
            const RealCounter real_counter;                                                    \
            error = REAL(name)(&child, file, actions, attr, argv, environment);                \
        }                                                                                      \
        if (error == 0 && is_on())                                                             \
            child = created(child, #name);                                                     \
        if (error == 0 && pid != nullptr)                                                      \
            *pid = child;                                                                      \
        return error;                                                                          \
    }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)

EXPORTED int system(const char *command) {
    int status = 0;
    pid_t pid;
    if (!is_on())
        return REAL(system)(command);
    if (command == nullptr)
        return 1;
    if (const int error = spawn_shell(pid, command)) {
        errno = error;
        return -1;
    }
    while (wait_for_pid(pid, &status, 0, nullptr, "system") < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

EXPORTED FILE *popen(const char *command, const char *mode) {
    int ends[2];
    const bool reads = mode[0] == 'r';
    posix_spawn_file_actions_t actions;
    if (!is_on())
        return REAL(popen)(command, mode);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return nullptr;
    auto *const stream = static_cast<Stream *>(malloc(sizeof(Stream)));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[reads],
                                     reads ? STDOUT_FILENO : STDIN_FILENO);
    const int error = stream == nullptr ? ENOMEM : spawn_shell(stream->pid, command, &actions);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[reads]);
    if (error == 0) {
        stream->file = open_stream(ends[!reads], mode);
        stream->next = streams;
        streams = stream;
        return stream->file;
    }
    close(ends[!reads]);
    free(stream);
    errno = error;
    return nullptr;
}
EXPORTED int pclose(FILE *file) {
    int status = -1;
    Stream **at = &streams;
    while (*at != nullptr && (*at)->file != file)
        at = &(*at)->next;
    Stream *const stream = *at;
    if (stream == nullptr)
        return REAL(pclose)(file);
    *at = stream->next;
    fclose(file);
    while (wait_for_pid(stream->pid, &status, 0, nullptr, "pclose") < 0 && errno == EINTR)
        ;
    free(stream);
    return status;
}

// ---- waiting -------------------------------------------------------------------------------

EXPORTED pid_t waitpid(pid_t pid, int *status, int options) {
    return is_on() ? wait_for_pid(pid, status, options, nullptr, "waitpid")
                   : REAL(waitpid)(pid, status, options);
}
EXPORTED pid_t wait(int *status) {
    return is_on() ? wait_for_pid(-1, status, 0, nullptr, "wait") : REAL(wait)(status);
}
EXPORTED pid_t wait3(int *status, int options, rusage *usage) noexcept {
    return is_on() ? wait_for_pid(-1, status, options, usage, "wait3")
                   : REAL(wait3)(status, options, usage);
}
EXPORTED pid_t wait4(pid_t pid, int *status, int options, rusage *usage) noexcept {
    return is_on() ? wait_for_pid(pid, status, options, usage, "wait4")
                   : REAL(wait4)(pid, status, options, usage);
}
EXPORTED int waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    siginfo_t own;
    siginfo_t *const to = info == nullptr ? &own : info;
    if (!is_on())
        return REAL(waitid)(type, id, info, options);
    if (type == P_PID || type == P_PGID)
        id = static_cast<id_t>(real_pid(static_cast<pid_t>(id)));
    const int result = wait_for_child<int>(options, "waitid", [&] {
        to->si_pid = 0;
        const int error = REAL(waitid)(type, id, to, options | WNOHANG);
        return error != 0 ? error : to->si_pid != 0;
    });
    if (result > 0)
        number_sender(*to);
    return result > 0 ? 0 : result;
}

// ---- signals to processes ------------------------------------------------------------------

// rdma-sim would wait for a stopped process.
static void refuse_stop(int number) {
    if (number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU)
        refuse("kill(SIGSTOP)");
}
// `send`: the function of the system, which returns 0 if it has sent the signal.
template <class Send> static auto send_signal(int number, const char *function, Send send) {
    if (!is_on())
        return send();
    refuse_stop(number);
    yield_before(function);
    const auto result = send();
    if (result == 0)
        signal_sent(number, function);
    return result;
}
EXPORTED int kill(pid_t pid, int number) noexcept {
    if (!is_on())
        return REAL(kill)(pid, number);
    refuse_stop(number);
    const pid_t in_kernel = pid < -1 ? -real_pid(-pid) : real_pid(pid);
    if (in_kernel != own_pid() && number != 0)
        yield_before("kill");
    const int result = REAL(kill)(in_kernel, number);
    if (result == 0)
        signal_sent(number, "kill");
    return result;
}
EXPORTED int killpg(pid_t group, int number) noexcept {
    return kill(group == 0 ? 0 : -group, number);
}
EXPORTED int sigqueue(pid_t pid, int number, sigval value) noexcept {
    return send_signal(number, "sigqueue", [&] {
        return REAL(sigqueue)(is_on() ? real_pid(pid) : pid, number, value);
    });
}
EXPORTED int raise(int number) noexcept {
    if (is_on())
        refuse_stop(number);
    return REAL(raise)(number);
}
EXPORTED int pthread_kill(pthread_t thread, int number) noexcept {
    return send_signal(number, "pthread_kill",
                       [&] { return REAL(pthread_kill)(thread, number); });
}
EXPORTED int pthread_sigqueue(pthread_t thread, int number, sigval value) noexcept {
    return send_signal(number, "pthread_sigqueue",
                       [&] { return REAL(pthread_sigqueue)(thread, number, value); });
}
EXPORTED int tgkill(pid_t pid, pid_t thread, int number) {
    if (!is_on())
        return REAL(tgkill)(pid, thread, number);
    if (thread == gettid())
        return raise(number);
    refuse("tgkill() for another thread");
}
EXPORTED int pidfd_open(pid_t pid, unsigned flags) noexcept {
    return static_cast<int>(
        REAL(syscall)(SYS_pidfd_open, is_on() ? real_pid(pid) : pid, flags));
}
EXPORTED int pidfd_send_signal(int fd, int number, siginfo_t *info, unsigned flags) noexcept {
    return static_cast<int>(send_signal(number, "pidfd_send_signal", [&] {
        return REAL(syscall)(SYS_pidfd_send_signal, fd, number, info, flags);
    }));
}
EXPORTED pid_t getpgid(pid_t pid) noexcept {
    const pid_t group = REAL(getpgid)(is_on() ? real_pid(pid) : pid);
    return is_on() ? virtual_pid(group) : group;
}
EXPORTED pid_t getpgrp() noexcept {
    return getpgid(0);
}
EXPORTED int setpgid(pid_t pid, pid_t group) noexcept {
    return is_on() ? REAL(setpgid)(real_pid(pid), real_pid(group)) : REAL(setpgid)(pid, group);
}
EXPORTED pid_t setsid() noexcept {
    const pid_t session = REAL(setsid)();
    return is_on() && session > 0 ? virtual_pid(session) : session;
}
