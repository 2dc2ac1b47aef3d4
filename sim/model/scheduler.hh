// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// scheduler.hh -- decides by how much the steps of the fabric are late, and which of the
// permitted effects they have.

#pragma once

#include "cm.hh"
#include "weaknesses.hh"

namespace sim {

// What arrives after a delay: a message of the connection manager, a request at its target, or
// its response at the requester; bytes of TCP or UDP.
enum class Delayed { MESSAGE, REQUEST, RESPONSE, PACKET };

// This one takes each step as soon as the links permit it, with the effect of the strong model.
// Derived ones make steps late, and choose other effects.
class Scheduler {
  public:
    virtual ~Scheduler() = default;

    // ---- choices ----
    // Returns the nanoseconds by which something arrives later than the link requires.
    virtual uint64_t delay(Delayed) { return 0; }
    // Returns 0 for the effect that the strong model has, or the number of another effect, from
    // 1 to `options`. Called by Fabric::choose(), only for weaknesses that are on.
    virtual unsigned choose(Weakness, unsigned /*options*/) { return 0; }

    // ---- reports ----
    virtual void posted(const Qp &) {} // new requests; their execution follows
    virtual void links_changed() {}    // what waited for a link has arrived
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

} // namespace sim
