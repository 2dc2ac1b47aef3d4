// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- one side of a measurement between two hosts; prints tab-separated figures
//
//   scale server ADDRESS PORT RECEIVES              serves until it is killed
//   scale connections ADDRESS PORT HOW-MANY         sets up, holds and tears down connections
//   scale operations ADDRESS PORT KIND DEPTH TIMES  KIND is write-flush or send

#include "side.h"

#include <string.h>

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int arguments;
        void (*run)(char **argv);
    } scenes[] = {{"server", 3, serve},
                  {"connections", 3, measure_connections},
                  {"operations", 5, measure_operations}};
    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
        if (argc - 2 == scenes[i].arguments && strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].run(argv + 2);
            return 0;
        }
    give_up("the arguments are those of no scene");
}
