// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// life.h -- the common work of the programs of all releases: two sides in one process connect,
// exchange bytes and disconnect. It only uses functions of every release; how to take
// completions is up to the program.

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
    bool persistent; // the server's memory is, or seems so
};

// Ends the program with a message if the condition is false; RPMA_LOG=info says why a call
// failed.
#define CHECK(condition)                                                                   \
    ((condition)                                                                           \
         ? (void)0                                                                         \
         : (fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition), \
            exit(1)))
#define MUST(call) CHECK((call) == 0)

// Makes peer, memory, endpoint and a connection, whose server has posted a receive with this
// life as its op_context. argv: the address, and a file on persistent memory to be the server's
// memory; without it, on a device, nothing is flushed persistently.
void life_open(struct life *life, int argc, char *argv[]);
void life_close(struct life *life);

enum kind { READ, WRITE, FLUSH, SEND, RECV, RECV_IMM };

// Waits for the completion with that op_context and checks it with the functions of the
// release.
typedef void life_take(struct rpma_conn *conn, const void *op_context, enum kind kind);
// A message, a write, a flush, and a read back, all checked.
void life_exchange(struct life *life, life_take *take);
// Posts a write of 8 bytes, with the function of the release, to the end of the server's
// memory.
typedef int life_post_8(struct life *life, size_t offset, const void *op_context);
void life_write_8(struct life *life, life_post_8 *post, life_take *take);

// The calls of loopback.c do nothing on a device, which executes operations. Over the fakes of
// tests/unit, which only record, they execute posted operations in memory and deliver events.
// They look up the fakes at run time, so that one binary runs in both places.
bool loopback_open(void); // false: no fakes, a real device
// An event with this private data arrives at the endpoint or the connection with this
// descriptor.
void loopback_event(int fd, enum rdma_cm_event_type type, const void *data, uint8_t len);
// Executes the operations posted since the last call, and completes them.
void loopback_run(void);
// Returns the library's mistakes and leaks; "" if there are none.
const char *loopback_close(void);

#endif // LIFE_H
