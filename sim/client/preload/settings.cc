// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "settings.hh"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "../../protocol/protocol.hh"

namespace {

Settings current;
bool is_read;

const char *value_of(const char *name) {
    const char *const value = getenv(name);
    return value != nullptr ? value : "";
}

void read_environment() {
    if (__atomic_load_n(&is_read, __ATOMIC_ACQUIRE))
        return;
    current = {static_cast<unsigned>(atoi(value_of("RDMA_SIM_HOST"))),
               value_of("RDMA_SIM_ROOT"),
               value_of("RDMA_SIM_SOCKET"),
               value_of("RDMA_SIM_LISTENING"),
               value_of("RDMA_SIM_PMEM"),
               sim::loopback_of_run(value_of("RDMA_SIM_SOCKET"))};
    __atomic_store_n(&is_read, true, __ATOMIC_RELEASE);
}

// A program can change its environment later. The first call copies nothing, because malloc()
// of the program may be the caller.
__attribute__((constructor)) void keep() {
    read_environment();
    for (const char **const value :
         {&current.root, &current.socket, &current.listening, &current.persistent})
        if (const char *const copy = strdup(*value))
            *value = copy;
}

} // namespace

const Settings &settings() {
    read_environment();
    return current;
}
