// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// configurations.cc -- the programs that run together, and their oracles

#include "simulation.hh"

const std::vector<Configuration> configurations = {
    {.name = "log-3", .servers = 3, .clients = 2, .lines = 2, .last_lines = 1},
    {.name = "log-3-short", .servers = 3, .clients = 2},
    {.name = "log-3-takeovers", .servers = 3, .clients = 4},
    {.name = "log-3-clients", .servers = 3, .clients = 3, .lines = 4, .last_lines = 2},
    {.name = "log-5", .servers = 5, .clients = 2, .lines = 3, .last_lines = 1},
    {.name = "log-3-lines", .servers = 3, .clients = 1, .lines = 12, .last_lines = 12},
    {.name = "log-3-plain",
     .servers = 3,
     .clients = 3,
     .lines = 2,
     .last_lines = 1,
     .plain = 1},
    {.name = "log-15", .servers = 15, .clients = 1, .lines = 1, .last_lines = 1},
    {.name = "log-3-amnesia",
     .servers = 3,
     .clients = 4,
     .lines = 1,
     .last_lines = 1,
     .loses_memory = true},
    {.name = "log-5-amnesia",
     .servers = 5,
     .clients = 4,
     .lines = 1,
     .last_lines = 1,
     .loses_memory = true},
    // The first client is a second server for the log of the first one.
    {.name = "log-3-double",
     .servers = 3,
     .clients = 3,
     .lines = 2,
     .last_lines = 1,
     .first_client = "14-replicated-log-server"},
    // Servers 4 and 5 have another log. The second and third client get a wrong list of
    // servers.
    {.name = "log-3-lists",
     .servers = 5,
     .clients = 4,
     .lines = 2,
     .last_lines = 1,
     .foreign = 2},
    // Servers 4 and 5 have no log. The second and third client create one on them.
    {.name = "log-3-begun",
     .servers = 5,
     .clients = 4,
     .lines = 2,
     .last_lines = 1,
     .foreign = 2},
    // The operator restores an old copy of a log.
    {.name = "log-3-copy",
     .servers = 3,
     .clients = 4,
     .lines = 2,
     .last_lines = 1,
     .copies = true},
};
