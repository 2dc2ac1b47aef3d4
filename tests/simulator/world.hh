// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// world.hh -- all objects of one schedule, and its possible events

#ifndef SIMULATOR_WORLD_HH
#define SIMULATOR_WORLD_HH 1

#include "configuration.hh"
#include "network.hh"
#include "schedule.hh"

#include <memory>

struct Descriptor {
    enum Kind { ENDPOINT, EVENTS, COMPLETIONS, SIGNALS, FILE, EPOLL, DEVICE } kind;
    Object *object;
    Process *owner;
    bool nonblocking;
};
constexpr int FIRST_DESCRIPTOR = 1000;

class World {
  public:
    const Configuration *configuration;
    std::vector<std::unique_ptr<Machine>> machines;  // of each server, then of each client
    std::vector<std::unique_ptr<Process>> processes; // servers, clients, the last client
    std::vector<std::unique_ptr<Link>> links;
    std::vector<uint16_t> open_links; // links that a side still uses
    std::vector<Descriptor> descriptors;
    std::vector<rpma_ep *> endpoints;
    std::vector<rpma_peer *> peers;
    Process reader;
    Process *current = nullptr;
    int64_t now;      // in ms
    std::string said; // the lines of all clients
    std::string finding;
    bool tracing = false;
    std::vector<Cue> script; // cues, one after the other
    bool healed;             // no more faults: everything has to end well
    bool faulted;            // one has happened since the beginning, or since then

    void make(const Configuration &configuration, const std::string &modules);
    // Runs one schedule: false when there is a finding.
    bool run(Schedule &schedule);
    // After that, without unusual events: starts programs until each of them waits or has
    // ended, or until all have ended. The invariants are no longer checked.
    void start_more(const std::vector<Process *> &more, bool until_they_end);

    // ---- for the library and the other functions that a program calls
    void point();
    // Records a violation. The process that caused it does not go on.
    void found(const char *format, ...) __attribute__((format(printf, 2, 3)));
    void trace(const char *format, ...) __attribute__((format(printf, 2, 3)));
    bool chance(); // details that are neither chosen nor determined: which words of many
    template <typename T> T *make_object() {
        auto *object = new T;
        object->owner = current;
        m_objects.emplace_back(object);
        return object;
    }
    int open_descriptor(Descriptor::Kind kind, Object *object, Process *owner);
    Descriptor &descriptor(int fd);
    bool is_readable(int fd);
    Machine *machine(const std::string &addr);
    rpma_ep *endpoint(const Link &link);
    void process_ended(Process &process);
    void line(Process &process, const std::string &text);

  private:
    void begin(Schedule &schedule);
    void heal();
    void judge();
    void check_leftovers(const Process &process);
    void step();
    bool clients_are_done();

    // ---- events.cc
    bool is_ready(const Process &process);
    int64_t next_time();
    Process *next_client();
    bool may(Event::Kind kind, const Link &link, int side) const;
    uint16_t index_of(const Process *process) const;
    Event usual_event();
    const std::vector<Event> &options();
    template <typename Add> void add_faults(Add add);
    void start(Process &process);
    void tell_peers(Machine &machine, rpma_peer_event_type type);
    void remove_device(Machine &machine);
    void join(Machine &machine);
    void pass_time();
    void fail_power(Process &server, unsigned variant);
    void apply(const Event &event);
    std::string text_of(const Event &event) const;

    Schedule *m_schedule;
    size_t m_cue;              // the cue of the script that is awaited
    std::vector<Event> m_cued; // events of the cue that happen now
    std::vector<std::unique_ptr<Object>> m_objects;
    std::vector<Event> m_options;
    uint64_t m_chance;
    unsigned m_hurried; // times that time passed early
    uint64_t m_checked; // sum of the changes of all memories
    Process *m_running; // runs on unless another event is chosen
};

extern World world;

#endif
