// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// chooser.hh -- the choices of a schedule: those of a seed, or recorded ones

#pragma once

#include <span>

#include "../model/faults.hh"
#include "choices.hh"

enum class Search { MIXED, RANDOM, PRIORITIES, EXHAUSTIVE };
// KIND, or exhaustive:CHOICES.
struct SearchOption {
    Search kind;
    std::optional<std::string_view> choices; // of a schedule of an enumeration, at most
};
std::optional<SearchOption> find_search(std::string_view text); // of --search

// How a seed determines its choices.
struct Plan {
    static constexpr unsigned DEPTH = 3; // of the mistakes for which there is a bound
    Search search = Search::MIXED;
    size_t threads = 0;   // of the programs, and the clock, in a schedule without choices
    uint64_t turns = 100; // of a schedule without choices
    // Programs repeat requests until another one has continued, so that a schedule in another
    // order has more turns.
    static constexpr uint64_t most_turns(uint64_t turns) { return turns + turns / 2 + 1; }
    bool uses_priorities(uint64_t seed) const;
    // Nothing but the order differs: no delay, weakness or fault.
    bool is_order_only(uint64_t seed) const;
};

class Chooser {
  public:
    // The seed determines the number of faults, and how likely other options than the default
    // are.
    explicit Chooser(uint64_t seed, const Plan &plan = {Search::RANDOM});
    explicit Chooser(std::vector<sim::Choice> recorded) : choices(std::move(recorded)) {}
    enum Kind {
        TURN,
        DELAY,
        FAULT,
        POWER,
        START,
        WEAKNESS,
        KINDS = WEAKNESS + static_cast<int>(sim::Weakness::COUNT)
    };
    static bool is_fault(const sim::Choice &choice) { return choice.position % KINDS == FAULT; }
    // Returns an option from 1 to `options`, or 0 for the default.
    uint32_t choose(Kind kind, size_t options) { return choose(kind, options, nullptr); }
    uint32_t choose(sim::Weakness weakness, size_t options) {
        return choose(static_cast<Kind>(WEAKNESS + static_cast<int>(weakness)), options);
    }
    // The moments in which a fault matters most, which have more faults than others.
    enum class Window {
        NONE,
        IN_FLIGHT,      // between a post and its completion
        RECOVERY,       // after a program was started again: power failures before others
        NOT_PERSISTENT, // between a write and its flush: also
    };
    struct Moment {
        bool has_unpersisted, has_timer;
        uint64_t turn, posted_at, restarted_at; // numbers of turns; the last two: 0 for never
    };
    static Window window_of(const Moment &moment);
    // Returns NULL for no fault.
    const sim::Fault *choose(Kind kind, const sim::ExploredFaults &faults,
                             Window window = Window::NONE) {
        const uint32_t option = choose(kind, faults.size(), &faults, window);
        return option == 0 ? nullptr : &faults[option - 1];
    }
    // A program starts again: another fault may follow.
    void add_fault();
    // Returns the index of the program that continues. `ready`: the numbers of threads, of
    // which the first one is the default, and 0 for the clock.
    uint32_t choose_turn(std::span<const unsigned> ready);
    // Gives a thread the highest priority.
    void raise(unsigned thread);
    uint64_t turns() const { return turns_; } // also those without a choice

    std::vector<sim::Choice> choices; // the recorded choices, or those to replay
    size_t reached = 0;               // how many of those to replay were made
    bool records_points = false;      // of an enumeration
    std::vector<sim::Choice> points;  // each choice, with its last option
  private:
    // `faults`: the options, which have weights; NULL: all options are alike.
    uint32_t choose(Kind kind, size_t options, const sim::ExploredFaults *faults,
                    Window window = Window::NONE);
    uint32_t next_position(Kind kind) { return positions_[kind]++ * KINDS + kind; }
    uint32_t recorded(uint32_t position, size_t options);
    void record(uint32_t position, uint32_t option);
    void add_priorities(unsigned most);
    bool is_random_ = false, uses_priorities_ = false;
    uint64_t turns_ = 0;
    // Each kind has its own numbers and positions, so that a choice does not change those of
    // other kinds.
    uint64_t states_[KINDS] = {};
    uint32_t positions_[KINDS] = {}, faults_left_ = 0;
    uint64_t limits_[KINDS] = {};         // probabilities in units of 2^-32
    std::vector<int64_t> priorities_;     // of the clock and the threads
    std::vector<uint64_t> change_points_; // turns after which a priority is the lowest one
};
