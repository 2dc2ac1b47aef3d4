// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// scene.h -- what the programs share that connecting_guest.py drives by lines both ways

#ifndef SCENE_H
#define SCENE_H 1

#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// How long a reader waits for a connection, and between two attempts, as the client of example
// 15; and how long no read takes unless it was repeated.
enum { PATIENCE_MS = 500, RETRY_MS = 100, LATE_MS = 50, BLOCK = 64 };

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    fflush(stdout);
}

static inline void wait_for_a_line(void) {
    char line[64];
    if (!fgets(line, sizeof(line), stdin))
        exit(0);
}

static inline double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static inline void sleep_ms(long milliseconds) {
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

static double longest, began; // milliseconds: the longest call, and when this one began

static inline int stop_clock(int ret) {
    const double took = milliseconds() - began;
    longest = took > longest ? took : longest;
    return ret;
}

#define TIMED(call) (began = milliseconds(), stop_clock(call))

// What the process has open and allocated.
static inline void report(const char *when) {
    unsigned count = 0;
    for (int fd = 0; fd < 1 << 16; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    malloc_trim(0);
    say("%s descriptors %u heap %zu", when, count, mallinfo2().uordblks);
}

struct scene {
    const char *name;
    int least, most; // arguments
    void (*run)(char **argv);
};

// Runs the scene that the first argument names; returns the exit status.
static inline int run_scene(const struct scene *scenes, int argc, char **argv) {
    for (; argc > 1 && scenes->name; scenes++)
        if (strcmp(argv[1], scenes->name) == 0 && argc - 2 >= scenes->least &&
            argc - 2 <= scenes->most) {
            scenes->run(argv + 2);
            return 0;
        }
    fprintf(stderr, "%s: no scene of that name takes so many arguments\n", argv[0]);
    return 2;
}

#endif /* SCENE_H */
