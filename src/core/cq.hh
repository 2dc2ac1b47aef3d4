// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.hh -- a completion queue on its own or on a shared completion channel
//
// Thread-safety: waiting and polling may be called from any thread.

#pragma once

#include <atomic>
#include <optional>

#include "verbs/objects.hh"

struct rpma_cq {
    // Creates and arms a queue of size entries on a device that has room for most; without a
    // shared channel it gets its own. Nothing: RPMA_E_PROVIDER.
    static std::optional<rpma_cq> create(rpma::Call &call, ibv_context &device, uint32_t size,
                                         uint32_t most, ibv_comp_channel *shared);

    rpma_cq(rpma_cq &&other) noexcept
        : own_channel_(std::move(other.own_channel_)), channel_(other.channel_),
          queue_(std::move(other.queue_)), unacknowledged_(other.unacknowledged_.load()) {}
    rpma_cq &operator=(rpma_cq &&) = delete;
    ~rpma_cq() { acknowledge_all(); }

    ibv_cq &queue() const { return *queue_.get(); }
    bool is(const ibv_cq *queue) const { return queue_.get() == queue; }
    bool shares_channel() const { return !own_channel_; }
    int fd() const { return channel_->fd; }

    // Waits on the own channel, then takes the event. RPMA_E_NO_COMPLETION, RPMA_E_PROVIDER,
    // RPMA_E_SHARED_CHANNEL.
    void wait(rpma::Call &call);
    // Counts an event that was read for this queue, and arms the queue for the next one.
    // False: RPMA_E_PROVIDER.
    bool take_event(rpma::Call &call);

    // Destroys queue and channel and forgets them, also when the provider refuses.
    void release(rpma::Call &call);
    // Stops at the first refusal and keeps what is left, so that a retry works. False: refused.
    bool try_release(rpma::Call &call);

  private:
    rpma_cq(rpma::CompChannel &&own, ibv_comp_channel *channel, rpma::Cq &&queue)
        : own_channel_(std::move(own)), channel_(channel), queue_(std::move(queue)) {}
    void acknowledge_all();

    rpma::CompChannel own_channel_;
    ibv_comp_channel *channel_; // the own or the shared one
    rpma::Cq queue_;
    std::atomic<unsigned> unacknowledged_ = 0;
};

namespace rpma {

// What a poll means that did not yield between 1 and wanted completions: RPMA_E_NO_COMPLETION,
// RPMA_E_PROVIDER, RPMA_E_UNKNOWN.
void note_poll(Call &call, int got, int wanted);

} // namespace rpma
