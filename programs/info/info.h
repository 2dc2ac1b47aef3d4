// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// info.h -- the parts of rpma-info: each adds its findings to the report

#pragma once

#include <infiniband/verbs.h>
#include <librpma.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "tree.h"

/* The exit statuses; rpma-info(1) and --help list them. */
enum status {
    STATUS_POSSIBLE = 0,      /* everything asked for is possible */
    STATUS_FAILED = 1,        /* the program itself failed */
    STATUS_ARGUMENTS = 2,     /* wrong arguments */
    STATUS_NO_DEVICE = 3,     /* no usable device */
    STATUS_NO_MEMORY = 4,     /* PATH cannot be used as memory */
    STATUS_NOT_REGISTERED = 5 /* PATH registers with none of the chosen devices */
};

struct options {
    const char *address, *device, *memory;
    bool json;
};

/* options.c: ends the program after --help, --version and wrong arguments. */
struct options parse_options(int argc, char **argv);

/* quiet.c: drops the messages of librpma, libibverbs and librdmacm until speak(). */
void be_quiet(void);
void speak(void);

/* system.c */
void add_versions(tree *report);
void add_limits(tree *report);
bool may_lock_all(void);
void add_connection_manager(tree *report);
/* Adds why there is no device at all, and how to get one. */
void add_no_device(tree *report, const char *key, const char *asked);
/* Reads the first line of a file, "" when the file cannot be read. */
void read_line(char *line, size_t size, const char *path);
void read_line_of(char *line, size_t size, const char *directory, const char *name);
#define LINE_SIZE 256

/* defaults.c */
void add_defaults(tree *report);

/* address.c: the addresses of this machine, and the device that librpma finds behind each */
struct address {
    char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1]; /* a link-local one with its scope */
    char netdev[IF_NAMESIZE];
    char device[IBV_SYSFS_NAME_MAX]; /* "" when there is none */
};
struct addresses {
    struct address *items;
    size_t count;
};
struct addresses find_addresses(void);
/* Finds the device for an address of this machine or of another; false when there is none. */
bool device_behind(const char *address, char device[IBV_SYSFS_NAME_MAX], bool *is_remote);
/* Whether the address of a GID is one of this process's network namespace. */
bool is_own_address(const struct addresses *all, const char *text);

/* device.c */
struct search {
    const char *device; /* NULL: all */
    const struct addresses *addresses;
    const struct memory *memory; /* NULL: none */
};
/* Returns whether the machine has any device, wanted by the search or not. */
bool add_devices(tree *report, const struct search *search);

/* driver.c: adds the known traps of the device's driver on its transport */
void add_traps(tree *device);

/* port.c */
void add_ports(tree *device, struct ibv_context *context, const struct ibv_device_attr *limits);
/* The network device of an RDMA device, or a placeholder; for messages. */
void netdev_of(char *name, size_t size, const char *device);

/* capability.c */
#define VENDOR_RXE 0xffffff /* drivers/infiniband/sw/rxe/rxe_param.h: RXE_VENDOR_ID */
#define VENDOR_SIW 0x626d74 /* drivers/infiniband/sw/siw/siw.h: SIW_VENDOR_ID */
void add_capabilities(tree *device, struct ibv_context *context, struct rpma_peer *peer,
                      const struct ibv_device_attr_ex *attributes);
void add_device_limits(tree *device, struct ibv_context *context,
                       const struct ibv_device_attr *limits);

/* memory.c: the memory that --memory names */
enum memory_kind { MEMORY_FILE, MEMORY_TMPFS, MEMORY_HUGETLBFS, MEMORY_FSDAX, MEMORY_DEVDAX };
struct memory {
    const char *path;
    void *base;
    size_t size, mapped, alignment;
    enum memory_kind kind;
    bool map_sync;          /* FS-DAX: the mapping keeps the file's blocks where they are */
    bool nvdimm;            /* the memory belongs to a region of an NVDIMM bus */
    bool behind_cxl;        /* the memory belongs to a region of CXL devices */
    char domain[LINE_SIZE]; /* the kernel's persistence_domain; may be "" */
    char region[PATH_MAX];  /* the directory of the region that has it; may be "" */
};
/* Ends the program with one line when path cannot be used as memory. */
void map_memory(struct memory *memory, const char *path);
void add_memory(tree *report, const struct memory *memory);
void unmap_memory(const struct memory *memory);
/* Adds whether the memory is persistent, which rpma_flush() relies on, or why it is not. */
void add_persistence(tree *parent, const char *key, const struct memory *memory);

/* dax.c: reads from sysfs the properties of the persistent memory behind a file or a device */
void look_at_dax(struct memory *memory, const char *links, unsigned major, unsigned minor);
/* Walks up to the region of the NVDIMM bus, whose files describe the persistence domain;
 * changes directory. */
void look_at_regions(struct memory *memory, char *directory);
uint64_t number_in(const char *directory, const char *name);

/* cxl.c: adds the region and the devices of memory behind CXL */
void add_cxl(tree *parent, const struct memory *memory);
/* Adds that nobody but their makers knows what a power failure spares. */
void add_power_unknown(tree *parent, const char *key);

/* registration.c */
void add_registration(tree *device, struct rpma_peer *peer, const struct memory *memory);

/* text.c */
void print_text(const tree *report);
