// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// chooser.hh -- the choices of a schedule: those of a seed, or recorded ones

#pragma once

#include <span>
#include <unordered_map>

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
    uint64_t posts = 0;   // of the same schedule; 0: unknown
    // Programs repeat requests until another one has continued, so that a schedule in another
    // order has more turns.
    static constexpr uint64_t most_turns(uint64_t turns) { return turns + turns / 2 + 1; }
    bool uses_priorities(uint64_t seed) const;
    // Nothing but the order differs: no delay, weakness or fault.
    bool is_order_only(uint64_t seed) const;
    // Faults precede posts, most of them a freeze of the program that posts.
    bool precedes_posts(uint64_t seed) const { return posts != 0 && seed % 8 == 5; }
};

class Chooser {
  public:
    // The seed determines the number of faults, and how likely other options than the default
    // are.
    explicit Chooser(uint64_t seed, const Plan &plan = {Search::RANDOM});
    explicit Chooser(std::vector<sim::Choice> recorded);
    enum Kind {
        TURN,
        DELAY,
        FAULT,
        POWER,
        START,
        WEAKNESS,
        KINDS = WEAKNESS + static_cast<int>(sim::Weakness::COUNT),
        PRIORITY = KINDS // of a thread, after one of its own turns
    };
    // The position of a choice: after a call of the thread that had the last turn, and after
    // some choices of the same kind since. It depends neither on the calls of other threads nor
    // on how often one has waited, so that a schedule without some of the choices has the
    // others at the same moments. A priority follows a call, and some waits, of its own thread.
    struct Place {
        uint64_t kind, thread, call, index; // call: 0 before the first one
        static Place of(const sim::Choice &choice) {
            const uint64_t all = choice.position;
            return {all >> 58, all >> 44 & 0x3fff, all >> 24 & 0xfffff, all & 0xffffff};
        }
        uint64_t position() const { return kind << 58 | thread << 44 | call << 24 | index; }
    };
    static bool is_fault(const sim::Choice &choice) {
        return Place::of(choice).kind == FAULT || Place::of(choice).kind == POWER;
    }
    static bool is_weakness(const sim::Choice &choice) {
        return Place::of(choice).kind >= WEAKNESS && Place::of(choice).kind < KINDS;
    }
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
    bool precedes_posts() const { return precedes_posts_; } // faults do
    // Returns NULL for no fault. `posting`: the program that makes a post next; 0: none. What
    // it has tested before, such as the end of a lease, is no longer true after a freeze.
    const sim::Fault *choose(Kind kind, const sim::ExploredFaults &faults,
                             Window window = Window::NONE, unsigned posting = 0) {
        const uint32_t option = choose(kind, faults.size(), &faults, window, posting);
        return option == 0 ? nullptr : &faults[option - 1];
    }
    // A program starts again: another fault may follow.
    void add_fault();
    struct Turn {
        unsigned thread, instead; // instead: the default
    };
    // Chooses the thread that continues. `ready`: the numbers of threads, in the usual order,
    // and 0 for the clock. The option of the choice is the number and 1.
    Turn choose_turn(std::span<const unsigned> ready);
    void add_call(); // the thread makes one in its turn
    // Gives a thread the highest priority, if threads have different ones.
    void raise(unsigned thread);
    // Of the threads that are ready, the first one with the highest priority continues, by
    // default. The usual priority is 0.
    struct Priority {
        unsigned thread; // 0: the clock
        int64_t value;
    };
    static uint32_t option_of(int64_t priority) {
        return static_cast<uint32_t>((1 << 16) + priority);
    }
    const std::vector<Priority> &changed() const { return changed_; } // for the last turn
    uint64_t turns() const { return turns_; } // also those without a choice

    std::vector<sim::Choice> choices; // the recorded choices, or those to replay
    size_t reached = 0;               // how many of those to replay were made
    bool records_points = false, records_turns = false;
    std::vector<sim::Point> points; // all that could be chosen, or each turn with its thread
  private:
    // `faults`: the options, which have weights; NULL: all options are alike.
    uint32_t choose(Kind kind, size_t options, const sim::ExploredFaults *faults,
                    Window window = Window::NONE, unsigned posting = 0);
    Turn choose_thread(std::span<const unsigned> ready);
    uint64_t next_position(Kind kind) {
        Thread &last = thread(last_);
        return Place{kind, last_, last.calls, last.indices[kind]++}.position();
    }
    bool is_other_than_default(Kind kind, uint64_t limit);
    uint32_t recorded(uint64_t position) const; // 0: no choice
    unsigned highest(std::span<const unsigned> ready);
    unsigned highest_of(std::span<const unsigned> ready) const;
    void set_priority(unsigned thread, int64_t value);
    struct Thread {
        uint64_t calls = 0;
        // Since the last call:
        uint64_t waits = 0, indices[KINDS] = {};
        bool is_prioritized = false; // its priority was looked up
    };
    Thread &thread(uint64_t number);
    uint64_t place_of_priority(unsigned thread);
    void add_priorities(unsigned most);
    bool is_random_ = false, uses_priorities_ = false, precedes_posts_ = false;
    uint64_t turns_ = 0;
    // Each kind has its own numbers, so that a choice does not change those of other kinds.
    uint64_t states_[KINDS] = {};
    uint32_t faults_left_ = 0;
    uint64_t last_ = 0; // the thread that had the last turn
    std::vector<Thread> threads_{};
    std::unordered_map<uint64_t, uint32_t> options_; // to replay, by position
    uint64_t limits_[KINDS] = {};                    // probabilities in units of 2^-32
    std::vector<int64_t> priorities_;                // of the clock and the threads
    std::vector<Priority> changed_{};
    int64_t raised_ = 0;                  // how often a thread was
    std::vector<uint64_t> change_points_; // turns after which a priority is the lowest one
};
