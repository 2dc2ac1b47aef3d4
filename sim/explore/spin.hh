// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// spin.hh -- recognizes a thread in a loop that only a change of its memory can end
//
// The loop is recognized by its state, not by its duration, so that the moment of the check has
// no effect: the thread is executed in single steps, and spins if it returns to the same
// registers and the same stack again and again. A thread that computes changes them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/types.h>
#include <vector>

class Spin {
  public:
    // Returns true if the thread spins; then it is stopped. Otherwise it continues.
    // `keeps_status`: if it has ended, leaves its status to the caller, who is its parent.
    // `is_thorough`: it steps through a loop of any kind, instead of one that executes each
    // instruction once, which takes longer for a thread that computes.
    bool stop(pid_t thread, bool keeps_status, bool is_thorough);
    // Returns true if the thread, which is stopped, still spins; otherwise it continues.
    bool is_unchanged();
    void release(); // lets the thread continue, if it is stopped
    bool is_stopped() const { return thread_ > 0; }

  private:
    struct State {
        std::vector<std::byte> registers;
        uintptr_t instruction = 0;
        bool operator==(const State &) const = default;
    };
    bool wait_for_stop();
    bool step();
    bool step_to(State &state); // false: at a system call
    bool read_registers(State &state) const;
    bool read_stack(const State &state, std::vector<std::byte> &stack) const;
    bool has_same_stack() const;
    bool repeats(size_t &at); // the state loop_[at]
    bool is_loop(bool is_thorough);
    bool step_to_head();

    pid_t thread_ = 0;
    bool keeps_status_ = false;
    int signal_ = 0; // for the thread, when it continues
    std::vector<State> loop_;
    std::vector<std::byte> stack_; // at the begin of the loop
};
