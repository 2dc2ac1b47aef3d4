// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm_event.cc -- event channels of librdmacm, and their events

#include "verbs/cm.hh"

#include <fcntl.h>

#include "verbs/causes.hh"

namespace rpma {

void report_no_event_channel(Call &call, int error) {
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error,
                       advice_for({.step = EVENT_CHANNEL, .error = error}).chars,
                       "rdma_create_event_channel()");
}

void make_nonblocking(const rdma_event_channel &channel) {
    // Neither call can fail on an open descriptor.
    (void)fcntl(channel.fd, F_SETFL, fcntl(channel.fd, F_GETFL) | O_NONBLOCK);
}

void report_no_event(Call &call, int error, int code_if_empty) {
    if (error == EAGAIN || error == EWOULDBLOCK || error == ENODATA) {
        if (code_if_empty != 0)
            RPMA_WOULD_BLOCK(call, code_if_empty, error, "rdma_get_cm_event()");
    } else if (error == EINTR) // a loop that waits for a signal expects EINTR
        RPMA_INTERRUPTED(call, "rdma_get_cm_event()");
    else
        RPMA_FAIL(call, RPMA_E_PROVIDER, error, "rdma_get_cm_event()");
}

void log_addr_change(const Call &call) {
    RPMA_LOG(RPMA_LOG_LEVEL_INFO, call.function(),
             "%s: the link address of this side has changed; connections continue",
             rdma_event_str(RDMA_CM_EVENT_ADDR_CHANGE));
}

void skip_addr_change(Call &call, CmEvent &&event) {
    event.release(call);
    if (call.has_failed())
        return;
    log_addr_change(call);
    (void)call.record_would_block(RPMA_E_NO_EVENT, 0);
}

} // namespace rpma
