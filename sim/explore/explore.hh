// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// explore.hh -- "rdma-sim explore": one schedule of programs that run one at a time

#pragma once

#include <list>
#include <map>
#include <random>

#include "../run/sim.hh"
#include "../server/server.hh"
#include "choices.hh"
#include "finding.hh"

struct ExploreSettings : Settings {
    bool explores = false;
    uint64_t first_seed = 1, last_seed = 1000;
    std::string check, save, replay;
    std::vector<std::string_view> fault_kinds; // empty: all kinds
    std::vector<std::string> arguments;        // saved with a finding
    Finding finding;                           // the replayed one
    std::vector<std::string> differences;      // from its environment
};

// The choices of a schedule: random ones, or recorded ones.
class Chooser {
  public:
    // The seed determines the number of faults, and how likely other options than the default
    // are.
    explicit Chooser(uint64_t seed);
    explicit Chooser(std::vector<sim::Choice> recorded) : choices(std::move(recorded)) {}
    enum Kind {
        TURN,
        DELAY,
        FAULT,
        POWER,
        WEAKNESS,
        KINDS = WEAKNESS + (int)sim::Weakness::COUNT
    };
    // Returns an option from 1 to `options`, or 0 for the default.
    uint32_t choose(Kind kind, size_t options) { return choose(kind, options, nullptr); }
    uint32_t choose(sim::Weakness weakness, size_t options) {
        return choose(static_cast<Kind>(WEAKNESS + static_cast<int>(weakness)), options);
    }
    // Returns NULL for no fault.
    const sim::Fault *choose(Kind kind, const sim::ExploredFaults &faults) {
        const uint32_t option = choose(kind, faults.size(), &faults);
        return option == 0 ? nullptr : &faults[option - 1];
    }

    std::vector<sim::Choice> choices; // the recorded choices, or those to replay
    size_t reached = 0;               // how many of those to replay were made
  private:
    // The choices of weaknesses do not change the others.
    uint64_t &state_of(size_t kind) { return kind < WEAKNESS ? state_ : weak_state_; }
    // `faults`: the options, which have weights; NULL: all options are alike.
    uint32_t choose(Kind kind, size_t options, const sim::ExploredFaults *faults);
    bool is_random_ = false;
    uint64_t state_ = 0, weak_state_ = 0; // weak_state_: of the weaknesses
    uint32_t positions_[KINDS] = {}, faults_left_ = 0;
    uint64_t limits_[KINDS] = {}; // probabilities in units of 2^-32
};

// A file of --pmem while programs change a copy of it: the original has another name, so that
// neither a full disk nor SIGKILL loses it.
class OriginalFile {
  public:
    // `content`: of the copy, instead of that of the file.
    OriginalFile(const std::string &path, const std::string *content);
    ~OriginalFile(); // gives the original its name again
    OriginalFile(const OriginalFile &) = delete;
    OriginalFile &operator=(const OriginalFile &) = delete;
    void restore_copy() const;
    bool has_digest(const std::string &digest) const { return digest == digest_; }
    const std::string &content() const { return content_; }

  private:
    std::string path_, original_, content_, digest_; // digest_: of the original
};

// The state that all schedules share.
struct Exploration {
    ExploreSettings &settings;
    const Libraries &libraries;
    const Directory &directory;
    Signals signals; // before a file is written: its signals would end rdma-sim
    sim::ExploredFaults faults, power_failures; // power_failures: after the programs' end
    sim::VirtualClock *clock;                   // mapped by the programs
    std::list<OriginalFile> pmem{};
    void check_signals(); // throws an Exit after a signal
    // Waits for a shell command, or kills it after a signal. Returns its status.
    int wait_for(pid_t pid);
};

class Schedule : sim::Clock, sim::Machines {
  public:
    Schedule(Exploration &exploration, uint64_t seed, Chooser &chooser, bool is_traced);
    ~Schedule() override;
    Schedule(const Schedule &) = delete;
    Schedule &operator=(const Schedule &) = delete;
    void run();

    std::string finding;            // empty: no finding
    std::vector<std::string> steps; // empty unless the schedule is traced
    unsigned faults = 0;            // how many have occurred
    sim::Weaknesses weaknesses() const { return server_->fabric().shown(); } // with an effect

  private:
    struct Process {
        const Command *command;
        unsigned number; // index of the command, from 1
        std::string name;
        pid_t pid = -1;
        int pidfd = -1, out = -1, err = -1;
        bool restarts = false; // a fault starts it again
        bool is_alive = true, is_started = false, is_listening = false, ignores_status = false;
        bool waits = true; // the pending request is a wait
        sim::Wait wait{};
        uint64_t started_at = 0, paused_until = 0, idle_since = 0, changes = 0;
        int status = 0;
        off_t out_shown = 0, err_shown = 0;
    };

    uint64_t delay(sim::Delayed what) override;
    unsigned choose(sim::Weakness weakness, unsigned options) override;
    void completed(const sim::Cq &cq, const ibv_wc &wc) override;
    void signaled(const sim::Channel &) override { changes_++; }

    void start(Process &process);
    bool step(); // returns false if no program runs
    bool can_start(const Process &process) const;
    bool is_ready(const Process &process) const;
    uint64_t next_time() const;
    bool pass_time();
    void advance(uint64_t time);
    void run_turn(Process &process);
    void await(Process &process);
    void read_request(Process &process);
    void handle_exit(Process &process);
    void kill_process(Process &process);
    void end_all();
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
    bool has_process(const sim::Fault &fault) const;
    void check();
    void record_finding(const std::string &what);
    std::string waiting() const;

    void add_step(const char *mark, const std::string &who, const std::string &what);
    void add_output_steps(Process &process);
    std::string output_path(const Process &process, const char *suffix) const;

    Exploration &exploration_;
    ExploreSettings &settings_;
    const uint64_t seed_;
    Chooser &chooser_;
    const bool is_traced_;
    sim::PmemFiles pmem_;
    std::unique_ptr<sim::Server> server_;
    std::mt19937_64 generator_;
    std::vector<Process> processes_;
    std::vector<const sim::Fault *> due_ends_; // faults that end now
    unsigned pending_ends_ = 0;                // faults that end later
    size_t current_ = 0;
    uint64_t changes_ = 0, progress_at_ = 0, requests_ = 0;
    bool is_finished_ = false;
};

// describe.cc: describe a request or a completion in the trace
std::string describe(const sim::CallName *call, const std::vector<std::byte> &request,
                     int error, const sim::Reply &reply);
std::string describe(const ibv_wc &wc);

// explore.cc
int open_output(const std::string &path);        // creates the file, or empties it
std::string first_line(const std::string &path); // empty if there is none
int explore(ExploreSettings &settings, const Libraries &libraries); // returns the exit status
