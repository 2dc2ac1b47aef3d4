// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure_lines.h -- the calls that failure_lines.tsv names

#ifndef FAILURE_LINES_H
#define FAILURE_LINES_H 1

#include "world.h"

#define FAILING_REMOTE_ADDR 0x123456780u
#define FAILING_REMOTE_SIZE 64u
#define FAILING_RKEY 0x5ec4e7e4u

extern uint8_t failing_usage; // of the remote region

// A function that the table names as the call, or as what comes before everything else.
void failing_add(const char *name, int (*call)(void));
#define CALLED(name)                                                        \
    static int name(void);                                                  \
    __attribute__((constructor)) static void name##_is_in_the_table(void) { \
        failing_add(#name, name);                                           \
    }                                                                       \
    static int name(void)
#define CALL(name, expression) \
    CALLED(name) {             \
        return expression;     \
    }
#define BEFORE(name, statement) CALL(name, ((statement), 0))

// Requests a connection with h.cfg, which is NULL or has the one setting.
int ask_for_connection(void);
#define REQUEST(name, setting, value)                      \
    CALLED(name) {                                         \
        (void)rpma_conn_cfg_new(&w.h.cfg);                 \
        (void)rpma_conn_cfg_set_##setting(w.h.cfg, value); \
        return ask_for_connection();                       \
    }
// Makes a shared receive queue with the one setting.
#define SHARED_QUEUE(name, setting, value)                    \
    CALLED(name) {                                            \
        (void)rpma_srq_cfg_new(&w.h.srq_cfg);                 \
        (void)rpma_srq_cfg_set_##setting(w.h.srq_cfg, value); \
        return rpma_srq_new(w.h.peer, w.h.srq_cfg, &w.h.srq); \
    }

#endif // FAILURE_LINES_H
