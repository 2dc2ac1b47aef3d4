// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// interrupt.h -- a real signal during a blocking wait.

#ifndef INTERRUPT_H
#define INTERRUPT_H 1

// Makes a signal without SA_RESTART interrupt the next call of this thread that waits for an
// event; after that another thread calls then (if any). No timing is involved: the signal is
// already pending, and the wait unblocks it.
void interrupt_wait(void (*then)(void));
// Waits until both have happened, restores the signal's action, and fails the test if the
// signal interrupted no wait.
void interrupt_done(void);

#endif // INTERRUPT_H
