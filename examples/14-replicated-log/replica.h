/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* replica.h -- a server from the client's view: a copy of the log that may fail and return */

#ifndef REPLICA_H
#define REPLICA_H 1

#include "log.h"

#define REPLICAS_MAX 15
#define WINDOW 8              /* records that a slow server may lack */
#define REPLY_TIMEOUT_MS 2000 /* a server without progress for this time is lost */
#define START_MS 5000         /* a starting client waits this long for all servers, */
#define MAJORITY_MS 60000     /* and this long for a majority */
#define RETRY_MS 500          /* time until the next attempt to connect a lost server */

/*
 * The client's view of a server's state. It was read over the present connection, during which
 * no other client can change the server's memory; a server whose connection is lost starts
 * again.
 */
enum replica_state {
    LOST,
    CONNECTING,
    CONNECTED, /* its log has not been read */
    KNOWN,     /* its epoch was read */
    PROMISED,  /* it holds this client's epoch, persistently */
    READ,      /* its log was read after that */
    MEMBER,    /* its log equals the client's; it gets each new record */
};

struct replica {
    const char *addr, *port;
    enum replica_state state;
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    int event_fd, cq_fd;
    struct rpma_mr_remote *log;
    bool persistent; /* flushed data on it survives a power failure */
    enum rpma_flush_type flush_type;
    uint64_t epoch;     /* in its header */
    uint64_t identity;  /* in its header */
    uint64_t count;     /* records that the server is known to have */
    unsigned pending;   /* expected completions */
    int64_t alive_time; /* in ms: of the last progress, or of the loss */
};

struct replicas {
    struct rpma_peer *peer;
    struct rpma_conn_cfg *cfg;
    unsigned count, majority;
    int64_t polled_time; /* in ms: of the client's last poll */
    struct replica replica[REPLICAS_MAX];
};

/* Milliseconds of a clock that is never set. */
int64_t clock_ms(void);

struct replicas open_replicas(const struct arguments *args);
void close_replicas(struct replicas *replicas);

/* Starts connecting to the servers that were lost some time ago. */
void reconnect(struct replicas *replicas);

/* Waits a short time for an event, and calls handle_events(). */
void await_events(struct replicas *replicas);

/* Processes completed records, new connections and lost servers. */
void handle_events(struct replicas *replicas);

/* The number of servers in that state or a later one. */
unsigned count_replicas(const struct replicas *replicas, enum replica_state state);

/* The number of members with at least this many records. */
unsigned count_members(const struct replicas *replicas, uint64_t records);

/* The number of members with at least this many records in persistent memory. */
unsigned count_persistent(const struct replicas *replicas, uint64_t records);

void lose_replica(struct replica *replica, const char *reason);

/*
 * Posts the operations that append a record: writes and flushes the bytes from place to tail,
 * then sets the tail to the end of the record and flushes it. Memory and log have the same
 * offsets, counted from base in the memory.
 */
void post_record(struct replica *replica, const struct rpma_mr_local *mr, size_t base,
                 size_t place, size_t tail, uint64_t number);

/* These wait for the completion, and return false if the server was lost. transfer() reads a
 * part of the log, or writes and flushes it; store_number() writes and flushes a number of the
 * header, which it seals. */
bool transfer(struct replicas *replicas, struct replica *replica, enum rpma_work_type type,
              const struct rpma_mr_local *mr, size_t base, size_t begin, size_t end);
bool store_number(struct replicas *replicas, struct replica *replica, size_t place,
                  uint64_t number);

#endif
