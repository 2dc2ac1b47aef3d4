// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// configuration.hh -- the programs of each example, and their invariants

#ifndef SIMULATOR_CONFIGURATION_HH
#define SIMULATOR_CONFIGURATION_HH 1

#include "process.hh"

#include <vector>

using Arguments = std::vector<std::string>;

// An example and its invariants. All functions but those for arguments may be NULL.
struct Example {
    const char *name; // of its directory
    bool has_reader;
    bool serves_one; // a server ends after its client, and is started for the next one
    bool clients_have_files;
    bool heeds_device; // its programs heed the events of ports, and that a device is removed
    unsigned
        hurries; // how often time passes before what is on the way arrives, or 0: any number
    Arguments (*server_arguments)(const Process &server);
    Arguments (*client_arguments)(const Process &client);
    void (*begin)();                                  // a schedule begins
    void (*said)(Process &process, const char *line); // a program printed a line
    void (*completed)(Process &client);               // the client took a completion
    void (*ended)(const Process &process);            // a process ended by itself
    void (*check)(); // checks the invariants, after each step that changed memory
    void (*waits)(const Process &process);     // a process has nothing to do any more
    bool (*may_forget)(const Process &server); // whether the server's memory may be lost now
};

struct Configuration {
    const char *name;
    const Example *example;
    unsigned servers, clients; // one more client runs at the end
    unsigned lines;            // of each client's standard input
    unsigned last_lines;       // of the last client's
    bool forgets;              // memories may be lost
    const char *option;        // of the example's variant, or NULL
};

// Damages logs of example 14 in all ways, and sees what its programs do. Yields how many; a
// finding is in world.finding.
unsigned damage_logs();

extern const Example connection, read_to_volatile, read_to_persistent, write_to_persistent,
    flush_to_persistent, multiple_connections, atomic_write, ping_pong, gpspm, send_with_imm,
    write_with_imm, receive_cq, shared_receives, replicated_log, block_mover, pitfalls;
extern const Configuration configurations[];
const Configuration *find_configuration(const std::string &name);

#endif
