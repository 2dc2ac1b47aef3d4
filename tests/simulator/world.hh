// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// world.hh -- the programs that run, and their promises; all objects of one schedule, and its
// possible events

#ifndef SIMULATOR_WORLD_HH
#define SIMULATOR_WORLD_HH 1

#include "network.hh"
#include "schedule.hh"

#include <memory>

using Arguments = std::vector<std::string>;

// How the programs of an example are run, and its invariants.
struct Oracle {
    bool has_reader = false;
    bool serves_one = false;   // a server ends after its client, and is restarted for the next
    bool locks = false;        // a program uses only the part of a file that it has locked
    bool heeds_device = false; // the events of ports, and that a device is removed
    unsigned hurries = 0; // how often time may pass before packets in flight arrive, 0: any
    int way_ms = 1000;    // the longest time for resolving a server
    Arguments (*arguments)(const Process &process);
    void (*begin)() = [] {};                             // a schedule begins
    void (*said)(Process &, const char *) = ignore_line; // a program printed a line
    void (*completed)(Process &) = ignore;               // the client took a completion
    // A side sends a message, which may be changed.
    void (*sent)(const Link &, int side, std::string &) = ignore_message;
    void (*ended)(Process &) = ignore; // a process ended by itself
    void (*check)() = [] {};           // checks the memories after each step that changed one
    void (*waits)(Process &) = ignore; // a process has no more work
    bool (*may_forget)(const Process &server) = nullptr; // its memory may be lost now

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
    bool forgets;              // memories may be lost
    unsigned plain;       // the last servers, without a file: each start loses their memory
    const char *stranger; // the module that is the first client, or NULL
    unsigned foreign;     // servers that have another log, the last ones
    bool copies;          // memories are copied and restored
    bool bonds;           // link addresses change, which is no fault
    bool emulated;        // devices have no native flush and atomic write

    unsigned log_servers() const { return servers - foreign; }
    bool has_file(unsigned server) const { return server + plain < servers; }
};

// The connection that a line of a client reports as lost, or NULL.
const End *lost_end(const Process &client, const char *line);

// The block that fill_block() of the examples makes from a number.
constexpr size_t BLOCK_SIZE = 4096, BLOCKS_MAX = 4;
const char *block_of(unsigned number);

// Damages logs of example 14 in all ways, and checks its programs. Returns the number of logs;
// a finding is in world.finding.
unsigned damage_logs();

extern const Oracle promise, atomic_write, replicated_log, block_mover, pitfalls;

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
struct Cue {
    std::string text, process;
    Event::Kind kind;
    uint16_t variant;
};

// The initial state of a schedule.
struct Present {
    std::vector<std::unique_ptr<Object>> objects;
    std::vector<Descriptor> descriptors;
    int64_t now = START;           // in ms
    std::vector<std::string> said; // the lines of all clients
    std::string finding;
    bool healed = false;         // no more faults: all programs have to succeed
    bool faulted = false;        // a fault has happened since the beginning, or since healed
    uint64_t random_numbers = 0; // that programs have got
    size_t cue = 0;              // the cue of the script that is awaited
    std::vector<Event> cued;     // events of the cue that happen now
};

class World : public Present {
  public:
    const Configuration *configuration;
    std::vector<std::unique_ptr<Machine>> machines;  // of each server, then of each client
    std::vector<std::unique_ptr<Process>> processes; // servers, clients, the last client
    Process reader;
    Process *current = nullptr;
    Network network;
    bool tracing = false;
    std::vector<Cue> script; // cues, one after the other

    void make(const Configuration &configuration, const std::string &modules);
    // Runs one schedule: false when there is a finding.
    bool run(Schedule &schedule);
    // After that, without unusual events: starts programs until each of them waits or has
    // ended, or until all have ended. The invariants are no longer checked.
    void start_more(const std::vector<Process *> &more, bool until_they_end);
    // Returns true if the example's reader accepts the memories and the lines of the clients.
    bool read();

    // ---- for the library and the other functions that a program calls
    void point();
    // Records a violation. The process that caused it does not continue.
    void found(const char *format, ...) __attribute__((format(printf, 2, 3)));
    static void crashed(int signal);
    bool
    chance(); // details that are neither chosen nor determined, such as which words survive
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
    void line(Process &process, const std::string &text);
    void trace(const std::string &text);

  private:
    void begin(Schedule &schedule);
    void heal();
    void judge();
    void step();
    bool clients_are_done();

    // ---- events.cc
    bool is_ready(const Process &process);
    int64_t next_time();
    Process *next_client();
    bool may(const Event &event);
    bool may_on_link(const Event &event) const;
    bool may_lose(const Process &process) const;
    Event usual_event();
    const std::vector<Event> &options();
    void start(Process &process);
    void kill(Process &process);
    void cut(Machine &machine);
    void join(Machine &machine);
    void pass_time();
    void copy_or_restore(Process &server);
    void fail_power(Process &server, unsigned variant);
    void apply(const Event &event);
    void apply_to_link(const Event &event);
    std::string text_of(const Event &event) const;

    Schedule *m_schedule;
    std::vector<Event> m_options;
    uint64_t m_chance;
    unsigned m_hurried;           // times that time passed early
    uint64_t m_checked;           // sum of the changes of all memories
    Process *m_running = nullptr; // continues unless another event is chosen
};

extern World world;

#endif
