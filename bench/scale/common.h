// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// common.h -- functions that all programs of this folder use

#ifndef COMMON_H
#define COMMON_H 1

#include <librpma.h>

enum { BLOCK = 4096, MESSAGE = 64 };

struct side {
    struct rpma_peer *peer;
    void *memory; // BLOCK bytes
    struct rpma_mr_local *mr;
    const char *address;
    const char *port;
};

// Ends the program if a call failed.
void must(int ret, const char *call);
_Noreturn void fail(const char *what);

unsigned long number(const char *text);

struct side open_side(const char *address, const char *port,
                      enum rpma_util_ibv_context_type where);

// Connects and waits until the connection is established. cfg may be NULL.
struct rpma_conn *connect_to(const struct side *side, const struct rpma_conn_cfg *cfg);
// Accepts a request, posts receives, and sends the memory's descriptor. cfg may be NULL.
// Returns NULL if this fails: the client may have ended.
struct rpma_conn *accept_next(const struct side *side, struct rpma_ep *endpoint,
                              const struct rpma_conn_cfg *cfg, uint32_t receives);
// A connection and the server's region.
struct target {
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    struct rpma_mr_remote *remote;
};
struct target connect_to_target(const struct side *side, const struct rpma_conn_cfg *cfg);
// Connects with queues of this many entries.
struct target connect_with_queues(const struct side *side, uint32_t entries);
// Ends the program if an operation failed.
void must_succeed(const struct ibv_wc *completions, int count);
// Waits for a completion and polls up to MAX_COMPLETIONS. Ends the program if an operation
// failed.
enum { MAX_COMPLETIONS = 64 };
unsigned long take_completions(struct rpma_cq *cq, int max);
// Disconnects, waits for the other side to disconnect, and deletes the connection.
void disconnect(struct rpma_conn *conn);

void watch(int epoll, int fd, void *what); // adds fd to epoll, for EPOLLIN

double seconds(void);     // the time of the clock
double cpu_seconds(void); // processor time of this process, kernel included

double resident_kib(void); // memory of this process
double descriptors(void);

void print(const char *figure, double value);
void sort(double *values, size_t count);

void serve(char **argv);
void serve_echo(char **argv);
void measure_connections(char **argv);
void measure_operations(char **argv);

#endif /* COMMON_H */
