// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.hh -- operations of one connection, linked in the form that the provider takes
//
// An addition fills the next entry and links it to the previous one, so that the list always
// ends with the last operation: a post is a single call of the provider. Providers copy the
// work requests.
//
// Thread-safety: one thread at a time.

#pragma once

#include "post/entry.hh"

namespace rpma {
struct Outcome;
}

struct rpma_batch : rpma::Allocated {
    // Returns nullptr on failure: RPMA_E_INVAL, RPMA_E_NOMEM.
    static std::unique_ptr<rpma_batch> create(rpma::Call &call, rpma_conn &conn,
                                              uint32_t max_ops);

    // Removes all operations.
    void reset();
    uint32_t size() const { return size_; }
    bool is_full() const { return size_ == max_ops_; }
    uint32_t room() const { return max_ops_ - size_; }
    rpma::Entry &entry(uint32_t index) const {
        return *reinterpret_cast<rpma::Entry *>(reinterpret_cast<char *>(first_) +
                                                index * entry_size_);
    }
    // An entry before the first one, which belongs to no operation.
    rpma::Entry &spare() const { return *entries_; }
    // The entry that the next addition fills, unless the batch is full.
    rpma::Entry &next_entry() const { return entry(size_); }
    // Appends next_entry(), which the caller has filled, to the list.
    void append(rpma::Entry &filled) {
        filled.wr.next = nullptr;
        // The first one is linked to the spare entry, which is never posted.
        reinterpret_cast<rpma::Entry *>(reinterpret_cast<char *>(&filled) - entry_size_)
            ->wr.next = &filled.wr;
        size_++;
    }

    // Posts the rest of the list. *posted, unless nullptr: the number of operations that the
    // device took. 0, or the code of the failure, which is logged.
    int post(const char *function, uint32_t *posted);
    // Is true if a post is one call of the provider with the whole list.
    bool is_simple() const {
        const rpma::ListFlags flags = list & (rpma::HAS_NATIVE | rpma::HAS_METHODS);
        return size_ != 0 &&
               ((next_ | flags) == 0 ||
                ((next_ | (flags & rpma::HAS_NATIVE)) == 0 && has_current_methods()));
    }
    ibv_send_wr *first() const { return &first_->wr; }
    // Continues after a call of the provider, which got the rest of the list.
    int finish(const char *function, const rpma::Outcome &outcome, uint32_t *posted);

    ibv_qp *const qp;
    rpma_conn &conn;
    rpma::ListFlags list; // ListFlag

  private:
    struct Free {
        void operator()(void *memory) const { std::free(memory); }
    };
    using Entries = std::unique_ptr<rpma::Entry, Free>;

  public:
    rpma_batch(rpma_conn &connection, uint32_t max_ops, Entries &&entries,
               std::size_t entry_size);

  private:
    // Is true if the methods of the flushes and atomic writes are those that the connection
    // uses now.
    bool has_current_methods() const { return generation_ == conn.flush.generation(); }
    int choose_methods(const char *function);

    uint32_t size_;       // in operations
    uint32_t next_;       // the first operation of the next post
    uint32_t generation_; // of the connection, when the methods were chosen
    uint32_t max_ops_;
    rpma::Entry *first_;
    std::size_t entry_size_; // in bytes
    Entries entries_;
};
