// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.hh -- work requests of one connection, linked as the provider takes them
//
// The slots of a batch are linked from the beginning, each to the next one. Adding an operation
// fills the first free slot; posting ends the list behind the last one and hands it over.
// Providers copy what they are given, so the list can be posted again at once.
//
// Thread-safety: one thread at a time.

#pragma once

#include "core/conn.hh"

namespace rpma {

// One operation; behind it stand as many elements as a work request of the connection may have.
struct Slot {
    ibv_send_wr wr;                          // stands first: a work request leads to its slot
    char value[RPMA_ATOMIC_WRITE_ALIGNMENT]; // what an atomic write writes
    uint32_t flush_length;                   // what a native flush is about
    uint8_t flush_types;                     // IBV_FLUSH_*

    ibv_sge *sges() { return reinterpret_cast<ibv_sge *>(this + 1); }
};
static_assert(sizeof(Slot) % alignof(ibv_sge) == 0);

} // namespace rpma

struct rpma_batch : rpma::Allocated {
    // nullptr: RPMA_E_INVAL, RPMA_E_NOMEM.
    static std::unique_ptr<rpma_batch> create(rpma::Call &call, rpma_conn &conn,
                                              uint32_t max_ops);

    bool is_full() const { return free == limit_; }
    // Makes the first free slot, which describes an operation, the last one of the list.
    void add_slot() {
        last = free;
        free = slot_behind(free);
    }

    // Operations from one work request of the list up to another one.
    uint32_t count(const ibv_send_wr *from, const ibv_send_wr *to) const {
        const auto bytes =
            reinterpret_cast<const char *>(to) - reinterpret_cast<const char *>(from);
        return static_cast<uint32_t>(static_cast<std::size_t>(bytes) / slot_size_);
    }
    // Of an operation, from 1.
    uint32_t number(const ibv_send_wr *wr) const { return count(&first()->wr, wr) + 1; }
    uint32_t size() const { return count(&first()->wr, &free->wr); }
    uint32_t pending_count() const { return count(pending, &free->wr); }
    // The next post begins with the first operation.
    void restart() { pending = given = &first()->wr; }
    // Whether the device took everything in a post without an error. siw_post_send() of siw
    // refuses an operation and may yet return the 0 of its doorbell; then pending is that one.
    // Otherwise providers have cleared pending, or left it as it was.
    bool is_taken() const { return pending == nullptr || pending == given; }
    void reset();

    rpma::Slot *first() const { return slots_.get(); }

    rpma_conn &conn;
    ibv_qp *const qp; // of the connection: a load less for each post
    rpma::Slot *free; // where the next operation is described, unless the batch is full
    rpma::Slot *last = nullptr; // operation, or nullptr
    // What a post hands over first; a provider that refuses an operation stores it here.
    ibv_send_wr *pending;
    // What the next post begins with, and during a post that fails, what the call of the
    // provider that failed began with.
    ibv_send_wr *given;
    bool is_native : 1 = false; // whether only an extended queue pair can take the list
    bool has_list : 1 = false;  // whether an operation has several elements

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

    std::size_t slot_size_; // bytes
    Slots slots_;
    rpma::Slot *limit_; // behind the last slot
};
