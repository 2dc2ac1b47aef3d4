// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- one side of a measurement between two hosts; prints tab-separated figures
//
//   scale server ADDRESS PORT RECEIVES              serves until it is killed
//   scale connections ADDRESS PORT HOW-MANY         sets up, holds and tears down connections
//   scale operations ADDRESS PORT KIND DEPTH TIMES  KIND is write-flush or send

#include "side.h"

#include <string.h>

static const struct {
    const char *name;
    int arguments;
    int (*run)(char *const argv[]);
} roles[] = {
    {"server", 3, serve},
    {"connections", 3, measure_connections},
    {"operations", 5, measure_operations},
};

int main(int argc, char *argv[]) {
    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
        if (argc == roles[i].arguments + 2 && strcmp(argv[1], roles[i].name) == 0)
            return roles[i].run(argv + 2);
    fprintf(stderr,
            "usage: %s server ADDRESS PORT RECEIVES\n"
            "       %s connections ADDRESS PORT HOW-MANY\n"
            "       %s operations ADDRESS PORT write-flush|send DEPTH TIMES\n",
            argv[0], argv[0], argv[0]);
    return 2;
}
