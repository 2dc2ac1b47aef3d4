// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// simulation.hh -- configurations, invariants of the examples, and the state and events of one
// schedule

#pragma once

#include "network.hh"
#include "schedule.hh"

#include <memory>

using Arguments = std::vector<std::string>;

// The arguments of an example's programs, and its invariants.
struct Oracle {
    const char *example; // its directory
    bool has_reader = false;
    bool locks_files = false; // a program uses only the part of a file that it has locked
    int resolve_ms = 1000;    // the maximum timeout of rdma_resolve_addr()
    Arguments (*arguments)(const Process &process);
    void (*begin)() = [] {};                                // resets the state for a schedule
    void (*on_line)(Process &, const char *) = ignore_line; // a program printed a line
    void (*on_end)(Process &) = ignore;                     // a process ended by itself
    void (*check)() = [] {};             // called after each step that changed a memory
    void (*on_wait)(Process &) = ignore; // a process waits for events
    bool (*may_lose_memory)(const Process &server) = nullptr; // if the invariants allow it

    static void ignore(Process &) {}
    static void ignore_line(Process &, const char *) {}
};

extern const Oracle replicated_log;

struct Configuration {
    std::string name;
    const Oracle *oracle = &replicated_log;
    unsigned servers = 1, clients; // without the client that runs at the end
    unsigned lines = 0;            // lines of each client's standard input
    unsigned last_lines = 0;       // lines of the last client's standard input
    bool loses_memory = false;     // servers can lose their memories
    unsigned plain = 0; // how many servers, the last ones, have no file to keep their memory
    const char *first_client = nullptr; // the module that is the first client
    unsigned foreign = 0;               // how many servers, the last ones, have another log
    bool copies = false;                // memories are copied and restored
    bool bonds = false;                 // link addresses change; this is not a fault
    bool emulated = false;              // devices have no native flush and atomic write

    unsigned log_servers() const { return servers - foreign; }
    bool has_file(unsigned server) const { return server + plain < servers; }
};

extern const std::vector<Configuration> configurations;

// Returns the connection that a line of a client reports as lost, or NULL.
const End *lost_end(const Process &client, const char *line);

// Checks the programs of example 14 with damaged logs. Returns the number of logs, and sets
// simulation.finding.
unsigned damage_logs();

// An open file. It exists until the schedule ends.
struct Object {
    Process *owner = nullptr;
    bool alive = true;
    virtual ~Object() = default;
    virtual struct File *as_file() { return nullptr; }
};

struct Descriptor {
    enum Kind { SIGNALS, CHANNEL, RING, OBJECT } kind;
    Process *owner;
    bool nonblocking = false;
    bool raised = false; // of a channel: readable
    bool closed = false;
    sim::Ring *ring = nullptr;
    Object *object = nullptr;
};
constexpr int FIRST_DESCRIPTOR = 1000;
// The clock of a machine in ms: it is not near 0, and soon passes a multiple of 2^31.
constexpr int64_t START = (int64_t{11} << 31) - 1000;

// An event that is inserted when a program prints a line with the text.
struct Trigger {
    std::string text, process;
    Event::Kind kind;
    uint16_t variant;
};

// The initial state of a schedule.
struct SimulationState {
    std::vector<std::unique_ptr<Object>> objects;
    std::vector<Descriptor> descriptors;
    int64_t now = START;                   // the time in ms
    std::vector<std::string> client_lines; // the lines of all clients
    std::string finding;
    bool repaired = false;        // no more faults occur: all programs must succeed
    bool faulted = false;         // a fault has occurred since the start, or since the repair
    uint64_t random_numbers = 0;  // how many getrandom() has returned
    size_t next_trigger = 0;      // index of the next trigger in the script
    std::vector<Event> triggered; // events of the triggers that have fired
};

class Simulation : public SimulationState {
  public:
    const Configuration *configuration;
    std::vector<std::unique_ptr<Machine>> machines;  // in the order of `processes`
    std::vector<std::unique_ptr<Process>> processes; // servers, clients, then the last client
    Process reader;
    Process *current = nullptr;
    Network network;
    bool tracing = false;
    std::vector<Trigger> script; // fire in this order

    void load_programs(const Configuration &configuration, const std::string &modules);
    // Runs one schedule. Returns false if it has a finding.
    bool run(Schedule &schedule);
    // After run(): starts programs, and runs them without inserted events and without checks of
    // invariants, until each of them waits or has ended, or until all have ended.
    void run_more(const std::vector<Process *> &more, bool until_they_end);
    // Returns true if the example's reader accepts the memories and the lines of the clients.
    bool reader_accepts();

    // ---- for the functions that a program calls
    void preemption_point();
    // Records a finding. The process that caused it does not continue.
    void fail(const char *format, ...) __attribute__((format(printf, 2, 3)));
    static void handle_crash(int signal);
    // Decides details that the schedule does not choose, for example if a word survives.
    bool random_bit();
    template <typename T> T *make_object() {
        auto *object = new T;
        object->owner = current;
        objects.emplace_back(object);
        return object;
    }
    int open_descriptor(Descriptor::Kind kind, Object *object = nullptr);
    Descriptor &descriptor(int fd);
    bool is_readable(int fd);
    bool wait_for(int fd); // false if a read of the descriptor would return EAGAIN
    Machine *machine(const std::string &addr);
    void process_ended(Process &process);
    void handle_line(Process &process, const std::string &text);
    void trace(const std::string &text);

  private:
    void begin(Schedule &schedule);
    void repair();
    void run_reader();
    void step();
    bool clients_are_done();

    // ---- events.cc
    bool is_ready(const Process &process);
    int64_t next_time();
    Process *next_client();
    bool is_possible(const Event &event);
    bool is_possible_on_link(const Event &event) const;
    bool may_lose_data(const Process &process) const;
    Event default_event();
    const std::vector<Event> &options();
    void start(Process &process);
    void kill(Process &process);
    void disconnect(Machine &machine, unsigned variant);
    void reconnect(Machine &machine);
    void pass_time();
    void copy_or_restore(Process &server);
    void fail_power(Process &server, unsigned variant);
    void apply(const Event &event);
    void apply_to_link(const Event &event);
    std::string describe(const Event &event) const;

    Schedule *schedule_;
    std::vector<Event> options_;
    uint64_t random_state_;
    uint64_t checked_changes_;   // sum of the changes of all memories
    Process *running_ = nullptr; // continues by default
};

extern Simulation simulation;
