// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.hh -- a completion queue on its own or on a shared completion channel
//
// It belongs to a connection, to a shared receive queue, or to the program, which made it for
// many connections.
//
// Thread-safety: waiting and polling may be called from any thread.

#pragma once

#include <atomic>
#include <optional>

#include "base/memory.hh"
#include "core/config.hh"
#include "core/handle_entry.hh"
#include "verbs/objects.hh"

struct rpma_peer;

struct rpma_cq : rpma::Allocated {
    // Creates and arms a queue; without a shared channel it gets its own. Nothing:
    // RPMA_E_PROVIDER.
    static std::optional<rpma_cq> create(rpma::Call &call, ibv_context &device,
                                         const rpma::Demand &size, uint32_t comp_vector,
                                         ibv_comp_channel *shared);
    // A queue of the program. Returns nullptr on failure: RPMA_E_INVAL, RPMA_E_NOMEM,
    // RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_cq> of_program(rpma::Call &call, const rpma_peer &peer,
                                               const rpma_cq_cfg &cfg);

    rpma_cq(rpma_cq &&other) noexcept
        : own_channel_(std::move(other.own_channel_)), queue_(std::move(other.queue_)),
          unacknowledged_(other.unacknowledged_.load()), of_program_(other.of_program_) {}
    rpma_cq &operator=(rpma_cq &&) = delete;
    ~rpma_cq() { acknowledge_all(); }

    ibv_cq &queue() const { return *queue_.get(); }
    bool is(const ibv_cq *queue) const { return queue_.get() == queue; }
    bool shares_channel() const { return !own_channel_; }
    bool is_of_program() const { return of_program_; }
    // From now on events of the device find the queue; it does not move any more.
    void enter() { entry_.enter(queue_.get(), this); }
    void add_user() { users_++; }
    void drop_user() { users_--; }
    int fd() const { return queue_->channel->fd; }

    // Takes an event and arms the queue. 0, RPMA_E_NO_COMPLETION, RPMA_E_PROVIDER,
    // RPMA_E_SHARED_CHANNEL, RPMA_E_UNKNOWN.
    int wait(const char *function) {
        if (const int code = take_event(function)) [[unlikely]]
            return code;
        return arm_queue(function, false);
    }
    // Counts an event that was read for this queue, and arms the queue for the next one. 0,
    // RPMA_E_PROVIDER.
    int count_event_and_arm(const char *function) {
        count_event();
        return arm_queue(function, false);
    }
    // The halves of wait(). take_event() waits on the own channel. A program can get at that by
    // the ibv_cq, and make a queue of its own there: an event of that queue is not this one's.
    int take_event(const char *function) {
        if (shares_channel()) [[unlikely]]
            return refuse_wait(function);
        ibv_cq *queue;
        if (!rpma::next_cq_event(*own_channel_.get(), queue)) [[unlikely]]
            return rpma::no_cq_event(function, errno);
        if (!is(queue)) [[unlikely]]
            return rpma::foreign_cq_event(function, *queue, "the one that is waited for");
        count_event();
        return 0;
    }
    int arm(const char *function, bool solicited_only) {
        if (shares_channel()) [[unlikely]]
            return refuse_wait(function);
        return arm_queue(function, solicited_only);
    }
    // RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    void moderate(rpma::Call &call, uint16_t count, uint16_t period_us);

    // Destroys queue and channel and forgets them, also when the provider refuses.
    void release(rpma::Call &call);
    // Fails with RPMA_E_PROVIDER (false) if connections use the queue.
    bool check_unused(rpma::Call &call) const;
    // Destroys queue and channel. Returns false on failure: RPMA_E_PROVIDER, both stay, so that
    // a retry works; also while the queue has users. True: the queue is gone, even if the
    // channel was refused.
    bool try_release(rpma::Call &call);

  private:
    // An acknowledgement takes a lock, so it is given for many events at once.
    static constexpr unsigned ACKNOWLEDGE_AT = 64;

    [[gnu::cold]] int refuse_wait(const char *function) const;
    rpma_cq(rpma::CompChannel &&own, rpma::Cq &&queue)
        : own_channel_(std::move(own)), queue_(std::move(queue)) {}
    int arm_queue(const char *function, bool solicited_only) {
        const int error = rpma::arm(*queue_.get(), solicited_only);
        if (error != 0) [[unlikely]]
            return rpma::not_armed(function, error);
        return error; // the same as 0, and an instruction less
    }
    void acknowledge_all();
    void count_event() {
        if (unacknowledged_.fetch_add(1) + 1 >= ACKNOWLEDGE_AT) [[unlikely]]
            acknowledge_all();
    }

    rpma::CompChannel own_channel_;
    rpma::Cq queue_;
    std::atomic<unsigned> unacknowledged_ = 0;
    // How many connections use the queue without owning it. Its owner is the program or a
    // shared receive queue.
    std::atomic<unsigned> users_ = 0;
    bool of_program_ = false;
    rpma::HandleEntry entry_; // released first: see there
};

namespace rpma {

struct DropCqUser {
    void operator()(rpma_cq *cq) const { cq->drop_user(); }
};
// The use of a queue by one connection that does not own it; the queue must outlive it.
using CqUse = std::unique_ptr<rpma_cq, DropCqUser>;

inline CqUse use(rpma_cq &cq) {
    cq.add_user();
    return CqUse(&cq);
}

// Reports a poll that did not yield between 1 and wanted completions: RPMA_E_NO_COMPLETION,
// RPMA_E_PROVIDER, RPMA_E_UNKNOWN.
void note_poll(Call &call, int got, int wanted);

} // namespace rpma
