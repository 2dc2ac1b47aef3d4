// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// process.hh -- a program of an example that runs as a coroutine, and can be killed and
// restarted

#ifndef SIMULATOR_PROCESS_HH
#define SIMULATOR_PROCESS_HH 1

#include "heap.hh"
#include "memory.hh"

#include "fabric/fabric.hh"

#include <csetjmp>
#include <csignal>
#include <map>
#include <poll.h>
#include <string>
#include <ucontext.h>

constexpr int64_t NEVER = INT64_MAX;

// What is the state of a machine besides its memory, at first as here.
struct Plug {
    bool on = true, cut_off = false;
    bool port_down = false;  // while it is cut off: its device noticed
    std::string copy;        // of its memory, for a machine that gets it back; empty: none
    bool no_device = false;  // while it is cut off: its device was removed
    int64_t back_at = NEVER; // when somebody plugs it in again, in ms
};

struct Machine : Plug {
    std::string name; // also the address
    Memory memory;
};

// The state of a program in a schedule, at first as here.
struct Life {
    enum State { OFF, READY, WAITING } state = OFF;
    int status = 0;                   // if OFF: exit status, or KILLED
    unsigned starts = 0;              // starts in this schedule
    bool was_ready = false;           // a server: it has listened
    int64_t frozen_until = 0;         // the process stands still until then
    int64_t back_at = NEVER;          // a server: when it is started again
    size_t lines = 0, lines_read = 0; // of its standard input
    unsigned committed = 0;           // records that it reported as committed
    unsigned completions = 0;         // completions that it has taken
};

// The same from one start to the next.
struct Run {
    bool told_to_stop = false;  // SIGTERM
    bool summed_up = false;     // a server: it has said what it has
    bool port_was_up = false;   // it has asked since it last waited
    bool spoke_in_vain = false; // about a connection, to a port that it could know to be down
    int64_t waited_at = NEVER;  // when it last began to wait for an epoll descriptor
    unsigned wake_ups = 0;      // how often at that time
    size_t links_at_up = 0; // links that there were when it took a port's event, while it runs
    int64_t up_at = NEVER;  // when it took that, until it speaks of it
    bool logged = false;    // the library has written an error to stderr
    bool was_left = false;  // a client was gone when it was accepted, and nobody was told
    bool was_deceived = false; // it has said that a server answers what was not asked
    std::map<const Machine *, unsigned> late; // how often in a row a server did not answer
    sigset_t blocked{};                       // signals
    std::string output, errors;               // a line that is not complete; the text on stderr
};

class Process : public Life, public Run {
  public:
    static constexpr int KILLED = -1;

    std::string name;
    uint16_t index; // of those of the world
    Machine *machine;
    bool is_server;

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
    Heap heap;
    sim::Caller caller; // of the fabric

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
    std::vector<std::pair<char *, std::string>> m_globals; // and what they are at first
    std::vector<Map> m_maps;
    char *m_stack = nullptr;
    std::vector<std::string> m_arguments;
    ucontext_t m_first;
    jmp_buf m_where;
    bool m_fresh;
};

#endif
