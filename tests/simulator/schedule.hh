// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// schedule.hh -- the choices of a schedule: where another event replaced the default one

#ifndef SIMULATOR_SCHEDULE_HH
#define SIMULATOR_SCHEDULE_HH 1

#include <string>

#include "explore/choices.hh"

// Option 0 is the default event, before which the invariants are checked; the others are
// numbered as Simulation::options() lists them.
using sim::Choice;

// event_kinds[] describes each kind.
struct Event {
    // clang-format off
    enum Kind : uint8_t { RUN, REQUEST, CM_EVENT, EXECUTE, COMPLETE, FAIL, START, RECONNECT, TIME,
                          BREAK, KILL, POWER, POWER_ALL, DISCONNECT, FREEZE, BLANK, ADDRESS, COPY,
                          KINDS,
                          FIRST_FAULT = BREAK } kind;
    // clang-format on
    uint16_t object; // a connection, or a process and its machine
    uint16_t variant;

    bool is_of_link() const { return (kind >= REQUEST && kind <= FAIL) || kind == BREAK; }
    int side() const { return kind == EXECUTE ? variant / 3 : kind == BREAK ? 0 : variant; }
};

struct Event_kind {
    const char *name, *format;
    uint16_t variants;
};
extern const Event_kind event_kinds[Event::KINDS];

class Schedule {
  public:
    std::vector<Choice> choices; // choices made, or to be made
    uint64_t salt = 0;           // for Simulation::random_bit(), whose results are not choices
    std::vector<std::vector<Event>> *listed = nullptr; // the options at each position

    static Schedule random(uint64_t seed, uint32_t kinds);

    void begin() { m_position = m_next = 0; }
    uint32_t position() const { return m_position; }
    // Returns true if the default event is next, and passes the position.
    bool is_default();
    void stop(); // interrupts a program here, for any next event
    bool may_fault() const { return !m_random || m_fault; } // the options may be faults
    // Otherwise chooses the event; returns false for the default one.
    bool choose(const std::vector<Event> &options, Event &event);
    void stop_faults() { m_faults = 0; } // from now on

    bool save(const std::string &file, const std::string &configuration) const;
    bool load(const std::string &file, std::string &configuration);

  private:
    uint32_t pick(const std::vector<Event> &options);

    bool m_random = false, m_fault = false;
    uint64_t m_state = 0;
    uint32_t m_position = 0, m_next = 0;
    uint32_t m_kinds = 0;  // kinds of events of this schedule, besides the default one
    unsigned m_faults = 0; // faults left
    uint64_t m_fault_limit = 0, m_other_limit = 0; // probabilities, out of 2^32
};

#endif
