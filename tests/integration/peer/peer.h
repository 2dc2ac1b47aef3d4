/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/*
 * peer.h -- the objects of one side and the commands that work on them
 *
 * A test drives one process per side over its standard input; every object has a number, which
 * is 0 unless the command says otherwise.
 */

#ifndef PEER_PEER_H
#define PEER_PEER_H 1

#include <librpma.h>

#include "args.h"

#define MAX_CONNS 1024
#define MAX_REGIONS 72
#define MAX_OTHERS 8

struct memory {
    char *base;
    size_t size;
};

#define PATIENCE_MS 60000 // to resolve an address, on a busy machine

struct world {
    struct ibv_context *device;
    struct rpma_peer *peer;
    struct rpma_ep *ep;
    struct memory memory[MAX_REGIONS];
    struct rpma_mr_local *mr[MAX_REGIONS];
    struct rpma_mr_remote *remote[MAX_REGIONS];
    struct rpma_conn_cfg *cfg[MAX_OTHERS];
    struct rpma_srq *srq[MAX_OTHERS];
    struct rpma_cq *lent[MAX_OTHERS]; /* made by this program, for its connections */
    struct rpma_conn_req *req[MAX_CONNS];
    struct rpma_conn *conn[MAX_CONNS];
    struct rpma_batch *batch[MAX_OTHERS];
    int epoll_fd;
};

extern struct world world;

/* Results of commands besides the codes of librpma. */
#define ERR_TIMEOUT 1  /* an expected completion or event did not come */
#define ERR_MISMATCH 2 /* data differ; the answer says where */
#define ERR_SYSTEM 3   /* a call to the system failed; the answer says which */
#define ERR_CLOSED 4   /* the connection ended, and no completion said so */

const char *code_name(int ret);

/* The object of a command; a script that names a missing object is wrong. */
struct rpma_conn *the_conn(const struct args *args);
struct rpma_cq *the_queue(const struct args *args);
struct rpma_conn_req *the_request(const struct args *args);
struct rpma_batch *the_batch(const struct args *args);

/* Polls fd for reading: 0, ERR_TIMEOUT or ERR_SYSTEM. */
int wait_readable(int fd, int timeout_ms);
/* Milliseconds of the monotonic clock. */
int64_t now_ms(void);

/* Content that depends on seed and place, so that neither old nor moved bytes pass. */
void pattern_fill(char *bytes, size_t count, uint64_t seed);
/* The first offset that differs, or count. */
size_t pattern_check(const char *bytes, size_t count, uint64_t seed);

struct command {
    const char *verb;
    int (*run)(const struct args *args);
};

extern const struct command setup_commands[];
extern const struct command memory_commands[];
extern const struct command connect_commands[];
extern const struct command data_commands[];
extern const struct command atomic_commands[];
extern const struct command packed_commands[];
extern const struct command batch_commands[];
extern const struct command batch_load_commands[];
extern const struct command wait_commands[];
extern const struct command event_commands[];
extern const struct command load_commands[];
extern const struct command churn_commands[];
extern const struct command process_commands[];
extern const struct command crowd_commands[];
extern const struct command raw_commands[];
extern const struct command serve_commands[];
extern const struct command line_commands[];

#endif /* PEER_PEER_H */
