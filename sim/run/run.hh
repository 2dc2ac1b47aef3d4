// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// run.hh -- one run of rdma-sim

#pragma once

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

class Run : sim::Machines {
  public:
    Run(Settings &settings, const Libraries &libraries);
    ~Run() override;
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;
    int main(); // returns the exit status

  private:
    sim::Fabric &fabric() override { return server_.fabric(); }
    void kill(const sim::Fault &fault) override;
    void start(const sim::Fault &fault) override;
    void suspend(const sim::Fault &fault, bool is_suspended) override;
    void power_off(const sim::Fault &fault) override;
    void set_clock(unsigned, uint64_t) override {} // refused: its fault is only explored
    void signal_host(unsigned host, int number);
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
    struct DueFault {
        const sim::Fault *fault;
        bool is_end;
        bool keeps_running; // the run goes on until it has occurred
    };
    void schedule(const sim::Fault &fault);
    void schedule(const DueFault &due, uint64_t delay);
    void apply(const DueFault &due);
    void apply_due_faults();
    bool before_call(const sim::Caller &caller, std::span<const std::byte> request);
    void report_missing_calls() const;
    void report_misuses();
    std::vector<pid_t> processes(const std::string &root) const;

    Settings &settings_;
    const Libraries &libraries_;
    Signals signals_; // before the directory, which a signal would leave behind
    Directory directory_;
    sim::PmemFiles pmem_;
    sim::Server server_;
    const uint64_t started_at_ = now();
    std::mt19937_64 generator_;
    std::deque<Child> children_;
    PrefixedOutput outputs_;
    Misuses misuses_;
    size_t started_ = 0;                           // how many commands have started
    const Child *failed_ = nullptr;                // the first one
    uint64_t active_at_ = 0;                       // the last call, output, start, end or fault
    std::vector<const sim::Fault *> later_faults_; // "after HOST": that has not ended yet
    std::vector<DueFault> due_faults_;
    sim::CallFaults call_faults_;
    unsigned killed_host_ = 0; // by the last fault; 0: none
    unsigned scheduled_faults_ = 0;
    unsigned pending_faults_ = 0; // faults that still occur after all commands have ended
    bool has_ended_ = false;      // a command
};
