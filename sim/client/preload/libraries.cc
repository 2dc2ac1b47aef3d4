// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// libraries.cc -- ends a program that would use libibverbs or librdmacm of the system
//
// rdma-sim checks its COMMANDs before they start. Those may execute others with another
// LD_LIBRARY_PATH; execute.cc sets RDMA_SIM_LOST if LD_PRELOAD has lost this library.

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../end_run.hh"
#include "preload.hh"

// The fabric's libibverbs refuses to run without it.
extern "C" {
__attribute__((visibility("default"))) char rdma_sim_preload;
}

namespace {

// The directory of the fabric's libraries: that of this one, or, in a build directory, the one
// above.
char directory[PATH_MAX];

bool find_library(const char *name, struct stat &status) {
    char path[PATH_MAX + 32];
    Dl_info self;
    if (dladdr(directory, &self) == 0)
        return false;
    snprintf(directory, sizeof(directory), "%s", self.dli_fname);
    while (char *const slash = strrchr(directory, '/')) {
        *slash = '\0';
        snprintf(path, sizeof(path), "%s/%s", directory, name);
        if (stat(path, &status) == 0)
            return true;
    }
    return false;
}

// Loads the fabric's library if the linker would not find it when the program, or a library of
// it, loads this name later.
void load_library(const char *name) {
    char path[PATH_MAX + 32];
    const char *const searched = getenv("LD_LIBRARY_PATH");
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    if (searched == nullptr || strncmp(searched, directory, strlen(directory)) != 0)
        (void)dlopen(path, RTLD_LAZY);
}

void check_library(const char *name) {
    struct stat own, loaded;
    const link_map *map;
    if (!find_library(name, own))
        return;
    void *const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr)
        return load_library(name);
    if (getenv("RDMA_SIM_LOST") != nullptr) {
        sim::EndRun request = {};
        snprintf(request.line, sizeof(request.line), sim::PRELOAD_IS_LOST,
                 program_invocation_name);
        sim::end_run(getenv("RDMA_SIM_SOCKET"), request);
    }
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || stat(map->l_name, &loaded) != 0 ||
        (own.st_dev == loaded.st_dev && own.st_ino == loaded.st_ino))
        return;
    sim::EndRun request = {};
    snprintf(request.line, sizeof(request.line),
             "%.512s: loads another %s (%.512s), by LD_LIBRARY_PATH, LD_PRELOAD or RPATH: let "
             "LD_LIBRARY_PATH begin with %.512s, and remove the others",
             program_invocation_name, name, map->l_name, directory);
    sim::end_run(getenv("RDMA_SIM_SOCKET"), request);
}

__attribute__((constructor)) void check_libraries() {
    if (getenv("RDMA_SIM_ROOT") == nullptr || getenv("RDMA_SIM_SOCKET") == nullptr)
        return;
    check_library("libibverbs.so.1");
    check_library("librdmacm.so.1");
}

} // namespace
