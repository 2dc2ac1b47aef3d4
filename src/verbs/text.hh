// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// text.hh -- addresses, flags and limits as text for log lines; used on failures only

#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <rdma/rdma_cma.h>

#include "base/format.hh"
#include "base/log.hh"

struct ibv_context;
struct sockaddr;

namespace rpma {

// A short text, truncated if it does not fit.
struct Text {
    std::size_t length = 0;
    char chars[LOG_ADVICE_SIZE];

    Text() { chars[0] = '\0'; } // an initializer would clear the whole array
    [[gnu::format(printf, 2, 3)]] void add(const char *format, ...);
    [[gnu::format(printf, 2, 0)]] void vadd(const char *format, va_list values);
    // Adds strings and numbers, for lines that many posts log.
    template <class... Parts> [[gnu::always_inline]] void append(const Parts &...parts) {
        TextWriter writer(chars + length, sizeof(chars) - length);
        writer.add(parts...);
        length = static_cast<std::size_t>(writer.end() - chars);
    }
    // Adds a member of a list. If it does not fit, adds "..." and returns false.
    bool add_member(const char *member);
};

// "192.168.0.1:7204", "[fe80::1%eth0]:7204"; "any" for NULL.
Text address_text(const sockaddr *address);
// "mlx5_0": the device of a context on another device than expected. On the same device:
// "another context of mlx5_0".
Text device_text(const ibv_context *context, const ibv_context &expected);
// "IBV_ACCESS_LOCAL_WRITE|IBV_ACCESS_REMOTE_READ", "0" for none.
Text access_text(unsigned access);
// "IBV_SEND_SIGNALED|IBV_SEND_FENCE", "0" for none.
Text send_flags_text(unsigned flags);
// "IBV_WR_RDMA_READ": the opcode of a work request, enum ibv_wr_opcode.
const char *opcode_text(int opcode);
// The meaning of the status of a connection event, and a remedy: a reject reason, or an error
// number. id: nullptr for an endpoint. is_established: the connection was established before
// the event.
Text status_text(rdma_cm_event_type event, int status, const rdma_cm_id *id,
                 bool is_established);

} // namespace rpma
