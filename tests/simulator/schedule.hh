// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// schedule.hh -- what was chosen where something else than the usual could happen

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
        NEWS,     // a side hears of its connection; variant: which
        EXECUTE,  // the next operation of a connection; variant: Link::Visible
        COMPLETE, // the client's device hears of what was executed
        FAIL,     // it gives up what is outstanding
        START,    // a program, its machine too if that is off
        JOIN,     // a machine that was cut off
        TIME,     // passes until something is due
        FIRST_FAULT,
        BREAK = FIRST_FAULT, // a connection; variant: Link::Fate, + 3: nobody is told
        KILL,                // a program; variant 1: for long
        POWER,               // of a machine fails; variant: see Loss, + 3: for long
        POWER_ALL,           // of all machines of servers fails; variant: see Loss
        CUT,                 // a machine off the network; variant 1: for long
        FREEZE,              // a program stands still; variant 1: for long
        FORGET,              // a server's memory is exchanged for a blank one
    } kind;
    enum Loss { OLD, NEW, MIXED }; // which values are left
    uint16_t object;
    uint16_t variant;
};

// What happens as soon as a program says a line that contains the text.
struct Cue {
    std::string text, process;
    Event::Kind kind;
    uint16_t variant;
};

// Option 0 is the usual event, and what must hold is checked before it; the others are numbered
// as World::options() lists them.
struct Choice {
    uint32_t position, option;
};

class Schedule {
  public:
    std::vector<Choice> choices; // that were made, or are to be made
    uint64_t salt = 0;           // for what is not chosen: World::chance()
    std::vector<std::vector<Event>> *listed = nullptr; // by position: the options there were

    static Schedule random(uint64_t seed, uint32_t kinds);

    void begin();
    uint32_t position() const { return m_position; }
    // True: the usual event comes, and the position is past.
    bool is_usual();
    void stop(); // a program is interrupted here, whether or not anything unusual follows
    // Otherwise, this says which; false: the usual all the same.
    bool choose(const std::vector<Event> &options, Event &event);
    void stop_faults(); // from now on

    bool save(const char *file, const std::string &configuration) const;
    bool load(const char *file, std::string &configuration);

  private:
    const Event *pick(const Event *begin, const Event *end);

    bool m_random = false, m_fault = false;
    uint64_t m_state = 0;
    uint32_t m_position = 0, m_next = 0;
    uint32_t m_kinds = 0;                          // of unusual events that this schedule has
    unsigned m_faults = 0;                         // that are left
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
