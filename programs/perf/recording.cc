// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// recording.cc -- maintains the ledger of a load

#include "recording.hh"

#include "random.hh"

Recording::Recording(LoadGenerator &of, const std::string &path)
    : generator(of), head{random_number(), generator.plan}, ledger(path, head) {}

// How many operations a connection may post beyond its last ledger entry.
static uint64_t allowance_of(const LoadGenerator &generator) {
    return generator.plan.ring / 2;
}

void Recording::sync() {
    try {
        ledger.sync();
    } catch (...) {
        has_failed = true;
        throw;
    }
}

void Recording::write() {
    const std::lock_guard guard(lock);
    for (Connection &connection : generator.connections) {
        const uint64_t done = connection.completed.load(std::memory_order_acquire);
        if (done != connection.added)
            ledger.add({connection.index, done, done + allowance_of(generator)});
        connection.added = done;
    }
    sync();
    for (Connection &connection : generator.connections)
        connection.recorded.store(connection.added, std::memory_order_release);
}

void Recording::permit(const Connection &connection) {
    if (connection.posted + generator.plan.batch >
        connection.recorded.load(std::memory_order_acquire) + allowance_of(generator))
        write();
}

uint64_t Recording::end() {
    uint64_t records = 0;
    for (const Connection &connection : generator.connections) {
        // A failed call may still have posted its batch.
        ledger.add(
            {connection.index, connection.completed, connection.posted + generator.plan.batch});
        records += connection.completed;
    }
    sync();
    return records;
}
