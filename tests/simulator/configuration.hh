// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// configuration.hh -- which programs run, and what they promise

#ifndef SIMULATOR_CONFIGURATION_HH
#define SIMULATOR_CONFIGURATION_HH 1

#include "process.hh"

#include <vector>

using Arguments = std::vector<std::string>;

// How the programs of an example are run, and its invariants.
struct Oracle {
    bool has_reader = false;
    bool serves_one = false;   // a server ends after its client, and is started for the next
    bool heeds_device = false; // the events of ports, and that a device is removed
    unsigned hurries = 0; // how often time passes before what is on the way arrives, 0: any
    Arguments (*arguments)(const Process &process);
    void (*begin)() = [] {};                             // a schedule begins
    void (*said)(Process &, const char *) = ignore_line; // a program printed a line
    void (*completed)(Process &) = ignore;               // the client took a completion
    void (*ended)(Process &) = ignore;                   // a process ended by itself
    void (*check)() = [] {}; // looks at the memories, after each step that changed one
    void (*waits)(Process &) = ignore;                   // a process has nothing to do any more
    bool (*may_forget)(const Process &server) = nullptr; // whether its memory may be lost now

    static void ignore(Process &) {}
    static void ignore_line(Process &, const char *) {}
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
};

// What fill_block() of the examples makes of a number.
constexpr size_t BLOCK_SIZE = 4096, BLOCKS_MAX = 4;
const char *block_of(unsigned number);

// Damages logs of example 14 in all ways, and sees what its programs do. Yields how many; a
// finding is in world.finding.
unsigned damage_logs();

extern const Oracle promise, atomic_write, replicated_log, block_mover, pitfalls;

#endif
