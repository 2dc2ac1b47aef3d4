// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// advice.hh -- the functions of the table of causes: each adds its advice, or nothing if a fact
// of the failure excludes its cause

#pragma once

#include "verbs/causes.hh"

namespace rpma {

// The limit of a resource of this process, RLIMIT_*.
uint64_t process_limit(int resource);

using Advise = void(Text &advice, const Failure &failure);

Advise too_large, no_entries, no_locked_memory, no_pd, out_of_memory, no_objects, other_context,
    other_route, other_listener, inline_data, client_gone_at_setup, not_mapped, fs_dax,
    files_of_process, rdma_cm_file, address_not_available, privileged_port, no_device,
    no_device_of_address, no_device_of_route, unknown_name, too_much_request_data,
    too_much_reply_data, too_much_rejection_data;

// lab lost: a client that exits before its request is accepted
inline constexpr char CLIENT_GONE[] =
    "; the client may have timed out or exited: serve the next one";

} // namespace rpma
