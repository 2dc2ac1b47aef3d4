// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// schedule.hh -- one schedule of programs that run one at a time

#pragma once

#include <deque>
#include <map>
#include <random>

#include "../server/server.hh"
#include "chooser.hh"
#include "explore.hh"
#include "limits.hh"
#include "sockets.hh"
#include "spin.hh"
#include "trace.hh"
#include "turn_order.hh"

constexpr uint64_t BEGIN = 1000 * SECOND; // the virtual time at the start

class Schedule : sim::Scheduler, sim::Machines, sim::Persistence {
  public:
    Schedule(Exploration &exploration, uint64_t seed, Chooser &chooser, bool is_traced);
    ~Schedule() override;
    Schedule(const Schedule &) = delete;
    Schedule &operator=(const Schedule &) = delete;
    void run();

    std::string finding; // empty: no finding
    unsigned faults = 0; // how many have occurred
    Coverage coverage{};
    const std::vector<Step> &steps() const { return trace_.steps(); }
    // Of the programs of --gdb: their turns, the first one after all choices, and the one at
    // which gdb is started; 0: none.
    uint64_t turns_of_host = 0, turn_after_choices = 0, stops_at = 0;
    std::vector<bool> listening() const;

  private:
    // A thread of a command. The first ones are the first threads of the commands.
    struct Process {
        const Command *command;
        unsigned number; // index of the command, from 1
        std::string name;
        size_t index = 0;          // in processes_
        Process *first = nullptr;  // the first thread of its process; NULL: this one
        unsigned threads = 0;      // of a process: how many it has created
        unsigned children = 0;     // of a command: how many processes it has created
        Process *parent = nullptr; // of a process that another one has created
        uint64_t client = 0;       // of the server; 0: it is not connected
        uint64_t other_client = 0; // that has its next request; 0: `client` has it
        pid_t pid = -1, thread = -1;
        int pidfd = -1, out = -1, err = -1;
        bool restarts = false; // a fault starts it again
        bool is_alive = true, is_started = false, is_listening = false, ignores_status = false;
        bool may_start = false, has_called = false, persists = false;
        bool has_ended = false;   // the thread, but not its process
        bool is_signaled = false; // a handler may have to run
        bool waits = true;        // the pending request is a wait
        sim::Wait wait{};
        const sim::CallName *last_call = nullptr;
        Spin spin{};                 // stopped: the process waits in a loop that reads memory
        uint64_t writes = 0;         // changes of its memory, at the time of this wait
        uint64_t object_changes = 0; // of the object for which it waits, at the same time
        Polling polling{};
        TimedWaits timed_waits{};
        uint64_t starts_at = 0, started_at = 0, paused_until = 0, changes = 0;
        int status = 0;
        off_t out_shown = 0, err_shown = 0;
        size_t place = 0; // of its last request, in SourceLines
    };

    uint64_t delay(sim::Delayed what) override;
    unsigned choose(sim::Weakness weakness, unsigned options) override;
    void completed(const sim::Cq &cq, const ibv_wc &wc) override;
    void signaled(const sim::Channel &) override { changes_++; }
    void arrived(const sim::Cm::Message &message) override { trace_.arrived(message); }
    void executing(const sim::Qp &qp, const sim::Qp &target, const sim::Send &send) override {
        trace_.executing(qp, target, send);
    }
    void posted(const sim::Qp &qp) override { trace_.posted(qp); }
    void replaced(uint64_t before, uint64_t after) override { trace_.replaced(before, after); }
    void links_changed() override;
    void landed(const sim::Qp &qp, const sim::Send &send) override { trace_.landed(qp, send); }
    void lost(const sim::Qp &qp, const sim::Send &send, const sim::Device *at,
              const char *why) override {
        trace_.lost(qp, send, at, why);
    }

    // sim::Persistence: reports what becomes visible and persistent
    void registered(int pid, const sim::Region &region) override {
        pmem_.registered(pid, region);
    }
    void deregistered(int pid, const sim::Region &region) override {
        pmem_.deregistered(pid, region);
    }
    bool is_persistent(int pid, uint64_t address, size_t length) override {
        return pmem_.is_persistent(pid, address, length);
    }
    void written(int pid, uint64_t address, size_t length, uint32_t writer) override;
    void persist(int pid, uint64_t address, size_t length, uint32_t writer) override;

    // programs.cc
    std::string name_of(const Command &command) const;
    void start(Process &process);
    void await(Process &process);
    bool is_spinning(Process &process, bool is_thorough);
    uint64_t writes(const Process &process) const;
    bool has_request(Process &process);
    uint64_t object_changes(const Process &process) const;
    bool executes_another(Process &thread);
    uint64_t other_client(const Process &process) const;
    static uint64_t client_of(const Process &process) { // that has its next request
        return process.other_client != 0 ? process.other_client : process.client;
    }
    uint64_t unknown_client(pid_t pid, sim::Wait::Kind kind) const;
    void add_thread(Process &creator);
    void end_thread(Process &process);
    void add_process(Process &creator);
    bool is_quiet(const Process &first);
    void deliver_signals(const Process &sender);
    void set_signaled(const Process &process);
    bool has_ended(const Process &process) const;
    bool is_command(const Process &process) const {
        return process.index < settings_.commands.size();
    }
    static Process &first_of(Process &process) {
        return process.first == nullptr ? process : *process.first;
    }
    void read_request(Process &process);
    void end_wait(Process &process);
    void handle_exit(Process &process);
    void kill_command(const Process &command);
    void kill_process(Process &process);
    void end_all();
    std::string output_path(const Process &process, const char *suffix) const;
    void descriptors_changed() {
        exploration_.clock->changes[0]++;
        changes_++;
    }
    void record_progress() {
        progress_at_ = server_->fabric().now();
        progress_requests_ = requests_;
    }
    static Sockets::Owner owner_of(Process &process) {
        return {process.pid, first_of(process).pidfd, process.command->host};
    }
    std::vector<Sockets::Owner> owners();
    void transmit(Process &process, const std::vector<std::byte> &request);
    // schedule.cc
    bool step(); // returns false if no program runs
    uint64_t can_start_at(const Process &process) const;
    void permit_starts();
    bool is_client(const Process &process) const;
    bool is_ready(const Process &process) const;
    uint64_t next_time() const;
    uint64_t next_end() const { return ends_.empty() ? NEVER : ends_.begin()->first; }
    uint64_t time_before_programs() const;
    bool is_idle() const;
    bool pass_time();
    void advance(uint64_t time);
    void execute(Process &process, uint32_t op, const std::vector<std::byte> &request);
    void run_turn(Process &process);
    void check();
    void record_finding(const std::string &what);
    static std::string after_destruction(const Process &process);
    std::string waiting() const;
    void stop_in_gdb(const Process &process);
    bool has_gdb();
    bool is_healed() const;
    bool is_asked_to_end(const Process &process) const;
    void stop_waiting();
    // fault_effects.cc
    sim::Fabric &fabric() override { return server_->fabric(); }
    template <class Function> void for_each_process(const sim::Fault &fault, Function function);
    void kill(const sim::Fault &fault) override;
    void start(const sim::Fault &fault) override;
    void suspend(const sim::Fault &fault, bool is_suspended) override;
    void power_off(const sim::Fault &fault) override;
    void set_clock(unsigned host, uint64_t ahead) override {
        exploration_.clock->ahead[host] = ahead;
    }
    void apply(const sim::Fault &fault);
    void end_due_faults();
    void cover(const sim::Fault &fault);
    bool has_process(const sim::Fault &fault) const;
    Chooser::Window window() const;
    unsigned posting_program() const;
    void add_step(Step::Kind kind, const std::string &what, const Process *process = nullptr);
    void add_call(Process &process, Step step, size_t before);
    void add_waiting(const Process &process);
    void add_output_steps(Process &process);
    unsigned host_of(int pid) const;

    Exploration &exploration_;
    ExploreSettings &settings_;
    const uint64_t seed_;
    Chooser &chooser_;
    Trace trace_;
    sim::PmemFiles pmem_;
    std::unique_ptr<sim::Server> server_;
    std::optional<Sockets> sockets_; // after the server
    std::mt19937_64 generator_;
    std::deque<Process> processes_;
    std::map<unsigned, uint64_t> turns_;               // by host
    std::multimap<uint64_t, const sim::Fault *> ends_; // of faults, by time
    bool has_lasting_fault_ = false;                   // one that programs cannot notice
    uint64_t last_fault_at_ = 0;                       // its begin or its end
    // For window().
    bool has_unpersisted_ = false;
    uint64_t posted_at_ = 0, restarted_at_ = 0; // numbers of requests; 0: never
    size_t current_ = 0;
    TurnOrder order_;
    uint64_t changes_ = 0, progress_at_ = 0;
    uint64_t requests_ = 0, progress_requests_ = 0; // progress: at the last one that is no wait
    bool is_finished_ = false;
    pid_t gdb_ = -1;
};
