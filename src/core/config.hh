// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// config.hh -- configurations of peers, connections and queues
//
// Thread-safety: each setting is read and written atomically, so that threads may share a
// configuration. An object that is created from it uses the value that each setting has at that
// moment.

#pragma once

#include <atomic>
#include <sys/socket.h>

#include "base/lock.hh"
#include "base/memory.hh"
#include "verbs/address.hh"

struct rpma_peer_cfg : rpma::Allocated {
    // Creates and logs the configuration that the other side advertised. Returns nullptr on
    // failure: RPMA_E_NOMEM.
    static std::unique_ptr<rpma_peer_cfg> create(rpma::Call &call, bool direct_write_to_pmem,
                                                 uint8_t served);

    std::atomic<bool> direct_write_to_pmem = false;
    std::atomic<uint8_t> served = 0; // SERVES_*; 0: not advertised
};

struct rpma_cq_cfg : rpma::Allocated {
    std::atomic<uint32_t> size = 100;
    std::atomic<uint32_t> comp_vector = 0;
};

struct rpma_srq_cfg : rpma::Allocated {
    std::atomic<uint32_t> rq_size = 100;
    std::atomic<uint32_t> rcq_size = 100; // 0: the queue has no receive CQ of its own
    std::atomic<uint32_t> max_sge = 1;
};

struct rpma_ep_cfg : rpma::Allocated {
    std::atomic<uint32_t> backlog = 0;   // 0: the largest backlog that the kernel allows
    std::atomic<bool> ipv6_only = false; // false: net.ipv6.bindv6only decides
};

struct rpma_conn_cfg : rpma::Allocated {
    // Copies the source address and port of the connection. False: the system chooses both, and
    // nothing is copied.
    bool source_addr(sockaddr_storage &to) const {
        if (!has_source)
            return false;
        const rpma::Lock lock(source_lock);
        to = source;
        return rpma::is_source(to); // another thread may have removed it
    }
    // Changes the source by change(sockaddr_storage &).
    template <class Change> void set_source(Change change) {
        const rpma::Lock lock(source_lock);
        change(source);
        has_source = rpma::is_source(source);
    }

    std::atomic<int> timeout_ms = RPMA_DEFAULT_TIMEOUT_MS;
    std::atomic<uint32_t> cq_size = 10;
    std::atomic<bool> cq_size_set = false; // set by the caller
    std::atomic<uint32_t> rcq_size = 0;    // 0: no receive CQ
    std::atomic<uint32_t> sq_size = 10;
    std::atomic<uint32_t> rq_size = 10;
    std::atomic<uint32_t> max_sge = 1;
    std::atomic<int> ack_timeout_ms = 0; // 0: the default of device and CM
    std::atomic<int> rnr_timer_ms = 0;   // 0: the default of the CM
    std::atomic<uint8_t> retry_count = 7;
    std::atomic<uint8_t> rnr_retry_count = 7;
    std::atomic<uint8_t> tos = 0; // 0: the system's default
    std::atomic<rpma_flush_mode> flush_mode = RPMA_FLUSH_MODE_AUTO;
    std::atomic<uint32_t> inline_size = RPMA_ATOMIC_WRITE_ALIGNMENT;
    std::atomic<bool> shared_channel = false;
    std::atomic<rpma_srq *> srq = nullptr; // borrowed
    std::atomic<rpma_cq *> cq = nullptr;   // borrowed; nullptr: a CQ of its own
    std::atomic<rpma_cq *> rcq = nullptr;  // borrowed; nullptr: rcq_size decides
    std::atomic<bool> has_source = false;
    sockaddr_storage source = {}; // protected by source_lock; family AF_UNSPEC: any address
    mutable pthread_mutex_t source_lock = PTHREAD_MUTEX_INITIALIZER;
};

namespace rpma {

// The most SGEs of an operation or a receive on any device: rpma_post() holds their array on
// its stack.
inline constexpr uint32_t MOST_PIECES = 128;
// Name of the setter, for log messages.
inline constexpr char CONN_PIECES[] = "rpma_conn_cfg_set_max_sge";
inline constexpr char SRQ_PIECES[] = "rpma_srq_cfg_set_max_sge";

inline constinit const rpma_conn_cfg default_conn_cfg;
inline constinit const rpma_srq_cfg default_srq_cfg;
inline constinit const rpma_cq_cfg default_cq_cfg;
inline constinit const rpma_ep_cfg default_ep_cfg;

// NULL selects the defaults.
inline const rpma_conn_cfg &or_default(const rpma_conn_cfg *cfg) {
    return cfg != nullptr ? *cfg : default_conn_cfg;
}
inline const rpma_srq_cfg &or_default(const rpma_srq_cfg *cfg) {
    return cfg != nullptr ? *cfg : default_srq_cfg;
}
inline const rpma_cq_cfg &or_default(const rpma_cq_cfg *cfg) {
    return cfg != nullptr ? *cfg : default_cq_cfg;
}
inline const rpma_ep_cfg &or_default(const rpma_ep_cfg *cfg) {
    return cfg != nullptr ? *cfg : default_ep_cfg;
}

} // namespace rpma
