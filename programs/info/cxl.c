// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cxl.c -- what the kernel says about memory behind CXL, and what may be stated of it

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info.h"

/* Where the PCI configuration has the Global Persistent Flush; linux/pci_regs.h of Linux 7.3
 * has the last two as PCI_DVSEC_CXL_PORT_GPF and PCI_DVSEC_CXL_DEVICE_GPF. */
#define CONFIG_SIZE 4096
#define FIRST_EXTENDED 0x100
#define CAPABILITY_DVSEC 0x23
#define VENDOR_CXL 0x1e98
enum gpf { GPF_OF_PORT = 4, GPF_OF_DEVICE = 5 };

/* Cuts the last name off a path, and returns it. */
static char *cut(char *path) {
    char *name = strrchr(path, '/');
    if (name == NULL)
        return path;
    *name = '\0';
    return name + 1;
}

/* A device of the CXL bus, whose directory the caller frees; NULL when there is none. The bus
 * is in the same sysfs as the region. */
static char *on_bus(const struct memory *memory, const char *name) {
    const char *devices = strstr(memory->region, "/devices/platform/");
    const int length = devices == NULL ? 0 : (int)(devices - memory->region);
    char *link = text_of("%.*s/bus/cxl/devices/%s", length, memory->region, name);
    char *directory = realpath(link, NULL);
    free(link);
    return directory;
}

static unsigned word_at(const unsigned char *bytes) {
    return (unsigned)bytes[0] | (unsigned)bytes[1] << 8;
}

static bool has_gpf(const unsigned char *config, size_t size, enum gpf which) {
    size_t place = FIRST_EXTENDED;
    /* Each capability has 4 bytes at least, so that a list that leads in a circle ends, too. */
    for (size_t left = size / 4; left > 0 && place >= FIRST_EXTENDED && place + 10 <= size;
         left--) {
        if (word_at(config + place) == CAPABILITY_DVSEC &&
            word_at(config + place + 4) == VENDOR_CXL && word_at(config + place + 8) == which)
            return true;
        place = word_at(config + place + 2) >> 4;
    }
    return false;
}

static void add_gpf(tree *device, const char *key, const char *directory, enum gpf which) {
    unsigned char config[CONFIG_SIZE];
    char *path = text_of("%s/config", directory);
    FILE *file = fopen(path, "re");
    const size_t size = file == NULL ? 0 : fread(config, 1, sizeof(config), file);
    if (file != NULL)
        (void)fclose(file);
    free(path);
    if (size <= FIRST_EXTENDED)
        add_unknown(device, key, text_of("only root reads all of the PCI configuration"),
                    text_of("run rpma-info as root"));
    else if (has_gpf(config, size, which))
        add_yes(device, key);
    else
        add_no(device, key, text_of("its PCI configuration has no Global Persistent Flush"),
               text_of("ask its maker what becomes of flushed data when the power fails"));
}

/* One mapping of the region is "nmem0,0,268435456,0". */
static void add_memdev(tree *devices, const struct memory *memory, const char *dimm) {
    char provider[LINE_SIZE], line[LINE_SIZE];
    char *cxl = text_of("%s/../%s/cxl", memory->region, dimm);
    read_line_of(provider, sizeof(provider), cxl, "provider");
    char *directory = provider[0] == '\0' ? NULL : on_bus(memory, provider);
    if (directory != NULL) {
        tree *device = append_object(devices);
        (void)cut(directory);
        read_line_of(line, sizeof(line), directory, "serial");
        add_text(device, "serial", "%s", line);
        add_number(device, "persistent_size", number_in(directory, "pmem/size"));
        add_number(device, "volatile_size", number_in(directory, "ram/size"));
        read_line_of(line, sizeof(line), cxl, "dirty_shutdown");
        if (line[0] != '\0')
            add_number(device, "dirty_shutdowns", strtoull(line, NULL, 10));
        else
            add_null(device, "dirty_shutdowns");
        char *poison = text_of("%s/trigger_poison_list", directory);
        add_bool(device, "poison_list", access(poison, F_OK) == 0);
        free(poison);
        add_text(device, "memdev", "%s", cut(directory));
        add_gpf(device, "flush_of_device", directory, GPF_OF_DEVICE);
        (void)cut(directory);
        add_gpf(device, "flush_of_port", directory, GPF_OF_PORT);
    }
    free(directory);
    free(cxl);
}

void add_cxl(tree *parent, const struct memory *memory) {
    char line[LINE_SIZE];
    if (!memory->behind_cxl) {
        add_null(parent, "cxl");
        return;
    }
    tree *entry = add_object(parent, "cxl");
    /* cxl_pmem_region_probe() gives the region of the NVDIMM bus the number of the CXL region.
     */
    char *region = on_bus(memory, strrchr(memory->region, '/') + 1);
    add_text(entry, "region", "%s", strrchr(memory->region, '/') + 1);
    read_line_of(line, sizeof(line), region != NULL ? region : "", "mode");
    add_text(entry, "mode", "%s", line);
    add_number(entry, "size", number_in(region != NULL ? region : "", "size"));
    free(region);
    tree *devices = add_list(entry, "devices");
    const uint64_t mappings = number_in(memory->region, "mappings");
    for (uint64_t i = 0; i < mappings; i++) {
        char *name = text_of("mapping%u", (unsigned)i);
        read_line_of(line, sizeof(line), memory->region, name);
        line[strcspn(line, ",")] = '\0';
        add_memdev(devices, memory, line);
        free(name);
    }
    add_power_unknown(entry, "direct_write");
}

void add_power_unknown(tree *parent, const char *key) {
    add_unknown(parent, key,
                text_of("Linux calls the persistence domain of all memory behind CXL "
                        "memory_controller; no command shows whether the machine saves what "
                        "was flushed"),
                text_of("ask the makers of the memory and of the machine; see step 7 of "
                        "rpma_pmem(7)"));
}
