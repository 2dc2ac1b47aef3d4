// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.hh -- a completion queue on its own or on a shared completion channel
//
// Its owner is a connection, a shared receive queue, or the program, which uses it for many
// connections.
//
// Thread-safety: any thread may wait and poll.

#pragma once

#include <atomic>

#include "base/allocation.hh"
#include "core/config.hh"
#include "core/handle_entry.hh"
#include "verbs/objects.hh"

struct rpma_peer;

struct rpma_cq : rpma::Allocated {
    // Creates a queue that the program owns. Returns nullptr on failure: RPMA_E_INVAL,
    // RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_cq> create_for_program(rpma::Call &call, const rpma_peer &peer,
                                                       const rpma::CqSettings &cfg);

    rpma_cq() = default; // has no queue before create()
    ~rpma_cq() {
        if (exists())
            acknowledge_all();
    }

    // Creates and arms a queue, and a channel for it unless a shared channel is given, and adds
    // the queue to the table of handles. After a failure (false, RPMA_E_PROVIDER), drop or
    // destroy the object: it may have a channel.
    bool create(rpma::Call &call, ibv_context &device, const rpma::SizeRequest &size,
                uint32_t comp_vector, ibv_comp_channel *shared);

    // Destroys queue and channel, as the destructor does.
    void drop();
    // Returns true if create() has succeeded and the queue is not destroyed.
    bool exists() const { return static_cast<bool>(queue_); }
    ibv_cq &queue() const { return *queue_.get(); }
    bool owns(const ibv_cq *queue) const { return queue_.get() == queue; }
    bool has_shared_channel() const { return !own_channel_; }
    bool is_of_program() const { return is_of_program_; }
    void add_user() { users_++; }
    void remove_user() { users_--; }
    int fd() const { return queue_->channel->fd; }

    // Reads an event and arms the queue. 0, RPMA_E_NO_COMPLETION, RPMA_E_PROVIDER,
    // RPMA_E_SHARED_CHANNEL, RPMA_E_UNKNOWN.
    int wait(const char *function) {
        if (const int code = take_event(function)) [[unlikely]]
            return code;
        return arm_queue(function, false);
    }
    // Counts an event that was read for this queue, and arms the queue again. 0,
    // RPMA_E_PROVIDER.
    int count_event_and_arm(const char *function) {
        count_event();
        return arm_queue(function, false);
    }
    // The halves of wait(). take_event() waits on the queue's own channel. A program may create
    // another queue on the channel of the ibv_cq; events of this queue are rejected.
    int take_event(const char *function) {
        if (has_shared_channel()) [[unlikely]]
            return refuse_wait(function);
        ibv_cq *queue;
        if (!rpma::next_cq_event(*own_channel_.get(), queue)) [[unlikely]]
            return rpma::report_no_cq_event(function, errno);
        if (!owns(queue)) [[unlikely]]
            return rpma::report_unexpected_cq_event(function, *queue,
                                                    "the one that is waited for");
        count_event();
        return 0;
    }
    int arm(const char *function, bool solicited_only) {
        if (has_shared_channel()) [[unlikely]]
            return refuse_wait(function);
        return arm_queue(function, solicited_only);
    }
    // RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    void moderate(rpma::Call &call, uint16_t count, uint16_t period_us);

    // Destroys queue and channel and drops their pointers even if the provider fails.
    void release(rpma::Call &call);
    // Returns false if connections use the queue: RPMA_E_PROVIDER.
    bool check_unused(rpma::Call &call) const;
    // Destroys queue and channel. Returns false on failure (RPMA_E_PROVIDER), also while the
    // queue has users: both remain, and a retry is possible. True: the queue is destroyed, even
    // if the provider refused to destroy the channel.
    bool try_release(rpma::Call &call);

  private:
    // An acknowledgement takes a lock, so many events are acknowledged at once.
    static constexpr int MAX_UNACKNOWLEDGED = 64;

    [[gnu::cold]] int refuse_wait(const char *function) const;
    int arm_queue(const char *function, bool solicited_only) {
        const int error = rpma::arm(*queue_.get(), solicited_only);
        if (error != 0) [[unlikely]]
            return rpma::report_arm_failure(function, error);
        return error; // equals 0, and saves an instruction
    }
    void acknowledge_all();
    void count_event() {
        if (acknowledge_after_-- == 1) [[unlikely]]
            acknowledge_all();
    }

    rpma::CompChannel own_channel_;
    rpma::Cq queue_;
    // The number of events until the next acknowledgement, below 0 while another thread
    // acknowledges. Counting down to 0 takes 2 instructions fewer than counting up.
    std::atomic<int> acknowledge_after_ = MAX_UNACKNOWLEDGED;
    // The number of connections that use the queue without owning it. Its owner is the program
    // or a shared receive queue.
    std::atomic<unsigned> users_ = 0;
    bool is_of_program_ = false;
    rpma::HandleEntry entry_; // released first, see HandleEntry
};

namespace rpma {

// The use of a queue by a connection that does not own it. The queue must outlive it.
using CqUse = std::unique_ptr<rpma_cq, RemoveUser>;

inline CqUse use(rpma_cq &cq) {
    cq.add_user();
    return CqUse(&cq);
}

// Reports a poll that returned less than 1 or more than requested completions:
// RPMA_E_NO_COMPLETION, RPMA_E_PROVIDER, RPMA_E_UNKNOWN.
void report_poll(Call &call, int got, int requested);

} // namespace rpma
