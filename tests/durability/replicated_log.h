// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// replicated_log.h -- what the programs of example 14 do in the test, and what is known of them

#ifndef REPLICATED_LOG_H
#define REPLICATED_LOG_H 1

#include "calls.h"
#include "log_format.h"

#include <setjmp.h>

#define PATIENCE_MS 500 // how long a client waits for a server, at least
#define POLL_MS 50      // of the example: the longest wait of a client

#define SERVERS_MAX 15
#define CLIENTS_MAX 5
#define PROGRAMS_MAX (SERVERS_MAX + CLIENTS_MAX + 1)
#define READER (PROGRAMS_MAX - 1)
#define LINKS_MAX 32

// The log of the foreign servers, of which a third one is not run. Its epoch is larger than any
// of the clients here.
#define FOREIGN_IDENTITY 0x12345673
#define FOREIGN_EPOCH (1U << 30)

// Something that happens when a program prints a line with the text.
struct act {
    const char *program, *text;
    const char *fault; // or "start PROGRAM", "end PROGRAM", "blank PROGRAM"
};

struct setting {
    const char *name;
    unsigned servers, clients;     // without the last client
    unsigned lines, last_lines;    // of each client's standard input, and of the last client's
    unsigned plain;                // servers without a file, the last ones
    unsigned foreign;              // servers, the last ones, that have another log
    bool are_foreign_blank;        // they have no log
    bool loses_memory;             // servers can lose their memories, a minority at a time
    bool copies;                   // an old copy of a log is restored
    bool has_second_server;        // for the log of the first one, instead of the first client
    const struct act *script;      // ends with an act without a program
    const char *error;             // all servers have `log`, which the only client refuses so
    bool damages_header;           // of the first server, when the client has a record
    bool is_damaged;               // the logs are those of damage_logs()
    size_t (*make_log)(char *log); // returns its size
};

// A connection of a client to a server, or of a server to a client.
struct link {
    const void *conn; // NULL: unused
    int server;       // -1: of a server
    uint32_t qp_num;
    unsigned pending; // completions
    int64_t progress; // the active time of the last completion or event, or of a post after it
    bool has_ended;
};

struct state { // of a program
    bool is_done, is_asked_to_stop, has_listened, may_start, is_replaced;
    unsigned tries; // starts that failed
    int lock;       // the descriptor that has the lock, or -1
    jmp_buf end;    // of its main()
    int signals;    // -1: it has not opened them
    // Since its start:
    size_t locked_begin, locked_end;
    unsigned committed, lines_read;
    char input[64];
    size_t input_read;
    bool has_reported_records, has_unreported_disconnect, is_misconfigured, has_logged;
    struct link links[LINKS_MAX];
    int64_t polled, active; // the last poll, and the time in which it has polled, in ms
};

// Returns NULL if there is none.
const struct setting *find_setting(const char *name);

extern const struct setting *setting;
extern char logs[SERVERS_MAX][LOG_SIZE];
extern char addresses[PROGRAMS_MAX][16];
extern struct state states[PROGRAMS_MAX];
extern char committed_lines[1 << 14]; // of all clients, for the reader
extern bool log_exists;               // the operator assumes that the log exists

bool is_server(int program); // also the second one
bool is_second_server(int program);
unsigned log_servers(void);     // without the foreign ones
unsigned lines_of(int program); // of its standard input
void stop_program(int program); // a server

// Checks all logs. Only a program knows what a power failure may change.
void check_logs(bool is_program);
// Returns true if a server has no valid log, or if a power failure can leave none.
bool has_no_log(unsigned server, bool is_program);
unsigned count_without_log(bool is_program);
// ---- the operator

// Acts when a program waits, or has printed a line.
void act_at_wait(int program);
void act_at_line(int program, const char *line);

// Returns the status of the program.
int start_program(int program);
const char *error_of_last_end(void);

// Runs the reader with the logs of `files` servers. Returns its status.
int run_reader(unsigned files);

// A program of the test that runs the others with damaged logs.
int damage_logs(void *argument);

#endif // REPLICATED_LOG_H
