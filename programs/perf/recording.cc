// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// recording.cc -- how a load keeps its ledger

#include "recording.hh"

#include "random.hh"

Recording::Recording(Crew &of, const std::string &path)
    : crew(of), head{random_number(), crew.plan}, ledger(path, head) {}

// The most that a lane posts beyond what is recorded of it.
static uint64_t allowance_of(const Crew &crew) {
    return crew.plan.ring / 2;
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
    for (Lane &lane : crew.lanes) {
        const uint64_t done = lane.completed.load(std::memory_order_acquire);
        if (done != lane.added)
            ledger.add({lane.index, done, done + allowance_of(crew)});
        lane.added = done;
    }
    sync();
    for (Lane &lane : crew.lanes)
        lane.recorded.store(lane.added, std::memory_order_release);
}

void Recording::permit(const Lane &lane) {
    if (lane.posted + crew.plan.batch >
        lane.recorded.load(std::memory_order_acquire) + allowance_of(crew))
        write();
}

uint64_t Recording::end() {
    uint64_t records = 0;
    for (const Lane &lane : crew.lanes) {
        // A call that failed may have posted its batch all the same.
        ledger.add({lane.index, lane.completed, lane.posted + crew.plan.batch});
        records += lane.completed;
    }
    sync();
    return records;
}
