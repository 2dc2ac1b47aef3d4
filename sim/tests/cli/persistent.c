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

// Linux keeps the old or the new content of the file if the new one was synchronized before.
static int replace(const char *path, int is_synchronized) {
    char name[4096];
    snprintf(name, sizeof(name), "%s.XXXXXX", path);
    const int fd = mkstemp(name);
    if (fd < 0 || write(fd, RECORD, sizeof(RECORD)) != sizeof(RECORD) ||
        (is_synchronized && fsync(fd) != 0) || close(fd) != 0)
        return 1;
    return rename(name, path) != 0;
}
static int replaces(const char *path) {
    return replace(path, 1);
}
static int wrong_replaces(const char *path) {
    return replace(path, 0);
}
// There is no file with the path for a while.
static int removes(const char *path) {
    return unlink(path) != 0 || replace(path, 1) != 0;
}
// By a mapping instead of write() and fsync().
static int maps(const char *path) {
    char name[4096];
    snprintf(name, sizeof(name), "%s.new", path);
    store(map(name));
    return rename(name, path) != 0;
}

static const struct {
    const char *name;
    int (*function)(const char *path);
} PROGRAMS[] = {{"threads", threads},
                {"replace", replaces},
                {"wrong-replace", wrong_replaces},
                {"remove", removes},
                {"map", maps}};

int main(int argc, char *argv[]) {
    for (size_t i = 0; argc > 2 && i < sizeof(PROGRAMS) / sizeof(*PROGRAMS); i++)
        if (strcmp(PROGRAMS[i].name, argv[1]) == 0)
            return PROGRAMS[i].function(argv[2]);
    return 99;
}
