// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// run.hh -- one run of rpma-sim

#ifndef RPMA_SIM_RUN_HH
#define RPMA_SIM_RUN_HH 1

#include <cstdarg>
#include <cstdio>
#include <deque>
#include <random>

#include "../server/server.hh"
#include "output.hh"
#include "sim.hh"

struct Child {
    const Command *command;
    pid_t pid;
    bool has_group;
    uint64_t started_at;
    bool is_running = true;
    bool ignores_status = false; // a fault has ended the child
    int status = 0;
};

class Run {
  public:
    Run(Settings &settings, const Libraries &libraries);
    ~Run();
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;
    int main(); // returns the exit status

    // For the actions of faults.
    sim::Fabric &fabric() { return server_.fabric(); }
    // Calls the function for the link of a host to another one, or for its links to all others.
    template <class Function> void for_each_link(const Fault &fault, Function function) {
        if (fault.hosts.size() == 2)
            return function(fault.hosts[0], fault.hosts[1]);
        for (unsigned other = 1; other <= settings_.fabric.hosts; other++)
            if (other != fault.hosts[0])
                function(fault.hosts[0], other);
    }
    void signal_host(unsigned host, int number);
    void power_off(unsigned host);
    void power_on(unsigned host);

  private:
    static uint64_t now() { return sim::Server::clock(); }
    void start(const Command &command);
    void start_next();
    std::string listening_path(const Command &command) const;
    void report(const char *format, ...) const __attribute__((format(printf, 2, 3)));
    bool handle_signals();
    void reap();
    void handle_exit(Child &child, int status);
    void step(uint64_t limit);
    void serve();
    void write_outputs();
    void end_commands();
    void kill_all_processes();
    bool is_any_running() const;
    bool is_host_running(unsigned host) const;
    bool is_finished() const;
    uint64_t idle_limit() const;
    const Child &last_child_of(const Command &command) const;
    static bool keeps_running(const Fault &fault);
    void schedule(const Fault &fault);
    void apply_due_faults();
    std::vector<pid_t> processes(const std::string &root) const;

    Settings &settings_;
    const Libraries &libraries_;
    Directory directory_;
    Signals signals_;
    sim::PmemFiles pmem_;
    sim::Server server_;
    const uint64_t started_at_ = now();
    std::mt19937_64 generator_;
    std::deque<Child> children_;
    PrefixedOutput outputs_;
    size_t started_ = 0;                      // how many commands have started
    const Child *failed_ = nullptr;           // the first one
    uint64_t active_at_ = 0;                  // the last call, output, start, end or fault
    std::vector<const Fault *> later_faults_; // "after HOST": that has not ended yet
    std::vector<const Fault *> due_faults_;
    unsigned scheduled_faults_ = 0;
    unsigned pending_faults_ = 0; // faults that still occur after all commands have ended
    bool has_ended_ = false;      // a command
};

#endif // RPMA_SIM_RUN_HH
