// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.h -- what the parts of the client share: its connection, its memory, and the
// operations of a round

#ifndef CLIENT_H
#define CLIENT_H 1

#define LIBRPMA_NO_DEPRECATED // of functions of older releases
#include "common.h"
#include "operations.h"

enum { CHANGES_MAX = 3, PADDING_MAX = 20, WORDS_MAX = 6, SGES_MAX = 3 };
enum { WORK_MAX = 4 * CHANGES_MAX + PADDING_MAX + 3 };
// Offsets in the local memory.
enum {
    SOURCE = 0,
    RESULT = 2048,
    READ = 2560,
    MESSAGE = 3072,
    DESCRIPTION = 4608,
    BEFORE = 4864,
    LOCAL = 5120
};

extern struct rpma_conn *conn;
extern struct rpma_mr_local *mr;
extern char *local; // its memory
extern size_t area; // the offset of the client's area in the server's memory
extern struct rpma_mr_remote *targets[TARGETS]; // that of the private data, and of the message
extern bool is_emulated;

// ---- posting.c -----------------------------------------------------------------------------

// The operations have the numbers 1, 2 ... as their contexts.
extern struct rpma_work work[WORK_MAX];
extern unsigned work_count;
extern bool may_repeat; // the operations of the round have the same effect if they run twice

void start_posting(const struct completions *completions, unsigned send_queue_size);
void stop_posting(void);
// Returns the context of the next operation.
void *next_number(void);
// Posts the operations of the round in one of the possible ways.
void post_all(void);
void await_all(void);
void read_now(size_t to, size_t from, size_t size);
// A flush that the server or the region does not permit is refused by each call.
void check_refused(struct rpma_mr_remote *target, enum rpma_flush_type type);
// A region accepts the operations of its usage, and no others.
void check_usage(struct rpma_mr_remote *target, unsigned usage);
// Posts operations that fail: the connection cannot be used any more.
void check_failures(void);

// ---- peer_cfgs.c ---------------------------------------------------------------------------

// The descriptors of the server, its direct write, and the flush mode of the connection.
void start_peer_cfgs(const void *bytes, bool direct_write, enum rpma_flush_mode mode);
// Apply a configuration of a server without direct write to PMem, or of one with it.
void forbid_persistent(void);
void permit_persistent(void);
// Applies the second one, at times after the first one.
void change_peer_cfg(void);

// ---- objects.c -----------------------------------------------------------------------------

// Creates completion queues for the connection at times, unless it has a shared channel.
void open_queues(struct rpma_peer *peer, struct rpma_conn_cfg *cfg, bool shared_channel);
void close_queues(void);
// Returns a request that has its queues, in one step or in several.
struct rpma_conn_req *make_request(struct rpma_peer *peer, const struct arguments *args,
                                   const struct rpma_conn_cfg *cfg);
// Waits for a completion in each possible way. Returns the queue with an event, or NULL.
struct rpma_cq *await_queue(struct completions *completions, struct rpma_cq *cq);
// Calls that must not change the connection or its objects.
void check_objects(struct rpma_peer *peer);

#endif // CLIENT_H
