// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// dax.c -- what the kernel says about the persistent memory behind a file or a device

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

uint64_t number_in(const char *directory, const char *name) {
    char line[LINE_SIZE];
    read_line_of(line, sizeof(line), directory, name);
    return strtoull(line, NULL, 0);
}

void look_at_regions(struct memory *memory, char *directory) {
    char type[LINE_SIZE], *end;
    memory->nvdimm = strstr(directory, "/ndbus") != NULL;
    while ((end = strrchr(directory, '/')) != NULL && end != directory &&
           memory->domain[0] == '\0') {
        read_line_of(memory->domain, sizeof(memory->domain), directory, "persistence_domain");
        if (memory->domain[0] != '\0') {
            (void)snprintf(memory->region, sizeof(memory->region), "%s", directory);
            read_line_of(type, sizeof(type), directory, "../provider");
            memory->behind_cxl = strcmp(type, "CXL") == 0;
        }
        read_line_of(type, sizeof(type), directory, "devtype");
        if (strcmp(type, "nd_volatile") == 0)
            memory->nvdimm = false;
        *end = '\0';
    }
}

void look_at_dax(struct memory *memory, const char *links, unsigned major, unsigned minor) {
    char *link = text_of("/sys/dev/%s/%u:%u", links, major, minor);
    char *directory = realpath(link, NULL);
    free(link);
    if (directory == NULL)
        return;
    if (memory->kind == MEMORY_DEVDAX) {
        memory->size = number_in(directory, "size");
        memory->alignment = number_in(directory, "align");
    }
    look_at_regions(memory, directory);
    free(directory);
}
