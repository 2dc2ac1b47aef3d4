// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// counters.hh -- what a device counts, and the counters that its driver shows.

#pragma once

#include "../device/profile.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sim {

// Completions are counted by their status: COUNT_SEND_STATUS + status, COUNT_RECEIVE_STATUS +
// status.
enum Count : unsigned {
    COUNT_NOTHING, // of an event that the fabric does not have
    COUNT_SENT_PACKETS,
    COUNT_SENT_BYTES,
    COUNT_RECEIVED_PACKETS,
    COUNT_RECEIVED_BYTES,
    COUNT_SENDS, // requests that were sent, by type
    COUNT_WRITES,
    COUNT_READS,
    COUNT_ATOMICS,
    COUNT_SENDS_IN, // requests that were received
    COUNT_WRITES_IN,
    COUNT_READS_IN,
    COUNT_ATOMICS_IN,
    COUNT_RNR_SENT,
    COUNT_RNR_RECEIVED,
    COUNT_NO_RECEIVE, // messages and datagrams without a receive
    COUNT_TIMEOUTS,
    COUNT_RETRIES, // after a timeout
    COUNT_PORT_DOWN,
    COUNT_MESSAGES_COMPLETED, // sends, also those without a completion
    COUNT_SEND_ERRORS,
    COUNT_RECEIVE_ERRORS,
    COUNT_ACCESS_REFUSED, // requests of peers
    COUNT_SEND_STATUS = 32,
    COUNT_RECEIVE_STATUS = 64,
    COUNTS = 96,
    COUNT_OBJECTS = 128, // + Object::Kind: objects that exist
};

using Counters = std::array<uint64_t, COUNTS>;

// A counter of a driver. `group`: its directory in the one of the port.
struct DriverCounter {
    std::string group, name;
    Count count;
    unsigned unit; // of the value: how many of `count`
};

// The counters of a device, in the order of its driver.
const std::vector<DriverCounter> &counters_of(const sim_profile &profile);

class Fabric;
struct Qp;
struct Send;
void count_executed(const Qp &qp, const Qp &peer, const Send &send);
// UC: `peer` has no receive; NULL: it is not reached.
void count_dropped(const Qp &qp, const Qp *peer, const Send &send);
void count_datagram(const Qp &qp, uint64_t length);
void count_delivery(const Qp &peer, uint64_t length, bool has_receive);
void count_send(const Qp &qp, const Send &send, ibv_wc_status status);
void count_receive(const Qp &qp, ibv_wc_status status);
// The attempts of a request that has no response. `peer` has no receive; NULL: it is not
// reached.
void begin_attempts(Fabric &fabric, Qp &qp, const Send &send, const Qp *peer, uint64_t period,
                    uint64_t limit);
void end_attempts(Fabric &fabric, Qp &qp);
void count_attempts(Fabric &fabric, Qp &qp);

} // namespace sim
