// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// process.hh -- a program of an example that runs as a coroutine, and can be killed and
// restarted

#pragma once

#include "heap.hh"
#include "memory.hh"

#include "direct/coroutine.hh"
#include "model/fabric.hh"

#include <csignal>
#include <map>
#include <poll.h>
#include <string>

constexpr int64_t NEVER = INT64_MAX;

// The state of a machine without its memory, with the initial values.
struct MachineState {
    bool on = true, disconnected = false;
    std::string copy;             // a copy of its memory, or empty
    int64_t reconnect_at = NEVER; // in ms
};

struct Machine : MachineState {
    std::string name; // also the address that programs resolve
    Memory memory;
};

// The state of a program in a schedule, with the initial values.
struct ProcessState {
    enum State { OFF, READY, WAITING } state = OFF;
    int status = 0;                   // if OFF: exit status, or KILLED
    unsigned starts = 0;              // number of starts in this schedule
    bool has_listened = false;        // a server: it has listened
    int64_t frozen_until = 0;         // the end of its suspension
    int64_t restart_at = NEVER;       // a server: the time of its restart
    size_t lines = 0, lines_read = 0; // of the standard input
    std::string input;                // the line of the standard input that is being read
    size_t input_read = 0;            // its bytes that were read
    unsigned committed = 0;           // number of records that it reported as committed
};

// The state of a program since its last start.
struct RunState {
    bool stop_requested = false;       // by SIGTERM
    bool has_reported_records = false; // a server: it has reported its state
    bool logged = false;               // the library has logged an unexpected error
    bool has_unreported_disconnect =
        false;          // a client had ended when it was accepted, which is not reported yet
    sigset_t blocked{}; // blocked signals
    std::string output, errors; // an incomplete line; the text on stderr
};

class Process : public ProcessState, public RunState {
  public:
    static constexpr int KILLED = -1;

    std::string name;
    uint16_t index; // in Simulation::processes
    Machine *machine;
    bool is_server;

    std::string first_error() const { return errors.substr(0, errors.find('\n')); }

    // Loads a copy of the module, with globals of its own.
    void load(const std::string &module);
    void start(const std::vector<std::string> &arguments);
    void end(int code);

    // Runs until it waits, yields or ends.
    void resume();
    // Called by the process itself: returns to the scheduler.
    void yield();
    // Called by the process itself: waits until a descriptor is readable or the deadline.
    void wait_until(const pollfd *fds, size_t count, int64_t deadline);

    // The descriptors that a WAITING process waits for.
    const pollfd *fds;
    size_t fd_count;
    int64_t deadline;

    // Memory of malloc().
    Heap heap;
    sim::Caller caller; // identifies it in the fabric

    void *map_memory(size_t size);
    void unmap_memory(void *ptr);

    // A writable segment of the module.
    struct Globals {
        char *begin;
        std::string initial;
        size_t zeros; // how many follow
    };

  private:
    struct Map {
        void *ptr;
        size_t size;
        bool used;
    };
    int (*main_)(int, char **);
    std::vector<Globals> globals_;
    std::vector<Map> maps_;
    std::vector<std::string> arguments_;
    sim::Coroutine coroutine_;
};
