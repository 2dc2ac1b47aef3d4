// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// side.h -- what the sides of the measurement share

#ifndef SIDE_H
#define SIDE_H 1

#include <librpma.h>

enum { BLOCK = 4096, MESSAGE = 64 };

struct side {
    struct rpma_peer *peer;
    void *memory; // BLOCK bytes
    struct rpma_mr_local *mr;
    const char *address;
    const char *port;
};

// Ends the program when a call failed.
void must(int ret, const char *call);
_Noreturn void give_up(const char *what);

unsigned long number(const char *text);

struct side open_side(const char *address, const char *port,
                      enum rpma_util_ibv_context_type where);

// Connects and waits until the connection is up. cfg may be NULL.
struct rpma_conn *connect_to(const struct side *side, const struct rpma_conn_cfg *cfg);
// Disconnects, waits for the other side, deletes.
void leave(struct rpma_conn *conn);

double seconds(void);     // of the clock
double cpu_seconds(void); // of this process, kernel included

void print(const char *figure, double value);

int serve(char *const argv[]);
int measure_connections(char *const argv[]);
int measure_operations(char *const argv[]);

#endif /* SIDE_H */
