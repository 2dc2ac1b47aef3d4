// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// waiting.h -- waits of the main thread, the only one that receives signals

#ifndef RPMA_PERF_WAITING_H
#define RPMA_PERF_WAITING_H 1

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define PATIENCE_MS 60000   // after so long a silence the other side counts as lost
#define WAKE_SIGNAL SIGUSR1 // interrupts a worker's wait for completions

// SIGINT and SIGTERM stop the program. They are blocked except while wait_for() waits.
void signals_init(void);
bool is_stopping(void);

// As poll(); also returns 0 after a signal.
int wait_for(struct pollfd *fds, nfds_t count, int milliseconds);
bool wait_readable(int fd, int milliseconds);

bool make_nonblocking(int fd);
uint64_t now_ns(void);
// The processor time of all threads of this process, in user and kernel mode.
uint64_t cpu_ns(void);

#endif
