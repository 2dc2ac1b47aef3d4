// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// block_mover.h -- what the programs of example 15 do in the test, and what is known of them

#ifndef BLOCK_MOVER_H
#define BLOCK_MOVER_H 1

#include "calls.h"
#include "common.h"

#include <setjmp.h>

// Of the example.
#define STORE_BLOCKS 32
#define PASSES 3
#define DEPTH 8 // requests of a client
#define PATIENCE_MS 500
#define MISSED_MAX 4
#define GAP_MS 200

#define SERVERS_MAX 4
#define CLIENTS_MAX 9
#define PROGRAMS_MAX (SERVERS_MAX + CLIENTS_MAX)
#define RECEIVES_MAX 128
#define NUMBERS_MAX 64  // of queue pairs that are remembered
#define DAMAGED_BLOCK 4 // of the first server
#define FILE_SIZE ((STORE_BLOCKS + 2) * BLOCK_SIZE)

struct setting {
    const char *name;
    unsigned servers, clients;
    const char *first_client; // the module of the first one, which is invalid
    bool is_damaged, is_endless, is_full;
};

struct configuration {
    const char *name, *device;
    unsigned schedules;
    const char *faults, *search;
    bool removes_device, refuses_posts;
    bool is_without_loss; // no connection ends without a reason
};

// A connection of a client to a server.
struct link {
    bool is_connected, is_begun; // is_begun: since the port came up
    uint32_t qp_num;
    unsigned missed;               // consecutive connections without a reply in time
    int64_t progress, before_wait; // time of the last reply, or of the connection
};

struct state { // of a program
    bool is_done, is_asked_to_stop;
    jmp_buf end; // of its main()
    int signals; // -1: it has not opened them
    // Since its start:
    unsigned passes;
    uint32_t qp_num; // the last one that it has asked for
    int64_t port_up; // when it got the event; 0: it has moved a block since
    bool has_waited; // since then
    bool has_reported_bad_reply;
    struct link links[SERVERS_MAX];
    unsigned connections[CLIENTS_MAX + 1]; // of a server: by the number of the client
    const void *posted[RECEIVES_MAX];      // receives
    unsigned posted_count, posted_size;
    unsigned setups; // queue pairs that it has created
    struct {
        const void *conn;
        uint32_t number;
        unsigned setups; // when it was deleted; UINT_MAX: it was not
    } numbers[NUMBERS_MAX];
    unsigned number_count;
};

extern const struct setting *setting;
extern const struct configuration *chosen;
extern int form; // of the untrusted client, or of bad replies
extern char addresses[PROGRAMS_MAX][16];
extern char file_bytes[FILE_SIZE]; // of the first server
extern uint32_t sum;               // of all blocks
extern struct state states[PROGRAMS_MAX];

bool is_server(int program);
bool is_untrusted(int program);

// Returns the first mistake of a schedule, or NULL.
const char *mistake_at_end(void);

#endif // BLOCK_MOVER_H
