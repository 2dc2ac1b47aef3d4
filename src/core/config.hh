// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// config.hh -- configurations of peers, connections and queues
//
// Thread-safety: threads may share a configuration. A call copies all settings at once, so that
// no setter changes one of them between its check and its use.

#pragma once

#include <type_traits>

#include "base/allocation.hh"
#include "base/lock.hh"
#include "verbs/address.hh"

namespace rpma {

// The settings of a configuration, protected by its lock.
template <class Settings> class Config : public Allocated {
  public:
    constexpr Config() = default;
    explicit Config(const Settings &settings) : settings_(settings) {}

    Settings read() const {
        const Lock lock(lock_);
        return settings_;
    }
    template <class Value> Value get(Value Settings::*setting) const {
        const Lock lock(lock_);
        return settings_.*setting;
    }
    // Returns 0, the code of a setter.
    template <class Value>
    int set(Value Settings::*setting, std::type_identity_t<Value> value) {
        return change([&](Settings &settings) { settings.*setting = value; });
    }
    template <class Change> int change(Change change) {
        const Lock lock(lock_);
        change(settings_);
        return 0;
    }

  private:
    Settings settings_;
    mutable pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
};

struct PeerSettings {
    bool direct_write_to_pmem = false;
    uint8_t served = 0; // SERVES_*; 0: not advertised
};

struct CqSettings {
    uint32_t size = 100;
    uint32_t comp_vector = 0;
};

struct SrqSettings {
    uint32_t rq_size = 100;
    uint32_t rcq_size = 100; // 0: the queue has no receive CQ of its own
    uint32_t max_sge = 1;
};

struct EpSettings {
    uint32_t backlog = 0;   // 0: the largest backlog that the kernel allows
    bool ipv6_only = false; // false: net.ipv6.bindv6only decides
};

struct ConnSettings {
    int timeout_ms = RPMA_DEFAULT_TIMEOUT_MS;
    uint32_t cq_size = 10;
    bool is_cq_size_set = false; // set by the caller
    uint32_t rcq_size = 0;       // 0: no receive CQ
    uint32_t sq_size = 10;
    uint32_t rq_size = 10;
    uint32_t max_sge = 1;
    int ack_timeout_ms = 0; // 0: the default of device and CM
    int rnr_timer_ms = 0;   // 0: the default of the CM
    uint8_t retry_count = 7;
    uint8_t rnr_retry_count = 7;
    uint8_t tos = 0; // 0: the system's default
    bool shared_channel = false;
    rpma_flush_mode flush_mode = RPMA_FLUSH_MODE_AUTO;
    uint32_t inline_size = RPMA_ATOMIC_WRITE_ALIGNMENT;
    rpma_srq *srq = nullptr; // borrowed
    rpma_cq *cq = nullptr;   // borrowed; nullptr: a CQ of its own
    rpma_cq *rcq = nullptr;  // borrowed; nullptr: rcq_size decides
    Source source = {};
};

// Names of the setters, for log messages.
inline constexpr char CONN_SGE_SETTER[] = "rpma_conn_cfg_set_max_sge";
inline constexpr char SRQ_SGE_SETTER[] = "rpma_srq_cfg_set_max_sge";

// NULL selects the defaults.
template <class Settings> Settings settings_of(const Config<Settings> *cfg) {
    return cfg != nullptr ? cfg->read() : Settings();
}

} // namespace rpma

struct rpma_peer_cfg : rpma::Config<rpma::PeerSettings> {
    using Config::Config;
    // Creates and logs the configuration that the other side advertised. Returns nullptr on
    // failure: RPMA_E_NOMEM.
    static std::unique_ptr<rpma_peer_cfg> create(rpma::Call &call,
                                                 const rpma::PeerSettings &settings);
};
struct rpma_cq_cfg : rpma::Config<rpma::CqSettings> {};
struct rpma_srq_cfg : rpma::Config<rpma::SrqSettings> {};
struct rpma_ep_cfg : rpma::Config<rpma::EpSettings> {};
struct rpma_conn_cfg : rpma::Config<rpma::ConnSettings> {};
