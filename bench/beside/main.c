// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- writes one block at a time and takes its completion, for callgrind
//
//   PROGRAM server ADDRESS PORT [HOW]          serves one connection
//   PROGRAM client ADDRESS PORT TIMES [HOW]    three laps: TIMES, TIMES and 2 * TIMES writes;
//                                              mark() is called after each

#include "beside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A function of its own, so that callgrind can divide its counts at each call.
__attribute__((noinline)) void mark(void);
void mark(void) {
    __asm__ volatile("");
}

// The wait is between the two counted calls, so no poll finds an empty queue.
static void write_and_wait(void) {
    ask_for_event();
    counted_write();
    wait_for_event();
    counted_completion();
}

static void run_laps(unsigned long times) {
    const unsigned long laps[] = {times, times, 2 * times};
    for (size_t lap = 0; lap < sizeof(laps) / sizeof(*laps); lap++) {
        for (unsigned long i = 0; i < laps[lap]; i++)
            write_and_wait();
        mark();
    }
}

int main(int argc, char *argv[]) {
    if (argc >= 4 && argc <= 5 && strcmp(argv[1], "server") == 0) {
        serve_one(argv[2], argv[3], argc == 5 ? argv[4] : "");
        return 0;
    }
    const unsigned long times = argc >= 5 && argc <= 6 ? strtoul(argv[4], NULL, 10) : 0;
    if (times == 0 || strcmp(argv[1], "client") != 0) {
        fprintf(stderr,
                "usage: %s server ADDRESS PORT [HOW]\n"
                "       %s client ADDRESS PORT TIMES [HOW]\n",
                argv[0], argv[0]);
        return 2;
    }
    connect_client(argv[2], argv[3], argc == 6 ? argv[5] : "");
    run_laps(times);
    disconnect_client();
    return 0;
}
