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
constexpr size_t UNSENT_MAX = 64; // messages for a side that takes none

// All of it throws a Failure when the other side is lost.
class Control {
  public:
    explicit Control(rpma::peer &peer);

    // Goes on once the descriptor of the link is readable; the link was started or taken.
    void go_on();
    // Each message waits until the device no longer needs the memory of the one before it.
    void send(const Json &message);
    // The bytes of a message if one has arrived; never waits.
    std::optional<std::string> take();
    // After an event of the descriptor of the CQ.
    void take_cq_event();
    // Called in every turn of a wait: at intervals it reads from the other side's device as a
    // sign of life.
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
    rpma::mr_remote nowhere; // of which 0 bytes are read, so that its key does not matter
    std::deque<std::string> unsent; // the first one is in memory
    rpma::cq_ref cq;
    int cq_fd_ = -1;
    uint64_t heard = 0; // when the last message or sign of life arrived
    bool is_keepalive_outstanding = false;
};

#endif
