// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// persistent.c -- programs with a file of --pmem, one for each name; those that begin with
// "wrong-" have a mistake that some power failures show
//
// usage: persistent NAME FILE

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORD "one record of three words"

static char *map(const char *path) {
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        exit(1);
    char *const all = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED)
        exit(2);
    close(fd);
    return all;
}

static void *store(void *record) {
    memcpy(record, RECORD, sizeof(RECORD));
    if (msync(record, sizeof(RECORD), MS_SYNC) != 0)
        exit(3);
    return NULL;
}

// The first thread waits while others make their records persistent.
static int threads(const char *path) {
    char *const all = map(path);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, store, all);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return puts("stored") < 0 || fflush(stdout) != 0;
}

static const struct {
    const char *name;
    int (*function)(const char *path);
} PROGRAMS[] = {{"threads", threads}};

int main(int argc, char *argv[]) {
    for (size_t i = 0; argc > 2 && i < sizeof(PROGRAMS) / sizeof(*PROGRAMS); i++)
        if (strcmp(PROGRAMS[i].name, argv[1]) == 0)
            return PROGRAMS[i].function(argv[2]);
    return 99;
}
