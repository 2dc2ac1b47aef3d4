// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cxl.c -- prints what rpma-info states about the memory of a device DAX, from its directory in
// sysfs

#include <stdio.h>

#include "info.h"

int main(int argc, char **argv) {
    static struct memory memory = {.kind = MEMORY_DEVDAX};
    if (argc != 2)
        return 2;
    look_at_regions(&memory, argv[1]);
    tree *report = tree_new();
    add_cxl(report, &memory);
    puts(json_object_to_json_string(report));
    json_object_put(report);
    return 0;
}
