// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// interrupt.c -- the signal is sent before the call and stays blocked until the call waits.

#include "interrupt.h"

#include "unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

static sem_t arrived; // posted at a wait, or when the test ends
static volatile sig_atomic_t interrupted;
static void (*call_later)(void);
static pthread_t later;
static struct sigaction before;
static sigset_t mask_before;

static void arrive(int signal) {
    (void)signal;
    interrupted = 1;
    sem_post(&arrived);
}

static void *act_later(void *unused) {
    while (sem_wait(&arrived) != 0)
        ;
    call_later();
    return unused;
}

void interrupt_wait(void (*then)(void)) {
    const struct sigaction action = {.sa_handler = arrive};
    sigset_t mask;
    sem_init(&arrived, 0, 0);
    interrupted = 0;
    call_later = then;
    sigaction(SIGUSR1, &action, &before);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mask, &mask_before);
    pthread_kill(pthread_self(), SIGUSR1);
    fake_wait_unblocks(SIGUSR1);
    if (then)
        pthread_create(&later, NULL, act_later, NULL);
}

void interrupt_done(void) {
    const bool in_time = interrupted;
    fake_wait_unblocks(0);
    pthread_sigmask(SIG_SETMASK, &mask_before,
                    NULL); // a signal that interrupted no wait arrives here
    if (call_later)
        pthread_join(later, NULL);
    sigaction(SIGUSR1, &before, NULL);
    sem_destroy(&arrived);
    if (!in_time)
        fail_msg("the call did not wait: the signal did not interrupt it");
}
