// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- one side of a measurement between two hosts; prints tab-separated figures
//
//   scale server ADDRESS PORT RECEIVES              serves until it is killed
//   scale connections ADDRESS PORT HOW-MANY         sets up, holds and tears down connections
//   scale operations ADDRESS PORT KIND DEPTH TIMES  KIND is write-flush or send

#include "../peers/scene.h"
#include "side.h"

int main(int argc, char **argv) {
    static const struct scene scenes[] = {{"server", 3, 3, serve},
                                          {"connections", 3, 3, measure_connections},
                                          {"operations", 5, 5, measure_operations},
                                          {0}};
    return run_scene(scenes, argc, argv);
}
