// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// control_channel.hh -- the connection that carries messages between the two sides

#pragma once

#include "cm_link.hh"
#include "mapping.hh"
#include "message.hh"

#include <deque>
#include <optional>

constexpr int KEEPALIVE_MS = 5000;
constexpr size_t UNSENT_MAX = 64; // messages queued for a peer that receives none

// All functions throw a Failure when the peer is lost.
class ControlChannel {
  public:
    explicit ControlChannel(rpma::peer &peer);

    // Advances the link once its descriptor is readable.
    void advance();
    // Sends a message, or queues it while the device uses the memory of the previous one.
    void send(const Json &message);
    // The bytes of a message if one has arrived; never blocks.
    std::optional<std::string> take();
    // Called when the descriptor of the CQ is readable.
    void take_cq_event();
    // Called in each iteration of a wait: posts a read of 0 bytes as a keepalive when it is
    // due.
    void keep_alive();

    int cq_fd() const { return cq_fd_; } // -1: not connected yet

  private:
    void connect();
    void post_send();
    void end_send();
    std::string copy_message(size_t count);
    [[noreturn]] void end(ibv_wc_status status);

    Mapping memory_; // buffers of one received and one sent message
    rpma::mr_local mr_;
    rpma::mr_remote
        keepalive_target_; // reads have 0 bytes, so that the device does not check its key
    std::deque<std::string> unsent_; // the first one is being sent from memory
    rpma::cq_ref cq_;
    int cq_fd_ = -1;
    uint64_t last_activity_ = 0; // time of the last completed message or keepalive
    bool is_keepalive_outstanding_ = false;

  public:
    CmLink link; // deleted before the memory that the device uses
};
