// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// ranges.hh -- parts of the memory of a pair: which are written, and which a device made
// persistent.

#pragma once

#include "../client/pair.hh"

#include <vector>

namespace sim {

const auto at = [](size_t offset, unsigned flags = 0) {
    return [offset, flags](ibv_send_wr &wr, ibv_sge &sge) {
        sge.addr += offset;
        (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? wr.wr.atomic.remote_addr
                                                  : wr.wr.rdma.remote_addr) += offset;
        wr.send_flags |= flags;
    };
};

inline bool is_written(const Pair &pair, size_t offset) {
    return pair.b.memory[offset] == 1;
}

struct Range {
    uint64_t offset, length;
    bool operator==(const Range &) const = default;
};

// Records what becomes persistent, and who wrote what, of all memory from an address on.
struct Ranges : Persistence {
    const char *begin = nullptr;
    bool is_volatile = false;
    std::vector<Range> persistent;
    std::vector<std::pair<Range, uint32_t>> writes;
    Range range_of(uint64_t address, size_t length) const {
        return {address - reinterpret_cast<uint64_t>(begin), length};
    }
    void registered(int, const Region &) override {}
    void deregistered(int, const Region &) override {}
    void written(int, uint64_t address, size_t length, uint32_t writer) override {
        writes.push_back({range_of(address, length), writer});
    }
    void persist(int, uint64_t address, size_t length, uint32_t writer) override {
        assert_int_not_equal(writer, 0);
        persistent.push_back(range_of(address, length));
    }
    bool is_persistent(int, uint64_t, size_t) override { return !is_volatile; }
};

} // namespace sim
