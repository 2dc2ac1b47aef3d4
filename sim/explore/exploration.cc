// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// exploration.cc -- what all schedules share, and the files that the programs have written

#include "schedule.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <sys/wait.h>

constexpr size_t MAX_LINE = 256; // of a program's output in a finding

bool is_simple_command(const std::string &check) {
    return check.find_first_of(";&|()<>{}$`'\"\\!=*?[#~\n") == check.npos;
}

int open_output(const std::string &path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        refuse("%s: %s", path.c_str(), strerror(errno));
    return fd;
}

std::string first_line(const std::string &path) {
    std::ifstream file(path);
    std::string line(MAX_LINE, '\0');
    file.read(line.data(), MAX_LINE);
    line.resize(static_cast<size_t>(file.gcount()));
    return printable(line.substr(0, line.find('\n')));
}

std::string read_proc(pid_t pid, const char *name) {
    const std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
    std::ostringstream text;
    text << file.rdbuf(); // ignores an error: the process, or its thread, may end now
    return text.str();
}

std::string last_line(const std::string &path, const char *with) {
    std::ifstream file(path);
    std::string last;
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line.find(with) != line.npos)
            last = line;
    return printable(last.substr(0, MAX_LINE));
}

int Exploration::wait_for(pid_t pid) {
    int status = 0;
    pollfd event = {signals.descriptor(), POLLIN, 0};
    while (waitpid(pid, &status, WNOHANG) == 0) {
        poll(&event, 1, -1); // also SIGCHLD
        if (signals.received() != 0) {
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
        }
        check_signals();
    }
    return status;
}

bool Exploration::has_clients() const {
    return std::count(listens.begin() + 1, listens.end(), false) > 1;
}

void Exploration::check_signals() {
    if (const int number = signals.received(); number != 0)
        throw Exit{128 + number, ""};
}

Result result_of(const Schedule &schedule, const Chooser &chooser) {
    return {schedule.finding, schedule.steps(), chooser.choices,  chooser.points,
            schedule.faults,  chooser.reached,  schedule.coverage};
}

Result run_schedule(Exploration &exploration, uint64_t seed, Chooser &&chooser,
                    bool is_traced) {
    Schedule schedule(exploration, seed, chooser, is_traced);
    schedule.run();
    return result_of(schedule, chooser);
}
