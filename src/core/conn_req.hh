// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req.hh -- a connection request: an outgoing one connects, an incoming one accepts
//
// Thread-safety: one thread at a time.

#pragma once

#include "base/memory.hh"
#include "core/conn.hh"
#include "verbs/address.hh"

struct rpma_peer;

namespace rpma {

inline constexpr char REQUEST_FAILED[] = "the request has failed: delete it";
inline constexpr char REQUEST_NOT_RESOLVED[] =
    "the request is not resolved: wait until rpma_conn_req_resolve() returns 0";
inline constexpr char REQUEST_NOT_SET_UP[] =
    "the request is not set up: rpma_conn_req_setup() does so";

} // namespace rpma

// Its base is the connection that it creates, so that connecting allocates nothing and moves
// nothing. The delete of the connection deletes the whole object.
struct rpma_conn_req : rpma_conn {
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

    // Processes pending events and advances the request. RPMA_E_AGAIN: it is not ready yet.
    // RPMA_E_PROVIDER: the request has failed for good.
    void resolve(rpma::Call &call);
    bool is_ready() const { return !resolution_ || resolution_->step == Step::READY; }
    bool has_failed() const { return resolution_ && resolution_->step == Step::FAILED; }

    // Creates the queues of a request that is ready. On failure the request is unchanged:
    // RPMA_E_INVAL, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    void set_up(rpma::Call &call, const rpma::ConnSettings &cfg);
    bool is_set_up() const { return qp != nullptr && !has_failed(); }
    // The reason, for the log, why a request that is not set up can neither connect nor post
    // receives.
    const char *not_set_up_reason() const {
        return has_failed() ? rpma::REQUEST_FAILED : rpma::REQUEST_NOT_SET_UP;
    }

    // Connects or accepts; afterwards only the connection is used. Returns false on failure:
    // RPMA_E_NOMEM, RPMA_E_PROVIDER. Delete the request then.
    bool connect(rpma::Call &call, const rpma_conn_private_data *pdata) {
        if (!rpma_conn::connect(call, pdata))
            return false;
        resolution_.reset();
        return true;
    }

    // Rejects an incoming request and destroys all objects. RPMA_E_PROVIDER.
    void reject(rpma::Call &call, const rpma_conn_private_data *pdata);
    bool is_incoming() const { return id().is_pending(); }

  private:
    enum class Step : uint8_t { ADDRESS, ROUTE, READY, FAILED };

    // The state of a request of start() while its address and route are resolved.
    struct Resolution : rpma::Allocated {
        Resolution(rpma::AddressList &&list, const rpma::ConnSettings &cfg)
            : addresses(std::move(list)), next_address(addresses.get()), source(cfg.source),
              timeout_ms(cfg.timeout_ms), tos(cfg.tos) {}

        rpma::AddressList addresses;
        // In addresses: the address to try if the current one fails.
        const addrinfo *next_address;
        rpma::Source source;
        int timeout_ms;
        uint8_t tos;
        Step step = Step::ADDRESS;
    };

    bool try_next_address(rpma::Call &call);
    bool advance(rpma::Call &call, rpma::CmEvent &&event);
    bool check_device(rpma::Call &call) const;

    std::unique_ptr<Resolution> resolution_; // only set by start(); reset by connect()
};
