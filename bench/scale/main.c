// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- one side of a measurement between two hosts; prints tab-separated figures
//
//   scale server ADDRESS PORT RECEIVES              serves until killed
//   scale echo-server ADDRESS PORT RECEIVES         returns the messages of one client
//   scale connections ADDRESS PORT COUNT            sets up, holds and tears down connections
//   scale operations ADDRESS PORT KIND DEPTH TIMES  KIND is write-flush, send or echo

#include "common.h"

#include <string.h>

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int arguments;
        void (*run)(char **argv);
    } commands[] = {{"server", 3, serve},
                    {"echo-server", 3, serve_echo},
                    {"connections", 3, measure_connections},
                    {"operations", 5, measure_operations}};
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (argc - 2 == commands[i].arguments && strcmp(argv[1], commands[i].name) == 0) {
            commands[i].run(argv + 2);
            return 0;
        }
    fail("unknown command or wrong number of arguments");
}
