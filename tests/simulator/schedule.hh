// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// schedule.hh -- the choices of a schedule: where an unusual event happened instead of the
// usual one

#ifndef SIMULATOR_SCHEDULE_HH
#define SIMULATOR_SCHEDULE_HH 1

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct Event {
    enum Kind : uint8_t {
        RUN,      // a program goes on
        REQUEST,  // a request to connect arrives
        NEWS,     // a side gets an event of its connection; variant: the side
        EXECUTE,  // the next operation of a connection; variant: Flow::Visible + 3 * the side
        COMPLETE, // a side's device learns that operations were executed; variant: the side
        FAIL,     // a side's device gives up outstanding operations; variant: the side
        START,    // a program, its machine too if that is off
        JOIN,     // a machine that was cut off
        TIME,     // time passes until an event is due
        FIRST_FAULT,
        BREAK = FIRST_FAULT, // a connection; variant: Link::Fate, + 3: without notification
        KILL,                // a program; variant 1: for long
        POWER,               // of a machine fails; variant: see Loss, + 3: for long
        POWER_ALL,           // of all machines of servers fails; variant: see Loss
        CUT,                 // a machine off the network; variant 1: for long
        FREEZE,              // a program stands still; variant 1: for long
        FORGET,              // a server's memory is replaced by a blank one
    } kind;
    enum Loss { OLD, NEW, MIXED }; // which values survive
    uint16_t object;
    uint16_t variant;
};

// What happens as soon as a program says a line that contains the text.
struct Cue {
    std::string text, process;
    Event::Kind kind;
    uint16_t variant;
};

// Option 0 is the usual event, before which the invariants are checked; the others are numbered
// as World::options() lists them.
struct Choice {
    uint32_t position, option;
};

class Schedule {
  public:
    std::vector<Choice> choices; // choices made, or to be made
    uint64_t salt = 0;           // for World::chance(), whose results are not choices
    std::vector<std::vector<Event>> *listed = nullptr; // the options at each position

    static Schedule random(uint64_t seed, uint32_t kinds);

    void begin();
    uint32_t position() const { return m_position; }
    // Returns true if the usual event comes, and passes the position.
    bool is_usual();
    void stop(); // a program is interrupted here, whether or not an unusual event follows
    // Otherwise chooses the event; returns false for the usual one.
    bool choose(const std::vector<Event> &options, Event &event);
    void stop_faults(); // from now on

    bool save(const char *file, const std::string &configuration) const;
    bool load(const char *file, std::string &configuration);

  private:
    const Event *pick(const Event *begin, const Event *end);

    bool m_random = false, m_fault = false;
    uint64_t m_state = 0;
    uint32_t m_position = 0, m_next = 0;
    uint32_t m_kinds = 0;                          // unusual events of this schedule
    unsigned m_faults = 0;                         // faults left
    uint64_t m_fault_limit = 0, m_other_limit = 0; // probabilities, out of 2^32
};

// SplitMix64.
inline uint64_t next_random(uint64_t &state) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

#endif
