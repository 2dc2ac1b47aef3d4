// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// strict_checks.hh -- the table of the checks of --strict
//
// Each has a name, the misuse that it finds, and a remedy. man/pages.py makes the list in
// rdma-sim(1) from it, and tests/cli/strict.py makes each misuse.

#pragma once

// clang-format off
#define STRICT_CHECKS(CHECK) \
    CHECK(DESTROYED, "destroyed", "an object is used or destroyed after it was destroyed", \
          "use an object only until it is destroyed") \
    CHECK(IN_USE, "in-use", "an object is destroyed while others use it", \
          "destroy the objects that use it first") \
    CHECK(EVENTS, "events", "an object is destroyed before its events are acknowledged, for which the call waits", \
          "acknowledge each event") \
    CHECK(ACKNOWLEDGED, "acknowledged", "more events are acknowledged than were received", \
          "acknowledge each event once") \
    CHECK(LEAK, "leak", "a program that ends with status 0 has not destroyed an object", \
          "destroy each object before the end") \
    CHECK(EARLY, "early", "a request is posted before the queue pair has the state for it", \
          "post receives from INIT on and sends from RTS on") \
    CHECK(KEY, "key", "an SGE has a key that no region of the protection domain has", \
          "register the buffer in the protection domain of the queue, and use its lkey") \
    CHECK(RANGE, "range", "an SGE has bytes outside of the region of its key", \
          "use addresses inside of the registered range") \
    CHECK(ACCESS, "access", "the device would write to a region without IBV_ACCESS_LOCAL_WRITE", \
          "register the buffer with IBV_ACCESS_LOCAL_WRITE") \
    CHECK(INLINE, "inline", "a request has more inline data than max_inline_data", \
          "create the queue pair with a larger max_inline_data, or leave IBV_SEND_INLINE out") \
    CHECK(SGES, "sges", "a request has more SGEs than its queue", \
          "create the queue with a larger max_send_sge or max_recv_sge") \
    CHECK(DEPTH, "depth", "a read or an atomic is posted to a queue pair that may have none outstanding", \
          "set initiator_depth of the connection, or max_rd_atomic") \
    CHECK(SHARED, "shared", "a receive is posted to a queue pair that has a shared receive queue", \
          "post it to the shared receive queue") \
    CHECK(OVERFLOW, "overflow", "the completions of the posted requests do not fit into their queue", \
          "create a larger completion queue, or poll it before further posts") \
    CHECK(FLAGS, "flags", "a flag is not defined, or not for this operation", \
          "initialize the structure, and use the flags of the manual page") \
    CHECK(VALUES, "values", "a value is too large for the bits that it has in a message", \
          "initialize the structure, and use values of the manual page") \
    CHECK(CHANNEL, "channel", "a completion queue without a channel is armed, so nobody gets the event", \
          "create the completion queue with a channel") \
    CHECK(UNBOUND, "unbound", "rdma_listen() is called before rdma_bind_addr()", \
          "bind the ID to an address first") \
    CHECK(NO_QP, "no-qp", "a connection is requested or accepted without a queue pair", \
          "call rdma_create_qp() first, or set qp_num") \
    CHECK(POSTED, "posted", "a region is deregistered while posted requests use it", \
          "wait for the completions, or move the queue pair to the error state")
// clang-format on
