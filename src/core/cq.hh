// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.hh -- a completion queue on its own or on a shared completion channel
//
// Thread-safety: waiting and polling may be called from any thread.

#pragma once

#include <atomic>

#include "verbs/objects.hh"

struct rpma_cq {
    // Creates and arms a queue of size entries; without a shared channel it gets its own.
    // RPMA_E_PROVIDER.
    static rpma::Result<rpma_cq> create(ibv_context &device, uint32_t size,
                                        ibv_comp_channel *shared);

    rpma_cq(rpma_cq &&other) noexcept
        : own_channel_(std::move(other.own_channel_)), channel_(other.channel_),
          queue_(std::move(other.queue_)), unacknowledged_(other.unacknowledged_.load()) {}
    rpma_cq &operator=(rpma_cq &&) = delete;
    ~rpma_cq() { (void)close(); }

    ibv_cq &queue() const { return *queue_.get(); }
    bool is(const ibv_cq *queue) const { return queue_.get() == queue; }
    bool shares_channel() const { return !own_channel_; }
    int fd() const { return channel_->fd; }

    // Waits on the own channel, then takes the event. RPMA_E_NO_COMPLETION, RPMA_E_PROVIDER.
    rpma::Status wait();
    // Counts an event that was read for this queue, and arms the queue for the next one.
    rpma::Status take_event();

    // Releases what it can and forgets the rest; the first failure counts.
    rpma::Status close();
    // Stops at the first refusal and keeps what is left, so that a retry works.
    rpma::Status try_close();

  private:
    rpma_cq(rpma::verbs::CompChannel &&own, ibv_comp_channel *channel, ibv_cq *queue)
        : own_channel_(std::move(own)), channel_(channel), queue_(queue) {}
    void acknowledge_all();

    rpma::verbs::CompChannel own_channel_;
    ibv_comp_channel *channel_; // the own or the shared one
    rpma::verbs::Cq queue_;
    std::atomic<unsigned> unacknowledged_ = 0;
};

namespace rpma {

inline constexpr Failure SHARED = {RPMA_E_SHARED_CHANNEL, "the completion channel is shared"};
inline constexpr Failure NOT_SHARED = {RPMA_E_NOT_SHARED_CHNL,
                                       "the completion channel is not shared"};

// What a poll means that did not yield between 1 and the wanted number of completions.
Failure poll_failure(int got);

// Blocks unless the descriptor of the channel is O_NONBLOCK; yields the queue that has an
// event. RPMA_E_NO_COMPLETION (nothing to read, or interrupted), RPMA_E_PROVIDER.
Result<ibv_cq *> next_cq_event(ibv_comp_channel &channel);

} // namespace rpma
