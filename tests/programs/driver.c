// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// driver.c -- prints the facts that rpma-info states about a driver on a transport

#include <stdio.h>

#include "info.h"

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    tree *device = tree_new();
    add_text(device, "driver", "%s", argv[1]);
    add_text(device, "transport", "%s", argv[2]);
    add_traps(device);
    puts(json_object_to_json_string(device));
    json_object_put(device);
    return 0;
}
