// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// process.hh -- a program of an example that runs as a coroutine, and can be killed and
// restarted

#ifndef SIMULATOR_PROCESS_HH
#define SIMULATOR_PROCESS_HH 1

#include "memory.hh"

#include <csetjmp>
#include <poll.h>
#include <string>
#include <ucontext.h>

struct Machine {
    std::string name; // also the address
    bool on, cut_off;
    bool port_down;  // while it is cut off: its device noticed
    bool no_device;  // while it is cut off: its device was removed
    int64_t back_at; // when somebody plugs it in again, in ms
    Memory memory;
};

struct Part_of_module {
    char *begin;
    std::string initial;
};

constexpr int64_t NEVER = INT64_MAX;

class Process {
  public:
    enum State { OFF, READY, WAITING };
    static constexpr int KILLED = -1;

    std::string name;
    Machine *machine;
    bool is_server;
    State state = OFF;
    unsigned starts = 0;       // starts in this schedule
    bool was_ready = false;    // a server: it has listened
    int status = 0;            // if OFF: exit status, or KILLED
    int64_t frozen_until = 0;  // the process stands still until then
    int64_t back_at = NEVER;   // a server: when it is started again
    bool told_to_stop = false; // SIGTERM
    unsigned lines_left = 0;   // of its standard input
    unsigned lines_read = 0;   // lines read in all
    unsigned committed = 0;    // records that it reported as committed
    unsigned completions = 0;  // completions that it has taken
    uint64_t qp_nums = 1;      // a bit for each that is in use
    bool port_was_up = false;  // it has asked since it last waited
    int64_t waited_at = NEVER; // when it last began to wait for an epoll descriptor
    unsigned wake_ups = 0;     // how often at that time
    size_t links_at_up = 0; // links that there were when it took a port's event, while it runs
    bool spoke_in_vain = false; // about a connection, to a port that it could know to be down
    std::string output, errors; // a line that is not complete; the text on stderr

    std::string first_error() const { return errors.substr(0, errors.find('\n')); }

    // Loads a copy of the module, with globals of its own.
    void load(const std::string &module);
    void start(const std::vector<std::string> &arguments);
    void end(int status_);

    // Runs until it waits, leaves or ends.
    void resume();
    // Called by the process itself: lets the world go on.
    void leave();
    // Called by the process itself: waits until one of the descriptors is readable or the time
    // is over.
    void wait_until(const pollfd *fds, size_t count, int64_t deadline);

    // The descriptors that it waits for, while it is WAITING.
    const pollfd *fds;
    size_t fd_count;
    int64_t deadline;

    // Plain memory, zero at first.
    void *map_memory(size_t size);
    void unmap_memory(void *ptr);

  private:
    struct Map {
        void *ptr;
        size_t size;
        bool used;
    };
    static void entry();

    int (*m_main)(int, char **);
    std::vector<Part_of_module> m_globals;
    std::vector<Map> m_maps;
    char *m_stack = nullptr;
    std::vector<std::string> m_arguments;
    std::vector<char *> m_argv;
    ucontext_t m_first;
    jmp_buf m_where;
    bool m_fresh;
};

#endif
