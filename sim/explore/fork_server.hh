// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// fork_server.hh -- a program that is loaded once, and forked for each schedule
//
// client/preload/fork_server.cc is the other side, in the program.

#pragma once

#include <functional>
#include <sched.h>
#include <span>
#include <sys/types.h>

#include "../run/sim.hh"

class ForkServer;

// rdma-sim and the programs run on one processor, because one of them runs at a time, and to
// wake one up on another processor takes longer. From time to time a schedule runs on all of
// them, so that the kernel chooses.
class Processor {
  public:
    Processor();
    // Called before each schedule.
    void choose(std::span<const ForkServer> servers);

  private:
    cpu_set_t allowed_;
    unsigned schedules_ = 0;
};

class ForkServer {
  public:
    ForkServer() = default;
    ~ForkServer();
    ForkServer(const ForkServer &) = delete;
    ForkServer &operator=(const ForkServer &) = delete;
    // Returns a child of this process that is a copy of the program before main(). `execute`
    // executes the program, the first time. Returns -1 if it cannot be forked.
    void set_processors(const cpu_set_t &set) const;
    pid_t fork(int out, int err, Signals &signals, const std::function<void()> &execute);

  private:
    bool has_message(Signals &signals) const;
    void end();
    enum State { NOT_STARTED, LOADED, CANNOT_FORK };
    State state_ = NOT_STARTED;
    pid_t pid_ = -1;
    int socket_ = -1;
};
