/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* replica.h -- a server as the client sees it: a copy of the log that may fail and return */

#ifndef REPLICA_H
#define REPLICA_H 1

#include "log.h"

#define REPLICAS_MAX 15
#define WINDOW 8          /* records by which a slow server may be behind the others */
#define PATIENCE_MS 2000  /* a server that does nothing for so long counts as lost */
#define START_MS 5000     /* so long a client that begins waits for all servers, */
#define MAJORITY_MS 60000 /* and so long for a majority */
#define RETRY_MS 500      /* a lost server is tried again after that */

/*
 * The state of a server as this client knows it. It was read over the present connection,
 * during which no other client can change the server's memory; a server that gets lost begins
 * anew.
 */
enum replica_state {
    LOST,
    CONNECTING,
    CONNECTED, /* nothing is known of its log */
    KNOWN,     /* its epoch is known */
    PROMISED,  /* it holds this client's epoch, persistently */
    READ,      /* its log was read after that */
    MEMBER,    /* its log is that of the client; each new record goes there */
};

struct replica {
    const char *addr, *port;
    enum replica_state state;
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    int event_fd, cq_fd;
    struct rpma_mr_remote *log;
    bool persistent; /* flushed data survives a power failure there */
    enum rpma_flush_type flush_type;
    uint64_t epoch;     /* in its header */
    uint64_t identity;  /* in its header */
    uint64_t count;     /* records that are known to be there */
    unsigned pending;   /* completions to come */
    int64_t alive_time; /* in ms: of the last sign of life, or when it was lost */
};

struct replicas {
    struct rpma_peer *peer;
    struct rpma_conn_cfg *cfg;
    unsigned count, majority;
    int64_t news_time; /* in ms: when the client last looked for news */
    struct replica replica[REPLICAS_MAX];
};

/* Milliseconds of a clock that nobody sets. */
int64_t clock_ms(void);

struct replicas open_replicas(const struct arguments *args);
void close_replicas(struct replicas *replicas);

/* Begins to connect those that were lost some time ago. */
void reconnect(struct replicas *replicas);

/* Waits a short while for anything to happen, and takes note of it, like take_news(). */
void await_news(struct replicas *replicas);

/* Takes note of the records that have arrived, of new connections and of lost servers. */
void take_news(struct replicas *replicas);

/* How many are in that state at least. */
unsigned count_replicas(const struct replicas *replicas, enum replica_state state);

/* How many members have so many records at least. */
unsigned count_members(const struct replicas *replicas, uint64_t records);

/* How many members have so many records at least, and keep them in persistent memory. */
unsigned count_persistent(const struct replicas *replicas, uint64_t records);

void lose_replica(struct replica *replica, const char *reason);

/*
 * Posts the operations that append a record: the bytes from place to tail are written and
 * flushed, then the tail is moved behind them and flushed. Memory and log have the same
 * offsets, counted from base in the memory.
 */
void post_record(struct replica *replica, const struct rpma_mr_local *mr, size_t base,
                 size_t place, size_t tail, uint64_t number);

/* These wait until it is done, and return false when the server got lost meanwhile. transfer()
 * reads a part of the log, or writes and flushes it; store_number() does so with a number of
 * the header, which it seals. */
bool transfer(struct replicas *replicas, struct replica *replica, enum rpma_work_type type,
              const struct rpma_mr_local *mr, size_t base, size_t begin, size_t end);
bool store_number(struct replicas *replicas, struct replica *replica, size_t place,
                  uint64_t number);

#endif
