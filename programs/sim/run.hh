// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// run.hh -- one run of rpma-sim

#ifndef RPMA_SIM_RUN_HH
#define RPMA_SIM_RUN_HH 1

#include <cstdarg>
#include <cstdio>
#include <deque>
#include <random>

#include "../../sim/verbs/server.hh"
#include "sim.hh"

struct Output {
    int fd;
    unsigned host;
    FILE *stream;
    std::string incomplete_line;
};

struct Child {
    const Command *command;
    pid_t pid;
    bool has_group;
    uint64_t started_at;
    bool is_running = true;
    bool ignores_status = false; // a fault has ended the child
};

class Run {
  public:
    Run(Settings &settings, const Libraries &libraries);
    ~Run();
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;
    int main(); // returns the exit status

  private:
    static uint64_t now() { return sim::Server::clock(); }
    void start(const Command &command);
    void start_next();
    std::string listening_path(const Command &command) const;
    void add_output(unsigned host, FILE *to, int &end);
    void report(const char *format, ...) const __attribute__((format(printf, 2, 3)));
    bool handle_signals();
    void reap();
    void handle_exit(Child &child, int status);
    void read_outputs();
    void step(uint64_t limit);
    void end_commands();
    void kill_all_processes();
    bool is_any_running() const;
    bool is_host_running(unsigned host) const;

    void schedule(const Fault &fault);
    void apply(const Fault &fault);
    template <class Action> void for_each_link(const Fault &fault, Action action);
    void flap(const Fault &fault, bool is_cut);
    void signal_host(unsigned host, int number);
    std::vector<pid_t> processes(const std::string &root) const;
    void power_off(unsigned host);
    void power_on(unsigned host);

    Settings &settings_;
    const Libraries &libraries_;
    Directory directory_;
    Signals signals_;
    sim::PmemFiles pmem_;
    sim::Server server_;
    const uint64_t started_at_ = now();
    std::mt19937_64 generator_;
    std::deque<Child> children_;
    std::vector<Output> outputs_;
    size_t started_ = 0; // how many commands have started
    int status_ = 0;
    unsigned pending_faults_ = 0; // faults that still occur after all commands have ended
    bool is_finished_ = false;
};

#endif // RPMA_SIM_RUN_HH
