// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// text.hh -- what log lines say about addresses, flags and limits; used when something failed

#pragma once

#include <cstddef>
#include <cstdint>

struct ibv_context;
struct rdma_cm_event;
struct sockaddr;

namespace rpma {

// A short text, cut when there is no room.
struct Text {
    char chars[256] = "";

    [[gnu::format(printf, 2, 3)]] void add(const char *format, ...);
};

// "192.168.0.1:7204", "[fe80::1%eth0]:7204"; "any" for NULL.
Text address_text(const sockaddr *address);
// "IBV_ACCESS_LOCAL_WRITE|IBV_ACCESS_REMOTE_READ", "0" for none.
Text access_text(unsigned access);
// "IBV_SEND_SIGNALED|IBV_SEND_FENCE", "0" for none.
Text send_flags_text(unsigned flags);
// "IBV_WR_RDMA_READ": the opcode of a work request, enum ibv_wr_opcode.
const char *opcode_text(int opcode);
// What the status of a connection event says in words: a reject reason, or an error number.
Text status_text(const rdma_cm_event &event);

// Advice, to stand behind a failure; "" when there is none. error is an error number.
//
// For memory that does not register: RLIMIT_MEMLOCK, or FS-DAX without on-demand paging.
Text memory_advice(ibv_context &device, int error, bool on_demand_paging);
// For an address without a device, error 0 included: the devices that there are; for a port
// that is taken: who has it.
Text device_advice(int error);
// For a channel that takes a file descriptor: RLIMIT_NOFILE.
Text channel_advice(int error);
// For a CM ID: a device is missing, or the channel that it opens for itself.
Text id_advice(int error);
// For an address that does not answer, or that no network leads to; otherwise device_advice().
Text route_advice(int error);
// How much of something is wanted, and how much the device has.
struct Demand {
    uint32_t wanted, most;
    const char *setting; // the function that sets it
};
// For a size (what) above the device's limit.
Text size_advice(const char *what, const char *limit, const Demand &size);

} // namespace rpma
