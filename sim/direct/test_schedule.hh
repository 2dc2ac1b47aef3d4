// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// test_schedule.hh -- one schedule of the programs of a test

#pragma once

#include "../explore/limits.hh"
#include "../explore/turn_order.hh"
#include "coroutine.hh"
#include "direct.hh"
#include "test.hh"
#include "test_memory.hh"

#include <atomic>
#include <deque>
#include <random>

namespace sim {

// What all schedules of a test share.
struct TestExploration {
    const rdma_sim_test &test;
    Options options;
    ExploredFaults faults, power_failures; // power_failures: after the programs' end
    TestMemory memory;
};

// What a child reports, also if it is killed: in memory that it shares with the test.
struct Report {
    static constexpr size_t MAX_CHOICES = 1 << 16;
    std::atomic<uint32_t> turns, choices, points;
    std::atomic<bool> has_ended;
    char finding[512];
    Choice made[MAX_CHOICES];
    Point possible[MAX_CHOICES]; // Chooser::points
};

// A program of the test.
struct TestProgram {
    const rdma_sim_program *given;
    std::string name;
    unsigned number; // of its thread, from 1
    unsigned id;     // of its process: another one after each start
    enum { START, REQUEST, EVENT, POLL, SLEEP, ENDED } state = START;
    const char *function = "its start"; // in which it waits
    bool is_listening = false, is_suspended = false, has_started = false;
    bool restarts = false; // a fault starts it again
    uint64_t until = NEVER, started_at = 0, changes = 0;
    Polling polling{};
    TimedWaits waits{};
    uint64_t random = 0; // state of rdma_sim_random()
    Coroutine coroutine{};
};

class TestSchedule : Scheduler, TestFaults {
  public:
    TestSchedule(TestExploration &exploration, uint64_t seed, Chooser &chooser, Report &report,
                 bool is_traced);
    void run();

    // Called by the program that has the turn.
    void yield(decltype(TestProgram::state) state, uint64_t until, const char *function);
    void end_program(int status);
    int wait(const WaitFunction &wait, int milliseconds, const char *function);
    void persist(const void *address, size_t size);
    const TestMemory &memory() const { return exploration_.memory; }
    uint64_t now() { return direct_->fabric().now(); }
    void add_fault(const char *text);
    static TestSchedule *current;            // of this child
    static thread_local TestProgram *player; // that has the turn; NULL in other threads

  private:
    // Scheduler
    uint64_t delay(Delayed what) override;
    unsigned choose(Weakness weakness, unsigned options) override;
    void completed(const Cq &, const ibv_wc &) override { changes_++; }
    void signaled(const Channel &) override { changes_++; }
    // Machines
    Fabric &fabric() override { return direct_->fabric(); }
    template <class Function> void for_each_program(const Fault &fault, Function function);
    void kill(const Fault &fault) override;
    void start(const Fault &fault) override;
    void suspend(const Fault &fault, bool is_suspended) override;
    void power_off(const Fault &fault) override;
    void occur(const Fault &fault) override;
    void ended(const Fault &fault) override;
    bool may_wait_for_ever() const;

    template <class Choose> auto recorded(Choose choose);
    void begin(TestProgram &program);
    bool is_ready(const TestProgram &program) const;
    bool may_start(const TestProgram &program) const;
    bool can_continue() const;
    bool step();
    bool pass_time();
    void advance(uint64_t time);
    void give_turn(TestProgram &program);
    bool has_program(const Fault &fault);
    void apply_fault(const Fault &fault);
    Chooser::Window window();
    void find(const std::string &what);
    void find_leaks();
    void trace(const std::string &who, const std::string &what) const;

    TestExploration &exploration_;
    Chooser &chooser_;
    Report &report_;
    const bool is_traced_;
    std::mt19937_64 generator_;
    std::unique_ptr<Direct> direct_;
    std::deque<TestProgram> programs_;
    TurnOrder order_;
    size_t current_ = 0;
    unsigned starts_ = 0;
    uint64_t changes_ = 0, progress_at_ = 0, progress_turns_ = 0;
    uint64_t posted_at_ = 0, restarted_at_ = 0; // turns; 0: never
    bool is_finished_ = false;
    unsigned occurred_ = 0, pending_ends_ = 0; // faults, those of them that will end
};

} // namespace sim
