// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// profiles.cc -- the devices of devices.tsv by name

#include "profile.h"

#include <cstring>

const sim_profile *sim_find_profile(const char *name) {
    // Not std::span: the unit tests' libibverbs is linked without the C++ library.
    for (size_t i = 0; i < sim_profile_count; i++)
        if (strcmp(sim_profiles[i].name, name) == 0)
            return &sim_profiles[i];
    return nullptr;
}

bool sim_is_software(const sim_profile *device) {
    return strcmp(device->driver, "rdma_rxe") == 0 || strcmp(device->driver, "siw") == 0;
}
