// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// interrupt.c -- sends the signal from a thread of its own.

#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { SOON_US = 20000 }; // the wait has begun by then

static pthread_t waiting, sending;
static struct sigaction before;

static void ignore(int signal) {
    (void)signal;
}

static void *send(void *then) {
    usleep(SOON_US);
    pthread_kill(waiting, SIGUSR1);
    usleep(SOON_US);
    if (then)
        (*(void (**)(void))then)();
    return NULL;
}

void interrupt_soon(void (*then)(void)) {
    static void (*called)(void);
    const struct sigaction action = {.sa_handler = ignore};
    called = then;
    waiting = pthread_self();
    sigaction(SIGUSR1, &action, &before);
    pthread_create(&sending, NULL, send, then ? &called : NULL);
}

void interrupt_done(void) {
    pthread_join(sending, NULL);
    sigaction(SIGUSR1, &before, NULL);
}
