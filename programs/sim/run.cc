// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// run.cc -- starts the commands, serves their requests, applies faults, and ends all processes

#include "run.hh"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr uint64_t SECOND = 1'000'000'000;
constexpr uint64_t TERMINATION_TIMEOUT = SECOND; // from SIGTERM to SIGKILL
constexpr uint64_t LISTEN_TIMEOUT = SECOND;      // then the next command starts
constexpr uint64_t LISTEN_INTERVAL = 2'000'000;
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

// Prints the complete lines of the output.
void print_lines(Output &output, bool is_last) {
    size_t end;
    while ((end = output.incomplete_line.find('\n')) != output.incomplete_line.npos ||
           (is_last && !output.incomplete_line.empty())) {
        end = std::min(end, output.incomplete_line.size());
        fprintf(output.stream, "host%u: %.*s\n", output.host, static_cast<int>(end),
                output.incomplete_line.c_str());
        output.incomplete_line.erase(0, end + 1);
    }
    fflush(output.stream);
}

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

void set_environment(unsigned host, unsigned hosts, const std::string &directory,
                     const Libraries &libraries, const std::string &pmem) {
    const std::string number = std::to_string(host);
    prepend("LD_LIBRARY_PATH", libraries.shims);
    prepend("LD_PRELOAD", libraries.preload);
    setenv("RPMA_SIM_SOCKET", (directory + "/socket").c_str(), 1);
    setenv("RPMA_SIM_ROOT", (directory + "/host" + number).c_str(), 1);
    setenv("RPMA_SIM_HOST", number.c_str(), 1);
    setenv("RPMA_SIM_ADDR", ("10.77.0." + number).c_str(), 1);
    if (!pmem.empty())
        setenv("RPMA_SIM_PMEM", pmem.c_str(), 1);
    for (unsigned i = 1; i <= hosts; i++)
        setenv(("RPMA_SIM_ADDR_host" + std::to_string(i)).c_str(),
               ("10.77.0." + std::to_string(i)).c_str(), 1);
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

int Signals::received() {
    signalfd_siginfo info;
    while (read(fd_, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo != SIGCHLD && received_ == 0)
            received_ = static_cast<int>(info.ssi_signo);
    return received_;
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
    [&]() noexcept {
        sigset_t set;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(EXIT_FAILURE);
        if (has_group) { // the terminal's signals are for rpma-sim
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
    }();
    _exit(EXIT_FAILURE);
}

void execute(const Command &command) {
    std::vector<char *> argv = command.argv;
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    fprintf(stderr, "rpma-sim: %s: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

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
      server_(settings.fabric, &pmem_, settings.uses_threads),
      generator_(settings.fabric.seed) {
    open_pmem(settings, pmem_);
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
    va_start(arguments, format);
    fprintf(stderr, "rpma-sim: %.3f s: ", static_cast<double>(now() - started_at_) / SECOND);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
}

// Creates a pipe, whose lines are printed with the host. `end` is its write end.
void Run::add_output(unsigned host, FILE *to, int &end) {
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        refuse("pipe: %s", strerror(errno));
    fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
    end = pipe_ends[1];
    outputs_.push_back({pipe_ends[0], host, to, ""});
}

void Run::start(const Command &command) {
    int out = -1, err = -1;
    if (settings_.prefixes) {
        add_output(command.host, stdout, out);
        add_output(command.host, stderr, err);
    }
    // A single command keeps the terminal, because it may be a shell.
    const bool is_alone = settings_.commands.size() == 1;
    const pid_t pid = fork_command(!is_alone, out, err, [&] {
        set_environment(command.host, settings_.fabric.hosts, directory_.path(), libraries_,
                        pmem_.ids(command.host));
        setenv("RPMA_SIM_LISTENING", listening_path(command).c_str(), 1);
        execute(command);
    });
    if (out >= 0) {
        close(out);
        close(err);
    }
    report("host%u starts %s (process %d)", command.host, command.argv[0], pid);
    children_.push_back({&command, pid, !is_alone, now()});
}

std::string Run::listening_path(const Command &command) const {
    return directory_.path() + "/listening" +
           std::to_string(&command - settings_.commands.data());
}

// A command starts when the previous one listens or has ended: a client needs its server.
void Run::start_next() {
    while (started_ < settings_.commands.size()) {
        if (started_ > 0 && !settings_.starts_together) {
            const Child &before = children_.back();
            if (before.is_running && now() < before.started_at + LISTEN_TIMEOUT &&
                access(listening_path(*before.command).c_str(), F_OK) != 0)
                return;
        }
        start(settings_.commands[started_++]);
    }
}

void Run::schedule(const Fault &fault) {
    const bool keeps_running = fault.after != 0 || fault.action == "power-on";
    pending_faults_ += keeps_running;
    server_.fabric().at(now() + fault.time, [this, &fault, keeps_running] {
        pending_faults_ -= keeps_running;
        apply(fault);
    });
}

// Returns the processes whose environment names this directory of the fabric, including those
// that joined the fabric or left their process group.
std::vector<pid_t> Run::processes(const std::string &root) const {
    const std::string variable = "RPMA_SIM_ROOT=" + directory_.path() + "/" + root;
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
        kill(child.has_group ? -child.pid : child.pid, number);
    }
    for (const pid_t pid : processes("host" + std::to_string(host)))
        kill(pid, number);
}

// Calls the action for the link of a host to another one, or for its links to all others.
template <class Action> void Run::for_each_link(const Fault &fault, Action action) {
    if (fault.hosts.size() == 2)
        action(fault.hosts[0], fault.hosts[1]);
    else
        for (unsigned other = 1; other <= settings_.fabric.hosts; other++)
            if (other != fault.hosts[0])
                action(fault.hosts[0], other);
}

void Run::flap(const Fault &fault, bool is_cut) {
    for_each_link(fault, [&](unsigned host, unsigned other) {
        server_.fabric().cut(host, other, is_cut);
    });
    server_.fabric().at(now() + fault.number, [this, &fault, is_cut] { flap(fault, !is_cut); });
}

void Run::power_off(unsigned host) {
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
    const uint64_t lost =
        pmem_.lose_power(host, settings_.loses_at_random ? &generator_ : nullptr);
    report("host%u lost power, and %llu words of its files", host,
           static_cast<unsigned long long>(lost));
}

void Run::power_on(unsigned host) {
    server_.fabric().set_power(host, true);
    for (const Command &command : settings_.commands)
        if (command.host == host)
            start(command);
}

void Run::apply(const Fault &fault) {
    sim::Fabric &fabric = server_.fabric();
    const unsigned host = fault.hosts[0];
    report("fault: %s host%u", fault.action.c_str(), host);
    const std::string_view action = fault.action;
    if (action == "cut" || action == "join")
        for_each_link(fault, [&](unsigned one, unsigned other) {
            fabric.cut(one, other, action == "cut");
        });
    else if (action == "flap")
        flap(fault, true);
    else if (action == "delay")
        for_each_link(fault, [&](unsigned one, unsigned other) {
            fabric.set_delay(one, other, fault.number);
        });
    else if (action == "port-down" || action == "port-up")
        fabric.set_port(host, 0, action == "port-up");
    else if (action == "kill")
        signal_host(host, SIGKILL);
    else if (action == "freeze" || action == "thaw")
        signal_host(host, action == "freeze" ? SIGSTOP : SIGCONT);
    else if (action == "power-off")
        power_off(host);
    else if (action == "power-on")
        power_on(host);
    else if (action == "refuse")
        fabric.refuse_post(host, static_cast<unsigned>(fault.number), fault.error);
    else if (action == "doorbell")
        fabric.refuse_post(host, 0, fault.error);
    else if (action == "overrun")
        fabric.overrun_cqs(host);
    else if (action == "event")
        fabric.raise_async(host, 0, fault.event);
    else if (action == "addr-change")
        fabric.change_address(host, 0);
    else if (action == "remove")
        fabric.remove_device(host, 0);
}

void Run::handle_exit(Child &child, int status) {
    child.is_running = false;
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    report("host%u: %s ended with status %d", child.command->host, child.command->argv[0],
           code);
    if (code != 0 && !child.ignores_status && status_ == 0)
        status_ = code;
    if (settings_.until == Until::FIRST)
        is_finished_ = true;
    if (!is_host_running(child.command->host)) {
        is_finished_ = is_finished_ || (settings_.until == Until::HOST &&
                                        settings_.until_host == child.command->host);
        for (const Fault &fault : settings_.faults)
            if (fault.after == child.command->host)
                schedule(fault);
    }
}

bool Run::is_host_running(unsigned host) const {
    return std::any_of(children_.begin(), children_.end(), [&](const Child &child) {
        return child.is_running && child.command->host == host;
    });
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
    if (const int number = signals_.received(); number != 0) {
        status_ = 128 + number;
        return false;
    }
    reap();
    return true;
}

void Run::read_outputs() {
    char part[4096];
    for (size_t i = 0; i < outputs_.size();) {
        Output &output = outputs_[i];
        ssize_t length;
        while ((length = read(output.fd, part, sizeof(part))) > 0)
            output.incomplete_line.append(part, static_cast<size_t>(length));
        const bool is_last = length == 0;
        print_lines(output, is_last);
        if (is_last)
            close(output.fd);
        if (is_last)
            outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(i));
        else
            i++;
    }
}

// Waits for an event, at most `limit` nanoseconds.
void Run::step(uint64_t limit) {
    std::vector<pollfd> events = {{server_.descriptor(), POLLIN, 0},
                                  {signals_.descriptor(), POLLIN, 0}};
    for (const Output &output : outputs_)
        events.push_back({output.fd, POLLIN, 0});
    const uint64_t timer = server_.fabric().next_timer(), time_now = now();
    const uint64_t wait = std::min(limit, timer > time_now ? timer - time_now : 0);
    const timespec time = {static_cast<time_t>(wait / SECOND),
                           static_cast<long>(wait % SECOND)};
    ppoll(events.data(), events.size(), wait == UINT64_MAX ? nullptr : &time, nullptr);
    server_.step(0);
    read_outputs();
}

// Servers get a second to end.
void Run::end_commands() {
    const uint64_t limit = now() + TERMINATION_TIMEOUT;
    for (Child &child : children_) {
        child.ignores_status = true;
        if (child.is_running)
            kill(child.has_group ? -child.pid : child.pid, SIGTERM);
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
            kill(pid, SIGKILL);
        usleep(1000);
    }
    for (const pid_t pid : processes(""))
        kill_and_wait(pid);
    read_outputs();
}

int Run::main() {
    for (const Fault &fault : settings_.faults)
        if (fault.after == 0)
            schedule(fault);
    while (handle_signals()) {
        start_next();
        if (is_finished_ && pending_faults_ == 0) {
            end_commands();
            break;
        }
        // A fabric without commands does not end: it serves programs that join it.
        if (!is_any_running() && pending_faults_ == 0 && !settings_.commands.empty())
            break;
        step(started_ < settings_.commands.size() ? LISTEN_INTERVAL : UINT64_MAX);
    }
    report("data was moved %s",
           server_.memory_threads() > 0 ? "by threads of the programs" : "directly");
    return status_;
}
