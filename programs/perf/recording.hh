// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// recording.hh -- maintains the ledger of a load

#ifndef RPMA_PERF_RECORDING_HH
#define RPMA_PERF_RECORDING_HH 1

#include "ledger.hh"
#include "load_generator.hh"

struct Recording {
    // Creates the ledger, a new file.
    Recording(LoadGenerator &generator, const std::string &path);

    // Makes the operations completed so far durable in the ledger. Any thread may call it.
    void write();
    // Called before a worker posts: writes the ledger first if the post may overwrite a record
    // that the file lists, because the client may also crash.
    void permit(const Connection &connection);
    // Called after the workers have ended: writes the last lines. Returns the number of
    // recorded operations.
    uint64_t end();

    LoadGenerator &generator;
    const LedgerHead head;
    std::atomic<bool> has_failed = false; // the ledger is not complete

  private:
    void sync();

    Ledger ledger;
    std::mutex lock;
};

#endif
