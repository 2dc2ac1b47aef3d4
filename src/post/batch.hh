// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.hh -- operations of one connection, linked as the provider takes them
//
// The slots of a batch are linked from the beginning, each to the next one. Adding an operation
// fills the first free slot. A post ends the list behind the last operation and hands it over;
// the list stays ended, so that the next post needs no more than one call of the provider,
// until an addition opens it again. Providers copy what they are given.
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

    // Returns to no operations.
    void reset();
    // Whether free_slot() is there; otherwise open() may find it.
    bool is_open() const { return free_ != limit_; }
    // Opens a list that a post has ended. False: the batch is full, which is logged.
    bool open(const char *function);
    rpma::Slot &free_slot() const { return *free_; }
    // Makes the free slot, which was filled, the last one of the list.
    void add_slot() { free_ = slot_behind(free_); }

    uint32_t size() const { return number(free_); }
    bool has(uint32_t index) const { return &slot(index) < free_; }
    uint32_t room() const { return max_ops_ - size(); }
    rpma::Slot &slot(uint32_t index) const {
        return *reinterpret_cast<rpma::Slot *>(reinterpret_cast<char *>(slots_.get()) +
                                               index * slot_size_);
    }
    // A slot behind the others, which belongs to no operation.
    rpma::Slot &scratch() const { return slot(max_ops_); }

    // Posts everything that is left of the list. *posted unless nullptr: operations that the
    // device took. 0, or the code of the failure, which is logged.
    int post(const char *function, uint32_t *posted);

    bool is_ready() const {
        return ready == READY || (ready == UNLESS_WAYS_CHANGE && has_current_ways());
    }
    // Whether its flushes and atomic writes go the way that the connection knows now.
    bool has_current_ways() const { return generation_ == conn.flush.generation(); }

    ibv_send_wr *first() const { return &slots_->wr; }
    // The end of a post of a ready list that was not as usual.
    [[gnu::cold, gnu::noinline]] int settle_ready(const char *function, int result);

    // A post of a list that is ready, which goes to the device as it stands, needs these. They
    // stand here, not in registers that would have to be saved over the provider's call.
    enum Ready : uint8_t { NOT_READY, UNLESS_WAYS_CHANGE, READY } ready = NOT_READY;
    uint32_t ready_size; // operations
    ibv_qp *const qp;    // of the connection
    ibv_send_wr *bad;    // the first one, until a provider stores another one
    uint32_t *given;     // where the caller wants to know how many were posted

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
    // Operations before a slot.
    uint32_t number(const void *slot) const {
        const auto bytes =
            static_cast<const char *>(slot) - reinterpret_cast<const char *>(slots_.get());
        return static_cast<uint32_t>(static_cast<std::size_t>(bytes) / slot_size_);
    }
    void end();
    void reopen();
    int choose_ways(const char *function);
    // Reports a list that the device did not take whole, and goes on behind it.
    int settle(const char *function, const rpma::Outcome &outcome, uint32_t *posted);

    rpma::Slot *free_;      // the first free slot
    rpma::Slot *limit_;     // behind the last slot; of an ended list, the first free slot
    bool is_ended_ = false; // so that additions have to open() it
    uint32_t next_ = 0;     // with which operation the next post begins
    uint32_t generation_;   // of the connection, when the ways of the operations were chosen
    uint32_t max_ops_;
    std::size_t slot_size_; // bytes
    Slots slots_;
};
