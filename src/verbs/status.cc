// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// status.cc -- the status of events of the connection manager, and its remedy

#include "verbs/causes.hh"

#include <cerrno>
#include <infiniband/verbs.h>
#include <iterator>

#include "base/error_text.hh"

namespace rpma {

namespace {

#define AGAIN "connect again"
#define PATH "see rpma_network(7), and the counters of the device"
#define NOT_LINUX "does the other side run the connection manager of Linux?"

// Reject reasons of the InfiniBand CM, which RoCE shares: Linux, include/rdma/ib_cm.h, enum
// ib_cm_rej_reason.
constexpr struct {
    char text[80], remedy[60]; // no pointers, which the loader would have to relocate
} reasons[] = {
    {"unknown reason", AGAIN},
    {"the other side has lost the queue pair", AGAIN},
    {"no end-to-end context", NOT_LINUX},
    {"the other side has no resources", "free connections or memory there, then connect again"},
    {"the other side received no reply in time", AGAIN},
    {"the other side does not support the request", NOT_LINUX},
    {"unknown communication ID", AGAIN},
    {"unknown communication instance", AGAIN},
    {"no program listens on that port", "start the server, or correct the address or the port"},
    {"the other side has another transport type", NOT_LINUX},
    {"the other side still has an old connection with the same queue pair number", AGAIN},
    {"no reliable datagram channel", NOT_LINUX},
    {"invalid GID", PATH},
    {"invalid LID", PATH},
    {"invalid service level", PATH},
    {"invalid traffic class", PATH},
    {"invalid hop limit", PATH},
    {"invalid packet rate", PATH},
    {"invalid alternate GID", PATH},
    {"invalid alternate LID", PATH},
    {"invalid alternate service level", PATH},
    {"invalid alternate traffic class", PATH},
    {"invalid alternate hop limit", PATH},
    {"invalid alternate packet rate", PATH},
    {"the connection manager of the other side has moved", "connect to the new address"},
    {"the service has moved to another port", "connect to the address of that port"},
    {"invalid MTU", PATH},
    {"the other side cannot serve that many reads at a time", NOT_LINUX},
    {"the program on the other side rejected it", "see the log of that program"},
    {"invalid RNR retry count", NOT_LINUX},
    {"the communication ID is in use already", AGAIN},
    {"invalid class version", NOT_LINUX},
    {"invalid flow label", PATH},
    {"invalid alternate flow label", PATH},
    {"unknown reason", AGAIN}, // 34
    {"the program on the other side rejected an option of the vendor",
     "see the log of that program"},
};

enum Phase : unsigned { BEFORE = 1 << 0, ESTABLISHED = 1 << 1 }; // when the event comes

constexpr struct {
    rdma_cm_event_type event;
    unsigned transports, phases;
    const char *advice;
} advices[] = {
    // Linux 6.0, drivers/infiniband/core/cma.c, cma_netevent_callback()
    {RDMA_CM_EVENT_UNREACHABLE, ANY, ESTABLISHED,
     "; the IP address of the other side now has another link address: if this is intended, "
     "connect again"},
    {RDMA_CM_EVENT_UNREACHABLE, ROCE, BEFORE,
     "; does the other side run, and does a switch, or with soft-RoCE a firewall, drop UDP "
     "port "
     "4791?"},
    {RDMA_CM_EVENT_UNREACHABLE, INFINIBAND, BEFORE,
     "; does the other side run, and is its port up ('ibstat')?"},
    {RDMA_CM_EVENT_UNREACHABLE, IWARP, BEFORE,
     "; does the other side run, and does a firewall drop its TCP port?"},
    // Linux 6.1, drivers/infiniband/core/cma.c, cma_iw_handler()
    {RDMA_CM_EVENT_REJECTED, IWARP, ANY,
     "; does the server listen on that port? If it does, see the log of that program"},
    {RDMA_CM_EVENT_CONNECT_ERROR, ANY, ANY,
     "; connect again, and if it repeats, see the kernel's log ('dmesg') of both machines"},
};

} // namespace

Text status_text(rdma_cm_event_type event, int status, const rdma_cm_id *id,
                 bool is_established) {
    Text text;
    // A positive status of a rejection is a reject reason of the CM, a negative one an error
    // number; iWARP has error numbers only.
    if (event == RDMA_CM_EVENT_REJECTED && status > 0) {
        const auto &reason =
            reasons[static_cast<unsigned>(status) < std::size(reasons) ? status : 0];
        text.add(": %s (reject reason %d); %s", reason.text, status, reason.remedy);
        return text;
    }
    if (status != 0) {
        const int error = status < 0 ? -status : status;
        text.add(": %s (%d)", ErrorText(error).chars, status);
    }
    const Transport transport = id != nullptr ? transport_of(*id) : ROCE;
    const Phase phase = is_established ? ESTABLISHED : BEFORE;
    for (const auto &[of_event, transports, phases, advice] : advices)
        if (event == of_event && (transports & transport) != 0 && (phases & phase) != 0)
            text.add("%s", advice);
    return text;
}

} // namespace rpma
