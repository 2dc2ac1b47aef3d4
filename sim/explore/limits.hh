// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// limits.hh -- limits, delays and texts of a schedule, whether its programs are processes or
// threads of a test

#pragma once

#include "../model/scheduler.hh"
#include "chooser.hh"

#include <algorithm>
#include <string>
#include <utility>

constexpr uint64_t NEVER = UINT64_MAX, MICROSECOND = 1'000, SECOND = 1'000'000'000;
constexpr uint64_t MAX_REQUESTS = 200'000; // of a schedule
constexpr unsigned MANY_WAITS = 500;       // of each program that waits for ever
constexpr int MAX_TURN = 10'000;           // milliseconds of real time

// The waits of a program with different ends, since the last progress of any program.
class TimedWaits {
  public:
    // `progress`: a number that changes with each progress.
    void add(uint64_t end, uint64_t progress) {
        if (std::exchange(progress_, progress) != progress)
            count_ = 0;
        count_ += std::exchange(end_, end) != end; // another thread can wake a wait
    }
    bool last_for_ever() const { return end_ == NEVER || count_ >= MANY_WAITS; }

  private:
    uint64_t end_ = 0, progress_ = 0;
    unsigned count_ = 0;
};

// Programs that only wait will do so for ever: after this time, and so many waits. A program
// that has waited a few times will continue, although others, such as one with a periodic
// message, wait often meanwhile. After a fault, programs may wait for ever.
template <class AllLast>
bool is_idle(uint64_t time, uint64_t waits, bool is_after_fault, AllLast all_last_for_ever) {
    return (is_after_fault && waits > 10'000) ||
           (time > 1000 * SECOND && waits > 5'000 && (is_after_fault || all_last_for_ever()));
}

// The options of Chooser::DELAY.
constexpr uint64_t LATE[] = {10 * MICROSECOND, 100'000 * MICROSECOND};

inline std::string late_text(sim::Delayed what, uint32_t option) {
    constexpr const char *DELAYED[] = {"a message", "the request", "a response", "a packet"};
    constexpr const char *TIMES[] = {"10 us", "100 ms"};
    return std::string(DELAYED[static_cast<size_t>(what)]) + " arrives " + TIMES[option - 1] +
           " late";
}

inline std::string priority_text(const Chooser::Priority &priority) {
    return (priority.thread == 0 ? "the clock gets priority " : "gets priority ") +
           std::to_string(priority.value);
}

inline std::string weakness_text(sim::Weakness weakness) {
    const sim::WeaknessKind &kind = sim::kind_of(weakness);
    return std::string("weakness ") + kind.name + ": " + kind.text;
}

// While a program polls, time advances in growing steps. A poll after a wait that has ended by
// its time limit is not the next of a sequence: a program that waits for 50 ms and then polls
// gets the turn every 50 ms, and has its own time limits. A long sequence of such waits, or of
// sleeps, is a poll as well.
class Polling {
  public:
    void progress(uint64_t now) {
        since_ = now;
        waits_ = sleeps_ = 0;
    }
    void waited(uint64_t now) {
        if (++waits_ <= MAX_WAITS)
            since_ = now;
    }
    uint64_t next(uint64_t now) const {
        return now + std::min(std::max((now - since_) / 8, MICROSECOND), SECOND);
    }
    uint64_t end_of_sleep(uint64_t now, uint64_t end) {
        return ++sleeps_ > MAX_SLEEPS ? std::max(end, next(now)) : end;
    }

  private:
    static constexpr unsigned MAX_WAITS = 100, MAX_SLEEPS = 1000;
    uint64_t since_ = 0;
    unsigned waits_ = 0, sleeps_ = 0;
};
