// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// scene.h -- shared by the programs that count.py and scale/guest.py run

#ifndef SCENE_H
#define SCENE_H 1

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRITE_BYTES = 4096 };

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    fflush(stdout);
}

// Callgrind counts the functions with names like counted_*, and the functions that they call.
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
