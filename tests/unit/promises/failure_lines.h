// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure_lines.h -- failures that the library logs, and how each one is made to happen

#ifndef FAILURE_LINES_H
#define FAILURE_LINES_H 1

#include "world.h"

#define FAILING_REMOTE_ADDR 0x123456780u
#define FAILING_REMOTE_SIZE 64u
#define FAILING_RKEY 0x5ec4e7e4u

// The objects that exist before the call that fails.
enum stage { NOTHING, PEER, LISTENING, OUTGOING, INCOMING, CONNECTED, SERVING, SHARING };

struct failure {
    const char *name;
    enum stage stage;
    const char *faults; // provider calls that fail once; NULL: the call itself is to blame
    int error;          // of the faults
    int (*call)(void);
    uint8_t usage; // of the remote region; 0: every
    void (*device)(struct fake_device *device);
};

extern const struct failure failures[], new_failures[];
extern const size_t failure_count, new_failure_count;

// A call that fails, in the form that the table needs.
#define CALL(name, expression) \
    static int name(void) {    \
        return expression;     \
    }
// Requests a connection with h.cfg, which is NULL or has the one setting.
int request(void);
int request_with(int (*set)(struct rpma_conn_cfg *, uint32_t), uint32_t value);

#endif // FAILURE_LINES_H
