// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// scheduler.hh -- decides when the steps of the fabric happen, and which of the permitted
// effects they have.

#pragma once

#include "cm.hh"
#include "weaknesses.hh"

namespace sim {

// What arrives after a delay: a message of the connection manager, a request at its target, or
// its response at the requester; bytes of TCP or UDP.
enum class Delayed { MESSAGE, REQUEST, RESPONSE, PACKET };

class Scheduler {
  public:
    virtual ~Scheduler() = default;

    // ---- possible steps: a scheduler takes each at once, or at any later time ----
    // A message was sent. Taken by Cm::transmit(), or by Cm::hold() and later Cm::deliver().
    virtual void message_sent(Fabric &fabric, const Cm::Message &message, uint64_t timeout) = 0;
    // The queue pair has new requests, or may execute them now. Taken by run_sends(), or by
    // execute() and later complete_sends() for each request.
    virtual void requests_ready(Fabric &fabric, Qp &qp) = 0;
    // The queue pair has failed. Taken by flush_queues().
    virtual void qp_failed(Fabric &fabric, Qp &qp) = 0;
    // Messages and requests that wait for a link may arrive now.
    virtual void links_changed(Fabric &fabric) = 0;

    // ---- choices ----
    // Returns the nanoseconds by which something arrives later than the link requires.
    virtual uint64_t delay(Delayed what) = 0;
    // Returns 0 for the effect that the strong model has, or the number of another effect, from
    // 1 to `options`. Called by Fabric::choose(), only for weaknesses that are on.
    virtual unsigned choose(Weakness weakness, unsigned options) = 0;

    // Returns which words of a write become visible later; empty: none. By default, a choice of
    // choose().
    virtual std::vector<bool> late_words(Fabric &fabric, size_t count);
    // Returns the nanoseconds until late words become visible; UINT64_MAX: until a later
    // request.
    virtual uint64_t word_delay() const { return 100'000'000; }

    // ---- reports ----
    virtual void completed(const Cq &, const ibv_wc &) {} // the completion is added
    virtual void signaled(const Channel &) {}             // the channel has an event
    virtual void arrived(const Cm::Message &) {}          // its effects follow
    // The target executes the request: its effects follow.
    virtual void executing(const Qp &, const Qp &, const Send &) {}
    // The target replaces the value of a word by that of an atomic operation.
    virtual void replaced(uint64_t /*before*/, uint64_t /*after*/) {}
    // The data of a read or an atomic operation is in the memory of the requester.
    virtual void landed(const Qp &, const Send &) {}
    // A datagram is lost at a device, or on its way (NULL): why. Its sender gets no error.
    virtual void lost(const Qp &, const Send &, const Device *, const char * /*why*/) {}
};

// Takes each step as soon as the links permit it. All effects are those of the strong model.
class Clock : public Scheduler {
  public:
    void message_sent(Fabric &fabric, const Cm::Message &message, uint64_t timeout) override;
    void requests_ready(Fabric &fabric, Qp &qp) override;
    void qp_failed(Fabric &fabric, Qp &qp) override;
    void links_changed(Fabric &fabric) override;
    uint64_t delay(Delayed) override { return 0; }
    unsigned choose(Weakness, unsigned) override { return 0; }
};

} // namespace sim
