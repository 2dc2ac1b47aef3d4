// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.hh -- operations of one connection, linked in the form that the provider takes
//
// The slots of a batch are always linked, each to the next one. An addition fills the first
// free slot. A post ends the list after the last operation and passes it to the provider. The
// list stays ended until an addition opens it again, so the next post is a single call of the
// provider. Providers copy the work requests.
//
// Thread-safety: one thread at a time.

#pragma once

#include "post/slot.hh"

namespace rpma {
struct Outcome;
}

struct rpma_batch : rpma::Allocated {
    // Returns nullptr on failure: RPMA_E_INVAL, RPMA_E_NOMEM.
    static std::unique_ptr<rpma_batch> create(rpma::Call &call, rpma_conn &conn,
                                              uint32_t max_ops);

    // Removes all operations.
    void reset();
    // Is true if free_slot() exists; otherwise call open() first.
    bool is_open() const { return free_ != limit_; }
    // Opens a list that a post has ended. False: the batch is full, which is logged.
    bool open(const char *function);
    rpma::Slot &free_slot() const { return *free_; }
    // Appends the free slot, which the caller has filled, to the list.
    void add_slot() { free_ = slot_behind(free_); }

    uint32_t size() const { return number(free_); }
    bool has(uint32_t index) const { return &slot(index) < free_; }
    uint32_t room() const { return max_ops_ - size(); }
    rpma::Slot &slot(uint32_t index) const {
        return *reinterpret_cast<rpma::Slot *>(reinterpret_cast<char *>(slots_.get()) +
                                               index * slot_size_);
    }
    // A spare slot after the others, which belongs to no operation.
    rpma::Slot &scratch() const { return slot(max_ops_); }

    // Posts the rest of the list. *posted, unless nullptr: the number of operations that the
    // device took. 0, or the code of the failure, which is logged.
    int post(const char *function, uint32_t *posted);

    bool is_ready() const {
        return ready == READY || (ready == UNLESS_WAYS_CHANGE && has_current_ways());
    }
    // Is true if the methods of the flushes and atomic writes are those that the connection
    // uses now.
    bool has_current_ways() const { return generation_ == conn.flush.generation(); }

    ibv_send_wr *first() const { return &slots_->wr; }
    // Slow path after the post of a ready list.
    [[gnu::cold, gnu::noinline]] int settle_ready(const char *function, int result);

    // A ready list is posted unchanged, and its post reads these members. They are in memory,
    // because registers would have to be saved across the provider's call.
    enum Ready : uint8_t { NOT_READY, UNLESS_WAYS_CHANGE, READY } ready = NOT_READY;
    uint32_t ready_size; // in operations
    ibv_qp *const qp;
    ibv_send_wr *bad; // the first one, until a provider stores another one
    uint32_t *given;  // the caller's output: operations that were posted

    rpma_conn &conn;
    rpma::Kinds kinds;

  private:
    struct Free {
        void operator()(void *memory) const { std::free(memory); }
    };
    using Slots = std::unique_ptr<rpma::Slot, Free>;

  public:
    rpma_batch(rpma_conn &connection, uint32_t max_ops, Slots &&slots, std::size_t slot_size);

  private:
    rpma::Slot *slot_behind(rpma::Slot *slot) const {
        return reinterpret_cast<rpma::Slot *>(reinterpret_cast<char *>(slot) + slot_size_);
    }
    // The number of operations before a slot.
    uint32_t number(const void *slot) const {
        const auto bytes =
            static_cast<const char *>(slot) - reinterpret_cast<const char *>(slots_.get());
        return static_cast<uint32_t>(static_cast<std::size_t>(bytes) / slot_size_);
    }
    void end();
    void reopen();
    int choose_ways(const char *function);
    // Reports a list that the device did not take completely, and continues after the failure.
    int settle(const char *function, const rpma::Outcome &outcome, uint32_t *posted);

    rpma::Slot *free_;      // the first free slot
    rpma::Slot *limit_;     // the end of the slots; if the list is ended, the first free slot
    bool is_ended_ = false; // additions have to open() it
    uint32_t next_ = 0;     // the first operation of the next post
    uint32_t generation_;   // of the connection, when the methods were chosen
    uint32_t max_ops_;
    std::size_t slot_size_; // in bytes
    Slots slots_;
};
