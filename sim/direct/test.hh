// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// test.hh -- what the functions of rdma-sim.h share.

#pragma once

#include "rdma-sim.h"

#include "../model/faults.hh"

#include <functional>
#include <list>
#include <optional>
#include <poll.h>
#include <string>

namespace sim {

// An error number, and the line of rdma_sim_error().
struct Refusal {
    int error;
    std::string why;
};

// The faults of a test, whose programs all have the same clock.
class TestFaults : public Machines {
  protected:
    void watch_calls();                    // for faults that occur at a call
    void add_fault(std::string_view text); // throws a Refusal
    void check_host(unsigned host);        // throws a Refusal
    // Until it ends, `fault` must exist.
    virtual void occur(const Fault &fault) {
        apply(*this, fault);
        if (fault.lasts != 0)
            fabric().at(fabric().now() + fault.lasts, [this, &fault] {
                end(*this, fault);
                ended(fault);
            });
    }
    virtual void ended(const Fault &) {}
    virtual bool has_programs() const { return true; }

  private:
    void set_clock(unsigned, uint64_t) override {}
    void refuse_impossible(const Fault &fault);
    void schedule(const Fault &fault);
    std::list<Fault> faults_; // timers refer to them
    CallFaults call_faults_;
};

// A test without programs on its hosts refuses the faults that need them.
class NoPrograms : public TestFaults {
    bool has_programs() const override { return false; }
    void kill(const Fault &) override {}
    void start(const Fault &) override {}
    void suspend(const Fault &, bool) override {}
    void power_off(const Fault &) override {}
};

// Calls the function for each name of a list, which commas separate.
template <class Function> void for_each_name(std::string_view names, Function function) {
    while (!names.empty()) {
        const size_t end = names.find(',');
        function(names.substr(0, end));
        names.remove_prefix(end == names.npos ? names.size() : end + 1);
        if (end != names.npos && names.empty())
            function(names); // after a comma at the end
    }
}

Options options_of(const rdma_sim_options *given); // throws a Refusal

// These concern the program of rdma_sim_explore() that the calling thread runs; if there is
// none, the result is false.
bool is_explored_program();
bool sleep_of_program(uint64_t nanoseconds);
bool persist_for_program(const void *address, size_t size);
bool check_persistent(const void *address, size_t size); // throws a Refusal
std::optional<uint64_t> random_of_program();
std::optional<uint64_t> time_of_program();    // nanoseconds since the start of the schedule
bool add_fault_for_program(const char *text); // throws a Refusal
bool end_program(int status);

// Only for a program.
std::optional<uint64_t> possible_value(const void *address, unsigned number);

// Waits for descriptors, at most for these milliseconds, without limit if they are negative.
using WaitFunction = std::function<int(int milliseconds)>;
// Waits in the time of the fabric if the calling thread runs a program, otherwise as `wait`.
int wait_for_program(const WaitFunction &wait, int milliseconds, const char *function);

// Runs schedules until one has a finding. Returns the finding, or an empty text.
std::string explore(const rdma_sim_test &test); // throws a Refusal

} // namespace sim
