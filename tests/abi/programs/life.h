// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// life.h -- the common part of the programs of all releases: two sides in one process connect,
// exchange bytes and disconnect. It uses only functions that every release has; the program
// takes the completions.

#ifndef LIFE_H
#define LIFE_H 1

#include <librpma.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

enum { LIFE_MEMORY = 4096 };

struct side {
    struct rpma_mr_local *mr;
    struct rpma_mr_remote *other; // the other side's memory
    struct rpma_conn *conn;
    unsigned char *memory; // LIFE_MEMORY bytes
};

struct life {
    const char *address;
    struct rpma_peer *peer;
    struct rpma_ep *ep;
    struct side client, server;
    bool persistent; // the server's memory is, or seems persistent
};

// Ends the program with a message if the condition is false; RPMA_LOG=info shows the reason of
// a failed call.
#define CHECK(condition)                                                                   \
    ((condition)                                                                           \
         ? (void)0                                                                         \
         : (fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition), \
            exit(1)))
#define MUST(call) CHECK((call) == 0)

// Creates peer, memory, endpoint and a connection, whose server has posted a receive with this
// life as its op_context. argv: the address, and optionally a file on persistent memory for the
// server. Without the file, a device gets no persistent flush.
void life_open(struct life *life, int argc, char *argv[]);
void life_close(struct life *life);

enum kind { READ, WRITE, FLUSH, SEND, RECV, RECV_IMM };

// Waits for the completion with this op_context and checks it with the functions of the
// release.
typedef void life_take(struct rpma_conn *conn, const void *op_context, enum kind kind);
// Executes and checks a message, a write, a flush, and a read.
void life_exchange(struct life *life, life_take *take);
// Posts a write of 8 bytes to the end of the server's memory, with the function of the release.
typedef int life_post_8(struct life *life, size_t offset, const void *op_context);
void life_write_8(struct life *life, life_post_8 *post, life_take *take);

// On a device, which executes operations, the functions of loopback.c do nothing. With the
// fakes of tests/unit, which only record, they execute posted operations in memory and deliver
// events. They look up the fakes at run time, so that one binary supports both.
bool loopback_open(void); // false: no fakes, a real device
// An event with this private data arrives at the endpoint or the connection with this
// descriptor.
void loopback_event(int fd, enum rdma_cm_event_type type, const void *data, uint8_t len);
// Executes the operations posted since the last call, and completes them.
void loopback_run(void);
// Returns the library's misuses and leaks, or "".
const char *loopback_close(void);

#endif // LIFE_H
