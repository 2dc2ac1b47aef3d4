// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- rpma-perf: measures how fast this network reaches the memory of another machine

#include "failure.h"
#include "options.h"
#include "sides.h"
#include "waiting.h"

int main(int argc, char *argv[]) {
    struct options options = options_read(argc, argv);
    failure_init();
    signals_init();
    if (options.is_check)
        return run_check(&options);
    return options.is_server ? run_server(&options) : run_client(&options);
}
