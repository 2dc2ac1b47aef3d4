// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// faults.hh -- the faults of hosts, devices, links and programs: one table for rdma-sim's
// --fault, for explore --faults, and for their help

#pragma once

#include "../protocol/protocol.hh"
#include "calls.hh"

#include <optional>
#include <type_traits>

namespace sim {

struct FaultKind;

struct Fault {
    std::string text; // as it was given
    const FaultKind *kind = nullptr;
    // When it occurs: `time` nanoseconds after the start, after the programs of the host
    // `after` have ended, or at the nth `call` of `caller`.
    uint64_t time = 0;
    unsigned after = 0, caller = 0; // numbers of hosts; 0: none
    const CallName *call = nullptr;
    uint64_t nth = 1;
    // Its arguments.
    std::vector<unsigned> hosts;
    unsigned program = 0; // explore: only this program of the host; 0: all of them
    uint64_t number = 0;  // a duration in nanoseconds, or a count
    uint64_t lasts = 0;   // nanoseconds until it ends; 0: it does not end
    int error = 0;
    ibv_event_type event{};
    const CallName *failing = nullptr;
    bool is_random = false; // of the words that a power failure destroys
};

// What runs the programs of the hosts.
class Machines {
  public:
    virtual ~Machines() = default;
    virtual Fabric &fabric() = 0;
    virtual void kill(const Fault &fault) = 0;
    virtual void start(const Fault &fault) = 0; // those that have started and do not run
    virtual void suspend(const Fault &fault, bool is_suspended) = 0;
    virtual void power_off(const Fault &fault) = 0;
    virtual void set_clock(unsigned host, uint64_t ahead) = 0; // of the time of day
};

enum class FaultArgument { NONE, TIME, COUNT, OPTIONAL_COUNT, EVENT, CALL, RANDOM };

// A fault without an effect does not compile: there is no default, and no null pointer.
template <class Result, class... Arguments> struct Effect {
    template <class Function>
    requires(std::is_convertible_v<Function, Result (*)(Arguments...)> &&
             !std::is_null_pointer_v<Function> &&
             !std::is_pointer_v<Function>) consteval Effect(Function function) // NOLINT
        : apply(function) {}
    Result (*apply)(Arguments...);
};

struct FaultKind {
    const char *name;
    unsigned min_hosts, max_hosts;
    FaultArgument argument;
    const char *arguments, *text;
    Effect<bool, const sim_profile &, const Fault &> is_of_device; // who can have it
    Effect<void, Machines &, const Fault &> effect;
    void (*end)(Machines &, const Fault &) = nullptr; // of "for TIME"; NULL: it has no end
    int error = 0; // the default of the last argument, an error number; 0: it has none
    bool starts_programs = false;
    bool is_only_explored = false; // a plain run cannot have it
    // Without an end, programs on other hosts notice it, and can end.
    bool is_noticed = false;
    bool needs_programs = false; // a fabric in the process of a test has none
    bool sets_clock = false;     // the programs of a test have the clock of the machine
    // explore: the faults that a schedule may choose, separated by ';', in the syntax of
    // --fault. LINK, WAY, HOST, PROGRAM, PMEM (a host with a file of --pmem), CREATING (a
    // call) and EVENT are replaced by all that there are. Empty: explore has other means.
    const char *explored = "";
    const char *former_name = ""; // of explore --faults, before release 1.6
    unsigned weight = 1;          // how often explore chooses it, relative to the others
};

struct FaultEvent {
    const char *name;
    ibv_event_type type;
};
std::span<const FaultKind> fault_kinds();
std::span<const FaultEvent> fault_events();         // of the fault "event"
const FaultKind *find_fault(std::string_view name); // NULL: there is none

// The words of a text, of which any of `dividers` separates two.
std::vector<std::string_view> split_words(std::string_view text, std::string_view dividers);

// Thrown for an invalid text of a fault.
struct BadFault {
    std::string why;
};
// Reads "WHEN ACTION", or only ACTION.
Fault read_fault(std::string_view text);
Fault read_action(std::string_view text);
uint64_t read_duration(std::string_view text); // nanoseconds; UINT64_MAX: invalid
unsigned read_host(std::string_view text);     // of "2" or "host2"; 0: other text

bool is_possible(const sim_profile &device, const Fault &fault);
void apply(Machines &machines, const Fault &fault); // begins the fault
void end(Machines &machines, const Fault &fault);   // after fault.lasts

// The faults that occur at a call, until the call is made.
class CallFaults {
  public:
    struct Pending {
        const Fault *fault;
        uint64_t calls = 0; // how many were made
    };
    void add(const Fault &fault) { pending_.push_back({&fault}); }
    const std::vector<Pending> &pending() const { return pending_; }
    // Counts a request. Returns, and removes, the faults that precede it.
    std::vector<const Fault *> take(const Fabric &fabric, const Caller &caller,
                                    std::span<const std::byte> request);

  private:
    std::vector<Pending> pending_;
};

// The text of --fault help: actions, events, errors and calls.
std::string list_faults();
bool is_explored(std::string_view name); // explore --faults NAME
// The names of explore --faults with their texts.
std::string list_explored_faults();

// What a schedule of explore can choose.
struct ExploredFaults {
    struct Group {
        const FaultKind *kind;
        std::vector<Fault> faults;
    };
    std::vector<Group> groups; // of one kind each
    size_t size() const;
    const Fault &operator[](size_t number) const; // of all groups, in their order
    // Chooses a kind by its weight, then a fault of this kind.
    size_t choose(uint64_t random) const;
    // Chooses a fault of the kind with this name, and of the program (0: of any), if there is
    // one.
    std::optional<size_t> choose(std::string_view name, uint64_t random,
                                 unsigned program = 0) const;
};
struct ExploredHosts {
    std::vector<const sim_profile *> devices; // of host1, host2 ...
    std::vector<unsigned> programs;           // the hosts of the programs
    std::vector<unsigned> pmem;               // the hosts with a file of --pmem
};
// `names` of kinds; empty: all kinds.
ExploredFaults explored_faults(const ExploredHosts &hosts,
                               const std::vector<std::string_view> &names);
// Those of one kind that do not end.
ExploredFaults lasting_faults(const ExploredHosts &hosts, std::string_view name);

} // namespace sim
