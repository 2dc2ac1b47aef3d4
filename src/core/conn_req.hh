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

struct rpma_conn_req : rpma::Allocated {
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

    rpma_conn_req(rpma_peer &peer, std::unique_ptr<rpma_conn> &&conn)
        : conn_(std::move(conn)), peer_(peer) {}

    // Processes pending events and advances the request. RPMA_E_AGAIN: it is not ready yet.
    // RPMA_E_PROVIDER: the request has failed for good.
    void resolve(rpma::Call &call);
    bool is_ready() const { return step_ == Step::READY || is_set_up(); }
    bool has_failed() const { return step_ == Step::FAILED; }

    // Creates the queues of a request that is ready. On failure the request is unchanged:
    // RPMA_E_INVAL, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    void set_up(rpma::Call &call, const rpma::ConnSettings &cfg);
    bool is_set_up() const { return step_ == Step::SET_UP; }
    // The reason, for the log, why a request that is not set up can neither connect nor post
    // receives.
    const char *not_set_up_reason() const {
        return has_failed() ? rpma::REQUEST_FAILED : rpma::REQUEST_NOT_SET_UP;
    }

    // Connects or accepts. The caller deletes the request afterwards, also on failure. nullptr:
    // RPMA_E_NOMEM, RPMA_E_PROVIDER.
    std::unique_ptr<rpma_conn> connect(rpma::Call &call, const rpma_conn_private_data *pdata);

    // Rejects an incoming request and destroys all objects. RPMA_E_PROVIDER.
    void reject(rpma::Call &call, const rpma_conn_private_data *pdata);
    bool is_incoming() const { return is_incoming_; }

    // Destroys all objects and drops their pointers even if the provider fails.
    // RPMA_E_PROVIDER.
    void release(rpma::Call &call) { conn_->release(call); }

    // The connection that the request makes.
    const rpma_conn &conn() const { return *conn_; }
    uint32_t rq_size() const { return conn_->rq_size(); }

  private:
    enum class Step : uint8_t { ADDRESS, ROUTE, READY, SET_UP, FAILED };

    static std::unique_ptr<rpma_conn_req> create(rpma::Call &call, rpma_peer &peer,
                                                 rpma::CmId &&id);
    bool set_up_conn(rpma::Call &call, const rpma::ConnSettings &cfg);
    bool try_next_address(rpma::Call &call);
    bool advance(rpma::Call &call, rpma::CmEvent &&event);
    bool check_device(rpma::Call &call) const;
    rdma_conn_param parameters(const rpma_conn_private_data *pdata) const;

    std::unique_ptr<rpma_conn> conn_; // empty once it is connected
    rpma_peer &peer_;
    uint8_t retry_count_ = 0;
    uint8_t rnr_retry_count_ = 0;
    uint8_t tos_ = 0;
    bool is_incoming_ = false;
    bool is_asynchronous_ = false; // calls of resolve() advance it
    Step step_ = Step::READY;
    int timeout_ms_ = 0;
    rpma::AddressList addresses_;
    // In addresses_: the address to try if the current one fails.
    const addrinfo *next_address_ = nullptr;
    rpma::Source source_; // set by start()
};
