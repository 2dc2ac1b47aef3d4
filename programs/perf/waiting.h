// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// waiting.h -- waiting in the main thread, which alone hears signals

#ifndef RPMA_PERF_WAITING_H
#define RPMA_PERF_WAITING_H 1

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define PATIENCE_MS 60000   // how long nothing may happen before the other side counts as lost
#define WAKE_SIGNAL SIGUSR1 // ends a worker's wait for completions

// SIGINT and SIGTERM ask for the end. They are held back except while wait_for() waits.
void signals_init(void);
bool is_stopping(void);

// As poll(); 0 also when a signal came.
int wait_for(struct pollfd *fds, nfds_t count, int milliseconds);
bool wait_readable(int fd, int milliseconds);

bool make_nonblocking(int fd);
uint64_t now_ns(void);
// Of all threads of this process, in user and kernel mode.
uint64_t cpu_ns(void);

#endif
