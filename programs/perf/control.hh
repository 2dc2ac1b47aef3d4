// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// control.hh -- the connection that carries messages between the two sides

#ifndef RPMA_PERF_CONTROL_HH
#define RPMA_PERF_CONTROL_HH 1

#include "link.hh"
#include "memory.hh"
#include "message.hh"

#include <deque>
#include <optional>

constexpr int KEEPALIVE_MS = 5000;
constexpr size_t UNSENT_MAX = 64; // messages queued for a peer that receives none

// All functions throw a Failure when the peer is lost.
class Control {
  public:
    explicit Control(rpma::peer &peer);

    // Continues once the descriptor of the started or taken link is readable.
    void go_on();
    // Queues a message until the device has released the memory of the previous one.
    void send(const Json &message);
    // The bytes of a message if one has arrived; never blocks.
    std::optional<std::string> take();
    // After an event of the descriptor of the CQ.
    void take_cq_event();
    // Called in each iteration of a wait: at intervals it reads from the peer's device as a
    // keepalive.
    void keep_alive();

    int cq_fd() const { return cq_fd_; } // -1: not connected yet

    Link link;

  private:
    void connect();
    void post_send();
    void end_send();
    std::string take_bytes(size_t count);
    [[noreturn]] void end(ibv_wc_status status);

    Memory memory; // room for a message to receive and one to send
    rpma::mr_local mr;
    rpma::mr_remote nowhere;        // 0 bytes are read from it, so that its key does not matter
    std::deque<std::string> unsent; // the first one is in memory
    rpma::cq_ref cq;
    int cq_fd_ = -1;
    uint64_t heard = 0; // when the last message or keepalive completed
    bool is_keepalive_outstanding = false;
};

#endif
