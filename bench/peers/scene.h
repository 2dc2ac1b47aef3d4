// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// scene.h -- what the programs share that count.py, connecting_guest.py and scale/guest.py run

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
enum { PATIENCE_MS = 500, RETRY_MS = 100, LATE_MS = 50, READ_BYTES = 64, WRITE_BYTES = 4096 };

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

// Callgrind counts the functions with names like counted_*, and what they call.
#define COUNTED __attribute__((noinline, unused))

// A function of its own, so that callgrind can divide its counts at each call.
static COUNTED void mark(void) {
    __asm__ volatile("");
}

// Three laps of one write at a time; mark() is called after each. The wait is between the two
// counted calls, so no poll finds an empty queue.
static inline void run_laps(void (*write_and_wait)(void), unsigned long times) {
    const unsigned long laps[] = {times, times, 2 * times};
    for (size_t lap = 0; lap < sizeof(laps) / sizeof(*laps); lap++) {
        for (unsigned long i = 0; i < laps[lap]; i++)
            write_and_wait();
        mark();
    }
}

// Reads until a read fails; says nothing when the first one does.
static inline void read_blocks(int (*read_block)(void)) {
    if (read_block() != 0)
        return;
    say("block at %.0f", milliseconds());
    for (double last = milliseconds(); read_block() == 0; last = milliseconds()) {
        const double now = milliseconds();
        if (now - last > LATE_MS)
            say("late at %.0f", now);
        sleep_ms(1);
    }
    say("lost at %.0f", milliseconds());
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
