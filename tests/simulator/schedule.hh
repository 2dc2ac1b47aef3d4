// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// schedule.hh -- the choices of a schedule: positions where another event replaces the default

#pragma once

#include <string>

#include "explore/choices.hh"

// Option 0 is the default event. Option N is number N - 1 of Simulation::options().
using sim::Choice;

// event_kinds[] describes each kind.
struct Event {
    // clang-format off
    enum Kind : uint8_t { RUN, REQUEST, CM_EVENT, EXECUTE, COMPLETE, FAIL, START, RECONNECT, TIME,
                          BREAK, KILL, POWER, POWER_ALL, DISCONNECT, FREEZE, BLANK, ADDRESS, COPY,
                          REFUSE, KINDS,
                          FIRST_FAULT = BREAK } kind;
    // clang-format on
    uint16_t object; // a connection, or a process and its machine
    uint16_t variant;

    bool is_of_link() const { return (kind >= REQUEST && kind <= FAIL) || kind == BREAK; }
    int side() const { return kind == EXECUTE ? variant / 3 % 2 : kind == BREAK ? 0 : variant; }
    bool passes() const { return variant >= 6; } // of EXECUTE
};

struct EventKind {
    const char *name, *format;
    uint16_t variants;
};
extern const EventKind event_kinds[Event::KINDS];

class Schedule {
  public:
    std::vector<Choice> choices; // the recorded choices, or those to replay
    uint64_t salt = 0;           // the seed of Simulation::random_bit()
    std::vector<std::vector<Event>> *listed = nullptr; // gets the options at each position

    static Schedule random(uint64_t seed, uint32_t kinds);

    void begin() { position_ = next_ = 0; }
    uint32_t position() const { return position_; }
    // Returns true and advances the position if the default event is next.
    bool is_default();
    void stop(); // records that the program yields at this position
    bool may_fault() const { return !random_ || fault_; } // if the options include faults
    // Chooses one of the options. Returns false for the default event.
    bool choose(const std::vector<Event> &options, Event &event);
    void stop_faults() { faults_ = 0; } // from this position on

    bool save(const std::string &file, const std::string &configuration) const;
    bool load(const std::string &file, std::string &configuration);

  private:
    uint32_t pick(const std::vector<Event> &options);

    bool random_ = false, fault_ = false;
    uint64_t state_ = 0;
    uint32_t position_ = 0, next_ = 0;
    uint32_t kinds_ = 0;  // bit mask of the kinds of events that replace the default one
    unsigned faults_ = 0; // how many faults can still occur
    uint64_t fault_limit_ = 0, other_limit_ = 0; // probabilities in units of 2^-32
};
