// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// interrupt.h -- a real signal during a blocking wait.

#ifndef INTERRUPT_H
#define INTERRUPT_H 1

// Soon sends a signal, without SA_RESTART, to the calling thread, and later calls then (if any)
// from another thread.
void interrupt_soon(void (*then)(void));
// Waits until both have happened, and restores the signal's action.
void interrupt_done(void);

#endif // INTERRUPT_H
