// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.hh -- the class of a batch, see batch.cc
//
// Thread-safety: one thread at a time.

#pragma once

#include <bit>

#include "post/list.hh"

struct rpma_batch : rpma::Allocated {
    // Returns nullptr on failure: RPMA_E_INVAL, RPMA_E_NOMEM.
    static std::unique_ptr<rpma_batch> create(rpma::Call &call, rpma_conn &conn,
                                              uint32_t max_ops);

    // Removes all operations.
    void reset();
    uint32_t size() const { return list_.size; }
    bool is_full() const { return size() == max_ops_; }
    uint32_t room() const { return max_ops_ - size(); }
    rpma::Entry &entry(uint32_t index) const {
        return *reinterpret_cast<rpma::Entry *>(reinterpret_cast<char *>(entries_.get()) +
                                                index * entry_size_);
    }
    // A spare entry, after those of the operations.
    rpma::Entry &spare() const { return entry(max_ops_); }
    // The entry that the next addition fills. The batch must not be full.
    rpma::Entry &next_entry() const { return entry(size()); }
    // Counts next_entry(), which the caller has filled, as an operation.
    void count_entry() { list_.size++; }

    // Makes the linked list end with the last operation. The batch must not be empty.
    void end_list() {
        entry(linked_.size - 1).wr.next = &entry(linked_.size).wr;
        entry(size() - 1).wr.next = nullptr;
        linked_.size = size();
    }
    // Returns true if the next post is one ibv_post_send() of the whole list, whose end is
    // linked, and its result tells whether all operations were accepted. Compares size and
    // flags at once, which takes 6 instructions fewer than a condition for each.
    bool is_ready() const {
        return std::bit_cast<uint64_t>(list_) == std::bit_cast<uint64_t>(linked_);
    }
    // The same for a list with flushes, atomic writes or several SGEs.
    bool is_plain() const {
        return list_.size == linked_.size && linked_.flags == 0 &&
               (list_.flags & (rpma::HAS_NATIVE | rpma::HAS_REST)) == 0 &&
               ((list_.flags & rpma::HAS_METHODS) == 0 || has_current_methods());
    }
    bool is_ended() const { return list_.size == linked_.size; }
    // Posts the rest of the list. *posted, unless nullptr: the number of operations that the
    // device accepted. Returns 0, or the code of the failure, which is logged.
    int post(const char *function, uint32_t *posted);
    ibv_send_wr *first() const { return &entries_->wr; }
    // Evaluates the provider's calls for the rest of the list: stores the position of the next
    // post, and logs a failure.
    int record(const char *function, const rpma::Outcome &outcome, uint32_t *posted);

    rpma::ListFlags &list_flags() { return list_.flags; }

    ibv_qp *const qp;
    rpma_conn &conn;

  private:
    using Entries = std::unique_ptr<rpma::Entry, rpma::Free>;
    struct List {
        uint32_t size; // in operations
        rpma::ListFlags flags;
    };

  public:
    rpma_batch(rpma_conn &connection, uint32_t max_ops, Entries &&entries,
               std::size_t entry_size);

  private:
    // Returns true if the connection has not changed its methods since those of the flushes and
    // atomic writes were chosen.
    bool has_current_methods() const { return generation_ == conn.flush.generation(); }
    int choose_methods(const char *function);
    // Sets the first operation of the next post.
    void set_next(uint32_t next) {
        next_ = next;
        list_.flags &= ~uint32_t{rpma::HAS_REST};
        if (next != 0)
            list_.flags |= rpma::HAS_REST;
    }

    List list_;
    // The linked entries, never 0, and the flags of a list for which is_ready() is true.
    List linked_;
    uint32_t next_;       // the first operation of the next post
    uint32_t generation_; // flush.generation() at the choice of the methods
    uint32_t max_ops_;
    std::size_t entry_size_; // in bytes
    Entries entries_;
};
