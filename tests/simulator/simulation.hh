// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// simulation.hh -- the programs that run, and their promises; all objects of one schedule, and
// its possible events

#ifndef SIMULATOR_SIMULATION_HH
#define SIMULATOR_SIMULATION_HH 1

#include "network.hh"
#include "schedule.hh"

#include <memory>

using Arguments = std::vector<std::string>;

// How the programs of an example are run, and its invariants.
struct Oracle {
    bool has_reader = false;
    bool serves_one_client = false; // a server ends after its client, and is restarted
    bool locks_files = false;       // a program uses only the part of a file that it has locked
    bool handles_device_events = false;
    unsigned early_timeouts_max = 0; // how often time may pass before packets arrive, 0: any
    int resolve_ms = 1000;           // the longest time for resolving a server
    Arguments (*arguments)(const Process &process);
    void (*begin)() = [] {};                                // a schedule begins
    void (*on_line)(Process &, const char *) = ignore_line; // a program printed a line
    void (*on_completion)(Process &) = ignore;              // the client took a completion
    // A side sends a message, which may be changed.
    void (*on_send)(const Link &, int side, std::string &) = ignore_message;
    void (*on_end)(Process &) = ignore;  // a process ended by itself
    void (*check)() = [] {};             // checks the memories after each step that changed one
    void (*on_wait)(Process &) = ignore; // a process has no more work
    bool (*may_lose_memory)(const Process &server) = nullptr; // its memory may be lost now

    static void ignore(Process &) {}
    static void ignore_line(Process &, const char *) {}
    static void ignore_message(const Link &, int, std::string &) {}
};

struct Configuration {
    std::string name;
    std::string example; // its directory
    const Oracle *oracle;
    unsigned servers, clients; // one more client runs at the end
    const char *option;        // of the example's variant, or NULL
    unsigned lines;            // of each client's standard input
    unsigned last_lines;       // of the last client's
    bool loses_memory;         // memories may be lost
    unsigned plain;           // the last servers, without a file: each start loses their memory
    const char *first_client; // the module that is the first client, or NULL
    unsigned foreign;         // servers that have another log, the last ones
    bool copies;              // memories are copied and restored
    bool bonds;               // link addresses change, which is no fault
    bool emulated;            // devices have no native flush and atomic write

    unsigned log_servers() const { return servers - foreign; }
    bool has_file(unsigned server) const { return server + plain < servers; }
};

// The connection that a line of a client reports as lost, or NULL.
const End *lost_end(const Process &client, const char *line);

// The block that fill_block() of the examples makes from a number.
constexpr size_t BLOCK_SIZE = 4096, BLOCKS_MAX = 4;
const char *example_block(unsigned number);

// Damages logs of example 14 in all ways, and checks its programs. Returns the number of logs;
// a finding is in simulation.finding.
unsigned damage_logs();

extern const Oracle durability, atomic_write, replicated_log, block_mover, pitfalls;

// A file, or an epoll descriptor. It exists until the schedule ends.
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
    bool raised = false; // a channel: it is readable
    bool closed = false;
    sim::Ring *ring = nullptr;
    Object *object = nullptr;
};
constexpr int FIRST_DESCRIPTOR = 1000;
// In ms: a machine that was not started today, and whose clock soon passes a multiple of 2^31.
constexpr int64_t START = (int64_t{11} << 31) - 1000;

// The event that follows when a program prints a line that contains the text.
struct Trigger {
    std::string text, process;
    Event::Kind kind;
    uint16_t variant;
};

// The initial state of a schedule.
struct Simulation_state {
    std::vector<std::unique_ptr<Object>> objects;
    std::vector<Descriptor> descriptors;
    int64_t now = START;                   // in ms
    std::vector<std::string> client_lines; // the lines of all clients
    std::string finding;
    bool repaired = false;        // no more faults: all programs have to succeed
    bool faulted = false;         // a fault has happened since the beginning, or since repaired
    uint64_t random_numbers = 0;  // that programs have got
    size_t next_trigger = 0;      // index of the next trigger in the script
    std::vector<Event> triggered; // events of the triggers that have fired
};

class Simulation : public Simulation_state {
  public:
    const Configuration *configuration;
    std::vector<std::unique_ptr<Machine>> machines;  // of each server, then of each client
    std::vector<std::unique_ptr<Process>> processes; // servers, clients, the last client
    Process reader;
    Process *current = nullptr;
    Network network;
    bool tracing = false;
    std::vector<Trigger> script; // in their order

    void load_programs(const Configuration &configuration, const std::string &modules);
    // Runs one schedule: false when there is a finding.
    bool run(Schedule &schedule);
    // After that, without inserted events: starts programs until each of them waits or has
    // ended, or until all have ended. The invariants are no longer checked.
    void run_more(const std::vector<Process *> &more, bool until_they_end);
    // Returns true if the example's reader accepts the memories and the lines of the clients.
    bool reader_accepts();

    // ---- for the library and the other functions that a program calls
    void preemption_point();
    // Records a violation. The process that caused it does not continue.
    void fail(const char *format, ...) __attribute__((format(printf, 2, 3)));
    static void crashed(int signal);
    // For details that the schedule does not choose, such as which words survive.
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
    bool
    is_connected(const Process &client); // to a program that has not deleted the connection yet
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
    void disconnect(Machine &machine);
    void reconnect(Machine &machine);
    void pass_time();
    void copy_or_restore(Process &server);
    void fail_power(Process &server, unsigned variant);
    void apply(const Event &event);
    void apply_to_link(const Event &event);
    std::string describe(const Event &event) const;

    Schedule *m_schedule;
    std::vector<Event> m_options;
    uint64_t m_random_state;
    unsigned m_early_timeouts;    // times that time passed early
    uint64_t m_checked_changes;   // sum of the changes of all memories
    Process *m_running = nullptr; // continues unless another event is chosen
};

extern Simulation simulation;

#endif
