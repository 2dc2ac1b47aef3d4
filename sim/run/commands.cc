// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// commands.cc -- the processes of the commands: their environment, files, signals and start

#include "sim.hh"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace {

constexpr char NO_MEMORY[] = "rdma-sim: no memory is left to start a program\n";
constexpr int SIGNALS[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
constexpr int WRITE_SIGNALS[] = {SIGPIPE, SIGXFSZ}; // write() returns an error instead

void mask_signals(int how, sigset_t &set) {
    sigemptyset(&set);
    for (const int each : SIGNALS)
        sigaddset(&set, each);
    sigprocmask(how, &set, nullptr);
}

void prepend(const char *name, const std::string &value) {
    const char *const old = getenv(name);
    setenv(name, (old == nullptr || *old == '\0' ? value : value + ":" + old).c_str(), 1);
}

} // namespace

void set_variable(const std::string &name, const std::string &value) {
    for (const char *const prefix : {"RDMA_SIM_", "RPMA_SIM_"})
        setenv((prefix + name).c_str(), value.c_str(), 1);
}

void set_environment(unsigned host, unsigned hosts, const std::string &directory,
                     const Libraries &libraries, const std::string &pmem) {
    const std::string number = std::to_string(host);
    prepend("LD_LIBRARY_PATH", libraries.shims);
    prepend("LD_PRELOAD", libraries.preload);
    // A program with the address sanitizer refuses preloaded libraries otherwise.
    prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
    setenv("RDMA_SIM_PRELOAD", libraries.preload.c_str(), 1);
    unsetenv("RDMA_SIM_LOST");
    setenv("RDMA_SIM_SOCKET", (directory + "/socket").c_str(), 1);
    setenv("RDMA_SIM_ROOT", (directory + "/host" + number).c_str(), 1);
    set_variable("HOST", number);
    set_variable("ADDR", "10.77.0." + number);
    if (!pmem.empty())
        setenv("RDMA_SIM_PMEM", pmem.c_str(), 1);
    for (unsigned i = 1; i <= hosts; i++)
        set_variable("ADDR_host" + std::to_string(i), "10.77.0." + std::to_string(i));
}

Signals::Signals() {
    sigset_t set;
    mask_signals(SIG_BLOCK, set);
    fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0)
        refuse("signalfd: %s", strerror(errno));
    for (const int each : WRITE_SIGNALS)
        signal(each, SIG_IGN);
}

Signals::~Signals() {
    close(fd_);
}

void Signals::leave_interrupts() const {
    sigset_t set;
    mask_signals(SIG_BLOCK, set);
    sigdelset(&set, SIGINT);
    (void)signalfd(fd_, &set, 0);
}

int Signals::received() {
    signalfd_siginfo info;
    while (read(fd_, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SIGCHLD)
            has_child_ = true;
        else if (received_ == 0)
            received_ = static_cast<int>(info.ssi_signo);
    return received_;
}

static rlimit files_before; // of this process

void raise_file_limit() {
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &files_before) != 0)
        throw sim::Failure(std::string("getrlimit: ") + strerror(errno));
    limit = files_before;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        throw sim::Failure(std::string("setrlimit: ") + strerror(errno));
}

pid_t fork_command(bool has_group, int out, int err, const std::function<void()> &function) {
    fflush(nullptr);
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        refuse("fork: %s", strerror(errno));
    if (pid != 0) {
        if (has_group)
            setpgid(pid, pid);
        return pid;
    }
    // No exception may leave the child: it would run the destructors of its parent.
    try {
        sigset_t set;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(EXIT_FAILURE);
        (void)setrlimit(RLIMIT_NOFILE, &files_before); // programs have the user's limit
        if (has_group) { // the terminal's signals are for rdma-sim
            setpgid(0, 0);
            dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
        }
        if (out >= 0) {
            dup2(out, STDOUT_FILENO);
            dup2(err, STDERR_FILENO);
        }
        for (const int each : WRITE_SIGNALS)
            signal(each, SIG_DFL);
        mask_signals(SIG_UNBLOCK, set);
        function();
    } catch (...) {
        (void)!write(STDERR_FILENO, NO_MEMORY, strlen(NO_MEMORY));
    }
    _exit(sim::EXIT_FAILED);
}

void execute(const Command &command) {
    std::vector<char *> argv = command.argv;
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    const int error = errno;
    fprintf(stderr, "rdma-sim: %s: %s\n", printable(argv[0]).c_str(), strerror(error));
    _exit(error == ENOENT ? 127 : 126);
}
