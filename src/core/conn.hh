// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn.hh -- a connection: a queue pair with its queues and events
//
// conn_req.cc resolves an address, conn_resources.cc creates and releases the queues, conn.cc
// connects, and reads the events.
//
// Thread-safety: any thread may post, wait and poll; the provider serialises these calls where
// necessary. Only one thread at a time may read events.

#pragma once

#include <atomic>

#include "base/allocation.hh"
#include "core/config.hh"
#include "core/cq.hh"
#include "core/flush.hh"
#include "core/flush_target.hh"
#include "core/handle_entry.hh"
#include "core/private_data.hh"
#include "verbs/address.hh"
#include "verbs/cm.hh"

struct rpma_peer;

namespace rpma {

// Checks, without network access, that a connection of peer can be created from cfg. Returns
// false if it cannot have a native flush that cfg requires (RPMA_E_NOSUPP), or cannot use the
// completion queues of cfg (RPMA_E_INVAL): only the connection's own queues can share a
// completion channel, because each queue of the program or of an SRQ has a channel. Receives
// complete in one queue. A queue of the program must be created by rpma_cq_new(), on the device
// of peer; the SRQ must be on this device.
bool check_cfg(Call &call, const rpma_peer &peer, const ConnSettings &cfg);

// The text of rpma_utils_conn_event_2str().
const char *event_text(rpma_conn_event event);

} // namespace rpma

// A request is the same object in another state: rpma_conn_req, its type in the public header,
// adds no members. So connecting allocates nothing and moves nothing.
struct rpma_conn : rpma::Allocated {
    // Processes pending events of a request until it is ready. RPMA_E_AGAIN: it is not ready
    // yet. RPMA_E_PROVIDER: the request has failed for good.
    void resolve(rpma::Call &call);
    bool is_ready() const { return state_ >= State::READY; }
    bool has_failed() const { return state_ == State::FAILED; }
    bool is_set_up() const { return state_ >= State::SET_UP; }
    bool is_incoming() const { return id_.is_pending(); }

    // Creates the queues and the queue pair of a request that is ready, from a cfg that
    // check_cfg() accepts. Returns false on failure, and the request is unchanged:
    // RPMA_E_INVAL, RPMA_E_PROVIDER.
    bool set_up(rpma::Call &call, const rpma::ConnSettings &cfg);
    // Creates an event channel for the connection, and moves the events of its ID, if it has
    // one, to this channel. Returns false on failure: RPMA_E_PROVIDER.
    bool use_own_channel(rpma::Call &call, bool nonblocking);
    // nullptr for rpma_conn_req_new() until the request connects.
    rdma_event_channel *events() const { return events_.get(); }
    const rpma::CmId &id() const { return id_; }
    rpma::CmId &id() { return id_; }
    // Copies the private data of the other side. Returns false if there is no memory.
    bool copy_private_data(const rdma_conn_param &param) {
        return private_data_.copy(param.private_data, param.private_data_len);
    }
    // Connects, or accepts an incoming request; afterwards the object is a connection. Returns
    // false on failure: RPMA_E_NOMEM, RPMA_E_PROVIDER. Delete the request then.
    bool connect(rpma::Call &call, const rpma_conn_private_data *pdata);
    // Disconnects. A connection that has ended already is not a failure. RPMA_E_PROVIDER.
    void disconnect(rpma::Call &call) { id_.disconnect(call, is_established_ || has_ended_); }
    // Destroys all objects and drops their pointers even if the provider fails.
    // RPMA_E_PROVIDER.
    void release(rpma::Call &call);

    // Returns RPMA_CONN_UNDEFINED on failure: RPMA_E_NO_EVENT, RPMA_E_PROVIDER, RPMA_E_UNKNOWN.
    rpma_conn_event next_event(rpma::Call &call);

    // Waits on the shared channel and sets *ready_cq to the queue that has completions. 0,
    // RPMA_E_NOT_SHARED_CHNL, RPMA_E_NO_COMPLETION, RPMA_E_UNKNOWN, RPMA_E_PROVIDER.
    int wait(const char *function, rpma_cq **ready_cq);
    // The shared channel's descriptor. RPMA_E_NOT_SHARED_CHNL.
    int shared_fd(rpma::Call &call) const;

    // The CQ of sends, and of receives unless they have a queue of their own.
    rpma_cq *cq() const { return cq_; }
    // nullptr: receives complete in cq(), or in a queue that the SRQ owns.
    rpma_cq *rcq() const { return rcq_; }
    // The capacities that the device granted to the queue pair.
    struct Granted {
        uint32_t max_send_wr, max_recv_wr, max_inline_data;
    };
    const Granted &granted() const { return granted_; }
    uint32_t rq_size() const { return granted_.max_recv_wr; }
    rpma_conn_private_data private_data() const { return private_data_.view(); }

    // Each operation reads the first members, which share a cache line.
    ibv_qp *qp = nullptr; // nullptr until set_up()
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    ibv_qp_ex *extended; // the same queue pair for native operations, or nullptr
#endif
    ibv_sge flush_read = {}; // the SGE that an emulated flush reads to
    rpma::FlushMethods flush;
    rpma_peer &peer;
    // A receive has fewer bytes. 0: the connection uses an SRQ, or is not set up, or has
    // failed.
    uint64_t receive_limit = 0;
    uint16_t max_sge;      // SGEs of an operation
    uint16_t max_read_sge; // SGEs of a read
    std::atomic<bool> warned_of_misalignment = false;

  protected:
    rpma_conn(rpma_peer &peer_of_id, rpma::CmId &&id) : peer(peer_of_id), id_(std::move(id)) {}
    ~rpma_conn() = default;

    // Starts resolving the addresses, see rpma_conn_req::start().
    bool start_resolution(rpma::Call &call, rpma::AddressList &&addresses,
                          const rpma::ConnSettings &cfg);

  private:
    // Of a request; only one that is set up can connect and post receives. A connection stays
    // SET_UP.
    enum class State : uint8_t { RESOLVING_ADDRESS, RESOLVING_ROUTE, FAILED, READY, SET_UP };

    // What start_resolution() needs for further addresses.
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
    };

    bool try_next_address(rpma::Call &call);
    bool advance_resolution(rpma::Call &call, rpma::CmEvent &&event);
    [[gnu::cold, gnu::noinline]] void end_resolution() {
        resolution_.reset();
    }
    bool check_device(rpma::Call &call) const;
    bool create_queues(rpma::Call &call, const rpma::ConnSettings &cfg, uint64_t completions);
    bool create_queue(rpma::Call &call, const rpma::SizeRequest &size, rpma_cq &queue);
    bool create_queue_pair(rpma::Call &call, const rpma::ConnSettings &cfg,
                           uint64_t operations);
    void drop_queues();
    bool prepare_flushes(rpma::Call &call);
    rdma_conn_param parameters(const rpma_conn_private_data *pdata) const;
    bool is_shared(rpma::Call &call) const;
    // Call it once the queue pair is ready to send: librdmacm sets the default in earlier
    // states.
    void set_rnr_timer(const rpma::Call &call) {
        if (rnr_timer_ms_ != 0)
            id_.set_rnr_timer(call, std::exchange(rnr_timer_ms_, 0));
    }
    [[gnu::cold, gnu::noinline]] int refuse_wait(const char *function) const;

    // Set by the thread that takes events; any thread may disconnect. These six fill a gap in
    // the layout.
    std::atomic<bool> is_established_ = false;
    std::atomic<bool> has_ended_ = false; // an event has reported the end
    State state_ = State::READY;
    uint16_t rnr_timer_ms_ = 0; // still to be set; 0: none, or already set
    uint8_t retry_count_;
    uint8_t rnr_retry_count_;
    Granted granted_;
    rpma_cq *cq_, *rcq_;
    rpma::PrivateData private_data_; // the other side's private data
    // The members from here on are released in reverse order.
    rpma::FlushTargetUse flush_target_; // empty if all flushes are native
    rpma::EventChannel events_;
    rpma::CompChannel shared_; // only with a shared completion channel
    rpma::CmId id_;
    rpma::CqUse used_cq_;  // a queue of the program
    rpma::CqUse used_rcq_; // a queue of the program or of the SRQ
    rpma_cq own_cq_;
    rpma_cq own_rcq_;
    rpma::QueuePair queue_pair_;
    rpma::HandleEntry entry_;                // the entry of the queue pair, see HandleEntry
    std::unique_ptr<Resolution> resolution_; // only from start_resolution() to connect()
};
