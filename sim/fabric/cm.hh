// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.hh -- the connection manager of the simulated fabric.

#ifndef RPMA_SIM_CM_HH
#define RPMA_SIM_CM_HH 1

#include "objects.hh"

namespace sim {

class Fabric;
struct Caller;
struct Reply;

class Cm {
  public:
    explicit Cm(Fabric &fabric) : fabric_(fabric) {}
    // A request with a number from OP_CM_FIRST to OP_CM_LAST; returns an error number.
    int call(Caller &caller, const void *request, size_t length, Reply &reply);
    // What happened elsewhere.
    void session_ends(Session &session); // before its other objects are destroyed
    void qp_failed(Qp &qp);              // iWARP: the connection is closed
    void qp_destroyed(Qp &qp);
    void links_changed();
    void device_removed(Device &device);

  private:
    Fabric &fabric_;
};

} // namespace sim

#endif // RPMA_SIM_CM_HH
