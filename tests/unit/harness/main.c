// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- main() of the executables that have none.

#include "unit.h"

int main(int argc, char **argv) {
    return unit_main(argc, argv);
}
