// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// replicated_log_settings.c -- the programs of example 14 that run together

#include "replicated_log.h"

#include <string.h>

// A client is suspended while another one takes over and commits records on two servers, of
// which one loses its log. Then the older client continues, and finds the server without a log
// before it finds an epoch of the other client: it must not count that server.
static const struct act stale_client[] = {{"client1", "committed 0", "freeze host4 for 70s"},
                                          {"client1", "committed 0", "freeze host3 for 70s"},
                                          {"client1", "committed 0", "start client2"},
                                          {"client2", "client: 4 records", "blank server1"},
                                          {NULL, NULL, NULL}};

// The second client's record reaches only one server, and that server is suspended while a
// third client commits another record of the same number on the others. The fourth client finds
// both logs: the one with the higher epoch is valid.
static const struct act same_number[] = {
    {"client2", "client: server 10.77.0.3 has all 1", "cut host2 for 5s"},
    {"client2", "client: server 10.77.0.3 has all 1", "cut host3 for 5s"},
    {"client2", "client: server 10.77.0.2 is lost", "kill host2 for 1s"},
    {"client2", "client: server 10.77.0.2 is lost", "kill host3 for 1s"},
    {"client2", "client: server 10.77.0.2 is lost", "freeze host1 for 70s"},
    {"client2", "client: server 10.77.0.2 is lost", "end client2"},
    {"client3", "committed 1", "kill host1 for 1s"},
    {NULL, NULL, NULL}};

static size_t make_last_epoch(char *log) {
    const size_t size = make_empty_log(log, 1, FOREIGN_IDENTITY);
    const size_t end = add_record(log, size, 64, 0, 1);
    set_number(log, EPOCH_PLACE, UINT32_MAX);
    return end;
}

// Records of maximum size until the log is full.
static size_t make_full_log(char *log) {
    size_t size = make_empty_log(log, 1, FOREIGN_IDENTITY);
    for (uint64_t number = 0; size < LOG_SIZE; number++) {
        const size_t room = LOG_SIZE - size, half = room / 2 / WORD * WORD;
        size = add_record(log, size,
                          room <= PAYLOAD_MAX  ? room
                          : half < PAYLOAD_MAX ? half
                                               : PAYLOAD_MAX,
                          number, 1);
    }
    return size;
}

static size_t make_lost_log(char *log) {
    return make_empty_log(log, 0, 0);
}

static const struct setting settings[] = {
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
    {.name = "log-3-double",
     .servers = 3,
     .clients = 3,
     .lines = 2,
     .last_lines = 1,
     .has_second_server = true},
    // The second and third client get a wrong list of servers,
    {.name = "log-3-lists",
     .servers = 5,
     .clients = 4,
     .lines = 2,
     .last_lines = 1,
     .foreign = 2},
    // or create another log on servers 4 and 5.
    {.name = "log-3-begun",
     .servers = 5,
     .clients = 4,
     .lines = 2,
     .last_lines = 1,
     .foreign = 2,
     .are_foreign_blank = true},
    {.name = "log-3-copy",
     .servers = 3,
     .clients = 4,
     .lines = 2,
     .last_lines = 1,
     .copies = true},
    {.name = "log-3-stale-client",
     .servers = 3,
     .clients = 2,
     .lines = 1,
     .last_lines = 1,
     .loses_memory = true,
     .script = stale_client},
    {.name = "log-3-same-number", .servers = 3, .clients = 3, .script = same_number},
    {.name = "log-3-last-epoch",
     .servers = 3,
     .make_log = make_last_epoch,
     .error = "no epoch is left"},
    {.name = "log-3-full",
     .servers = 3,
     .last_lines = 1,
     .make_log = make_full_log,
     .error = "the log is full"},
    {.name = "log-3-lost", .servers = 3, .make_log = make_lost_log, .error = "no valid log"},
    {.name = "log-3-damaged",
     .servers = 3,
     .clients = 1,
     .lines = 3,
     .last_lines = 1,
     .damages_header = true},
    {.name = "log-3-damage", .servers = 3, .is_damaged = true},
};

const struct setting *find_setting(const char *name) {
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        if (!strcmp(settings[i].name, name))
            return &settings[i];
    return NULL;
}
