// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// profiles.cc -- the devices of devices.tsv by name, and the faults that they can have

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

bool sim_device_has_fault(const sim_profile *device, const char *action, ibv_event_type event) {
    const auto has_event = [&](ibv_event_type type) {
        return (device->events >> type & 1) != 0;
    };
    const struct {
        const char *action;
        bool is_possible;
    } limited[] = {
        {"doorbell", device->has_doorbell_call},
        {"overrun", has_event(IBV_EVENT_CQ_ERR)},
        {"event", has_event(event)},
        {"remove", device->can_be_removed},
        {"port-down", has_event(IBV_EVENT_PORT_ERR)},
    };
    for (const auto &each : limited)
        if (strcmp(action, each.action) == 0)
            return each.is_possible;
    return true;
}
