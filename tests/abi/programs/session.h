// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// session.h -- the common part of the programs of all releases: two sides in one process
// connect, exchange bytes and disconnect. It uses only functions that every release has; the
// program takes the completions.

#ifndef SESSION_H
#define SESSION_H 1

#include <librpma.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

enum { SESSION_MEMORY = 4096 };

struct side {
    struct rpma_mr_local *mr;
    struct rpma_mr_remote *other; // the other side's memory
    struct rpma_conn *conn;
    unsigned char *memory; // SESSION_MEMORY bytes
};

struct session {
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
// session as its op_context. argv: the address, and optionally a file on persistent memory for
// the server. Without the file, a device gets no persistent flush.
void session_open(struct session *session, int argc, char *argv[]);
void session_close(struct session *session);

enum kind { READ, WRITE, FLUSH, SEND, RECV, RECV_IMM };

// Waits for the completion with this op_context and checks it with the functions of the
// release.
typedef void session_take(struct rpma_conn *conn, const void *op_context, enum kind kind);
// Executes and checks a message, a write, a flush, and a read.
void session_exchange(struct session *session, session_take *take);
// Posts a write of 8 bytes to the end of the server's memory, with the function of the release.
typedef int session_post_8(struct session *session, size_t offset, const void *op_context);
void session_write_8(struct session *session, session_post_8 *post, session_take *take);

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

#endif // SESSION_H
