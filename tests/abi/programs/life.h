// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// life.h -- what the programs of all releases do: two sides in one process, connect, exchange
// bytes, part. Only functions that every release had; how completions are taken is the
// program's.

#ifndef LIFE_H
#define LIFE_H 1

#include <librpma.h>

#include "loopback.h"

enum { LIFE_MEMORY = 4096 };

struct side {
    struct rpma_mr_local *mr;
    struct rpma_mr_remote *other; // the memory of the other side
    struct rpma_conn *conn;
    unsigned char *memory; // LIFE_MEMORY bytes
};

struct life {
    const char *address;
    struct rpma_peer *peer;
    struct rpma_ep *ep;
    struct side client, server;
    bool on_device;  // not over the fakes
    bool persistent; // the server's memory is, or seems so
};

// What must hold; otherwise says so and ends the program.
#define CHECK(condition) \
    ((condition) ? (void)0 : life_fail(__FILE__, __LINE__, #condition, 0, false))
#define MUST(call) life_must(__FILE__, __LINE__, #call, (call))
void life_fail(const char *file, int line, const char *text, int ret, bool is_call);
void life_must(const char *file, int line, const char *text, int ret);

// Peer, memory and endpoint. Arguments of the program: the address, and a file on persistent
// memory to be the server's memory; on a device without it nothing is flushed to persistence.
void life_open(struct life *life, int argc, char *argv[]);
// first_receive: op_context of a receive that is posted before the server accepts; NULL: none.
void life_connect(struct life *life, const struct rpma_conn_cfg *cfg,
                  const void *first_receive);
void life_disconnect(struct life *life); // deletes both connections
void life_close(struct life *life);      // disconnects first, if that was not done
// A request of the client that the server does not answer with a connection; the request on the
// client's side, already connecting.
struct rpma_conn *life_refused(struct life *life);

enum kind { READ, WRITE, FLUSH, SEND, RECV, RECV_IMM };

// Waits for the completion with that op_context and checks it: as the release of the program
// did.
typedef void life_take(struct rpma_conn *conn, const void *op_context, enum kind kind);
// A message (into the receive first_receive), a write, a flush, and a read back, all checked.
void life_exchange(struct life *life, life_take *take, const void *first_receive);
// What can be at the end of the server's memory, after a write of 8 bytes by that function.
typedef int life_post_8(struct life *life, size_t offset, const void *op_context);
void life_write_8(struct life *life, life_post_8 *post, life_take *take);

int life_fd(const struct rpma_conn *conn);

#endif // LIFE_H
