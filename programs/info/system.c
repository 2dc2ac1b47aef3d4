// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// system.c -- versions, the limits of this process, and what the kernel lacks for RDMA

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "info.h"
#include "library.h"

#define CAP_IPC_LOCK_BIT 14 /* linux/capability.h */

void read_line(char *line, size_t size, const char *path) {
    FILE *file = fopen(path, "re");
    line[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(line, (int)size, file) == NULL)
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    (void)fclose(file);
}

void read_line_of(char *line, size_t size, const char *directory, const char *name) {
    char *path = text_of("%s/%s", directory, name);
    read_line(line, size, path);
    free(path);
}

/* rdma-core has no call for its version, but the name of the library's file ends with it:
 * libibverbs.so.1.14.44.0 belongs to rdma-core 44.0 (CMakeLists.txt: rdma_library()). */
static void add_rdma_core(tree *versions) {
    Dl_info info = {0};
    void *function = dlsym(RTLD_DEFAULT, "ibv_open_device");
    char *file = function != NULL && dladdr(function, &info) != 0
                     ? realpath(info.dli_fname, NULL)
                     : NULL;
    const char *name = file == NULL ? NULL : strstr(file, "libibverbs.so.");
    unsigned library = 0, interface = 0;
    int length = 0;
    if (name != NULL)
        (void)sscanf(name, "libibverbs.so.%u.%u.%n", &library, &interface, &length);
    if (name != NULL && length > 0 && name[length] != '\0')
        add_text(versions, "rdma_core", "%s", name + length);
    else
        add_null(versions, "rdma_core");
    if (file != NULL)
        add_text(versions, "libibverbs", "%s", file);
    else
        add_null(versions, "libibverbs");
    free(file);
}

void add_versions(tree *report) {
    tree *versions = add_object(report, "versions");
    struct utsname kernel;
    add_text(versions, "librpma", "%s", library_version());
    add_rdma_core(versions);
    add_text(versions, "kernel", "%s", uname(&kernel) == 0 ? kernel.release : "");
}

/* ib_umem_get() of the kernel applies the limit unless the process has CAP_IPC_LOCK. */
bool may_lock_all(void) {
    char line[LINE_SIZE];
    unsigned long long effective = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "CapEff: %llx", &effective) == 1)
            break;
    if (file != NULL)
        (void)fclose(file);
    return (effective >> CAP_IPC_LOCK_BIT & 1) != 0;
}

static void add_limit(tree *limit, const char *key, rlim_t value) {
    if (value == RLIM_INFINITY)
        add_null(limit, key);
    else
        add_number(limit, key, value);
}

static struct rlimit limit_of(__rlimit_resource_t resource) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    (void)getrlimit(resource, &limit);
    return limit;
}

void add_limits(tree *report) {
    tree *limits = add_object(report, "limits");
    const struct rlimit memory = limit_of(RLIMIT_MEMLOCK), files = limit_of(RLIMIT_NOFILE);
    tree *locked = add_object(limits, "locked_memory");
    add_limit(locked, "soft", memory.rlim_cur);
    add_limit(locked, "hard", memory.rlim_max);
    if (may_lock_all() || memory.rlim_cur == RLIM_INFINITY)
        add_yes(locked, "unlimited");
    else
        add_no(locked, "unlimited",
               text_of("this process may lock %llu KiB in all, and registered memory is locked",
                       (unsigned long long)memory.rlim_cur / 1024),
               text_of("raise it with 'ulimit -l', LimitMEMLOCK= of systemd or "
                       "/etc/security/limits.conf"));
    tree *descriptors = add_object(limits, "descriptors");
    add_limit(descriptors, "soft", files.rlim_cur);
    add_limit(descriptors, "hard", files.rlim_max);
}

void add_connection_manager(tree *report) {
    static const char key[] = "connection_manager", node[] = "/dev/infiniband/rdma_cm";
    if (access(node, R_OK | W_OK) == 0)
        add_yes(report, key);
    else if (errno == ENOENT)
        add_no(report, key, text_of("there is no %s, without which nothing connects", node),
               text_of("load the module: modprobe rdma_ucm"));
    else
        add_no(report, key, text_of("%s: %s", node, strerror(errno)),
               text_of("let this user read and write it: chmod, or a rule of udev"));
}

/* Whether the running kernel has a module, loaded or not. */
static bool has_module(const char *name) {
    char *path = text_of("/sys/module/%s", name), line[4096];
    struct utsname kernel;
    bool found = access(path, F_OK) == 0;
    free(path);
    if (found || uname(&kernel) != 0)
        return found;
    path = text_of("/lib/modules/%s/modules.dep", kernel.release);
    FILE *file = fopen(path, "re");
    free(path);
    path = text_of("/%s.ko", name);
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        const char *place = strstr(line, path);
        found = place != NULL && place < line + strcspn(line, ":");
    }
    if (file != NULL)
        (void)fclose(file);
    free(path);
    return found;
}

void add_no_device(tree *report, const char *key, const char *asked) {
    const char *why =
        "the kernel has no RDMA device, and no module rdma_rxe (soft-RoCE) stands in "
        "/lib/modules";
    const char *help = "on a machine with the kernel of its distribution: modprobe rdma_rxe; "
                       "rdma link add rxe0 type rxe netdev NETDEV";
    if (access("/sys/class/infiniband", F_OK) == 0 &&
        access("/sys/class/infiniband_verbs/abi_version", F_OK) != 0) {
        why = "the module of the kernel for RDMA in programs is not loaded";
        help = "modprobe ib_uverbs";
    } else if (has_module("rdma_rxe")) {
        why = "the kernel has no RDMA device that libibverbs can use";
        help = "soft-RoCE makes one of a network device: modprobe rdma_rxe; "
               "rdma link add rxe0 type rxe netdev NETDEV";
    }
    add_no(report, key,
           asked == NULL ? text_of("%s", why)
                         : text_of("there is no device %s: %s", asked, why),
           text_of("%s", help));
}
