// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// clock.cc -- the scheduler that takes each step as soon as the links permit it.

#include "fabric.hh"
#include "qp_state.hh"
#include "req.hh"

namespace sim {

void Clock::message_sent(Fabric &fabric, const Cm::Message &message, uint64_t timeout) {
    fabric.cm().transmit(message, timeout);
}

void Clock::requests_ready(Fabric &fabric, Qp &qp) {
    run_sends(fabric, qp);
}

void Clock::qp_failed(Fabric &fabric, Qp &qp) {
    flush_queues(fabric, qp);
}

void Clock::links_changed(Fabric &fabric) {
    fabric.cm().links_changed();
    std::vector<uint32_t> numbers;
    for (const auto &[number, qp] : fabric.qps)
        numbers.push_back(number);
    for (const uint32_t number : numbers)
        if (const auto found = fabric.qps.find(number); found != fabric.qps.end())
            run_sends(fabric, *found->second);
}

} // namespace sim
