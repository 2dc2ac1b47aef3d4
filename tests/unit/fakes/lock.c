// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lock.c -- the lock of the fakes, partly hidden from ThreadSanitizer.

#include "internal.h"

#include <pthread.h>

const char *fake_function;

static pthread_mutex_t lock_of_all = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;
static _Atomic bool quiet;

void *fake_lock(const char *name) {
    pthread_mutex_lock(&lock_of_all);
    fake_function = name;
    return NULL;
}

void fake_unlock(void *const *unused) {
    (void)unused;
    pthread_mutex_unlock(&lock_of_all);
}

void fake_wait_for_zero(const unsigned *count) {
    const char *const name = fake_function;
    while (*count > 0)
        pthread_cond_wait(&acknowledged, &lock_of_all);
    fake_function = name;
}

void fake_acknowledged(void) {
    pthread_cond_broadcast(&acknowledged);
}

#ifdef FAKE_THREAD_SANITIZER
typedef void annotation(const char *file, int line); // of the library of ThreadSanitizer
annotation AnnotateIgnoreReadsBegin, AnnotateIgnoreReadsEnd, AnnotateIgnoreWritesBegin,
    AnnotateIgnoreWritesEnd, AnnotateIgnoreSyncBegin, AnnotateIgnoreSyncEnd;

int fake_hide(void) {
    if (quiet) {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    }
    return 0;
}

void fake_show(const int *unused) {
    (void)unused;
    if (quiet) {
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
}
#endif

void fake_quiet(bool on) {
    quiet = on;
}

bool fake_is_quiet(void) {
    return quiet;
}
