// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// dax.c -- what the kernel says about the persistent memory behind a file or a device

#include <stdlib.h>
#include <string.h>

#include "info.h"

static uint64_t number_in(const char *directory, const char *name) {
    char line[LINE_SIZE];
    char *path = text_of("%s/%s", directory, name);
    read_line(line, sizeof(line), path);
    free(path);
    return strtoull(line, NULL, 10);
}

/* Walks up to the region of the NVDIMM bus, whose files describe the persistence domain. */
static void look_at_regions(struct memory *memory, char *directory) {
    char type[LINE_SIZE], *end;
    memory->nvdimm = strstr(directory, "/ndbus") != NULL;
    while ((end = strrchr(directory, '/')) != NULL && end != directory &&
           memory->domain[0] == '\0') {
        char *path = text_of("%s/persistence_domain", directory);
        read_line(memory->domain, sizeof(memory->domain), path);
        free(path);
        path = text_of("%s/devtype", directory);
        read_line(type, sizeof(type), path);
        free(path);
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
