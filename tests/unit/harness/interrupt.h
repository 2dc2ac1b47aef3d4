// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// interrupt.h -- a real signal during a blocking wait.

#ifndef INTERRUPT_H
#define INTERRUPT_H 1

// Makes a signal without SA_RESTART interrupt the next call of this thread that waits for an
// event; after that, another thread calls then, if it is not NULL. This needs no timing,
// because the signal is pending before the call and the wait unblocks it.
void interrupt_wait(void (*then)(void));
// Waits for the other thread, restores the action of the signal, and fails the test if the
// signal interrupted no wait.
void interrupt_done(void);

#endif // INTERRUPT_H
