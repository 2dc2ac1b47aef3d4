// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req.hh -- a connection request: an outgoing one connects, an incoming one accepts
//
// Thread-safety: one thread at a time.

#pragma once

#include "base/allocation.hh"
#include "core/conn.hh"

struct rpma_peer;

namespace rpma {

inline constexpr char REQUEST_FAILED[] = "the request has failed: delete it";
inline constexpr char REQUEST_NOT_RESOLVED[] =
    "the request is not resolved: wait until rpma_conn_req_resolve() returns 0";
inline constexpr char REQUEST_NOT_SET_UP[] =
    "the request is not set up: rpma_conn_req_setup() does so";

} // namespace rpma

// Each connection begins as a request, and is deleted as one.
struct rpma_conn_req final : rpma_conn {
    // Resolves addr and port, waits for the result, and sets the request up. Returns nullptr on
    // failure: RPMA_E_INVAL, RPMA_E_NOMEM, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_conn_req> outgoing(rpma::Call &call, rpma_peer &peer,
                                                   const char *addr, const char *port,
                                                   rpma::ConnSettings &&cfg);

    // Starts resolving addr and port; waits only for the name server. Returns nullptr on
    // failure: RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_conn_req> start(rpma::Call &call, rpma_peer &peer,
                                                const char *addr, const char *port,
                                                rpma::ConnSettings &&cfg);

    // Takes over the ID of a CONNECT_REQUEST event. The event is acknowledged in any case; on
    // failure the other side is rejected. The request is set up unless cfg is nullptr. Returns
    // nullptr on failure: RPMA_E_INVAL, RPMA_E_NOMEM, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_conn_req> incoming(rpma::Call &call, rpma_peer &peer,
                                                   rpma::CmEvent &&event,
                                                   const rpma::ConnSettings *cfg);

    rpma_conn_req(rpma_peer &peer_of_id, rpma::CmId &&id)
        : rpma_conn(peer_of_id, std::move(id)) {}

    // The reason, for the log, why a request that is not set up can neither connect nor post
    // receives.
    const char *not_set_up_reason() const {
        return has_failed() ? rpma::REQUEST_FAILED : rpma::REQUEST_NOT_SET_UP;
    }
    // Rejects an incoming request and destroys all objects. RPMA_E_PROVIDER.
    void reject(rpma::Call &call, const rpma_conn_private_data *pdata);
};
