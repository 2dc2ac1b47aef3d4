// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// test_memory.hh -- the memory of a test that loses unflushed data when its host loses power

#pragma once

#include "rdma-sim.h"

#include "../server/pmem.hh"

namespace sim {

class TestMemory : public Persistence {
  public:
    void add(const rdma_sim_memory &memory) {
        all_.push_back(
            {memory, std::make_unique<PmemFile>(memory.address, memory.size,
                                                (memory.flags & RDMA_SIM_MEMORY_TEARS) != 0)});
    }
    void lose_power(unsigned host, std::mt19937_64 *generator) {
        for (const Range &each : all_)
            if (each.memory.host == host)
                each.file->lose_power(generator);
    }
    bool has_unpersisted() const {
        return std::ranges::any_of(
            all_, [](const Range &each) { return each.file->has_unpersisted(); });
    }

    // How much of the range, from its begin, each power failure leaves as it is.
    uint64_t persistent_length(uint64_t address, uint64_t length) const {
        uint64_t covered = 0;
        for (bool is_longer = true; is_longer && covered < length;) {
            is_longer = false;
            for_each_part(address + covered, length - covered,
                          [&](const Range &range, uint64_t offset, uint64_t size) {
                              if (reinterpret_cast<uint64_t>(range.memory.address) + offset !=
                                  address + covered)
                                  return;
                              const uint64_t certain =
                                  range.file->persistent_length(offset, size);
                              covered += certain;
                              is_longer = certain == size;
                          });
        }
        return covered;
    }

    std::optional<uint64_t> possible_value(uint64_t address, unsigned number) const {
        std::optional<uint64_t> found;
        for_each_part(address, 1, [&](const Range &range, uint64_t offset, uint64_t) {
            found = range.file->possible_value(offset, number);
        });
        return found;
    }

    void registered(int, const Region &) override {}
    void deregistered(int, const Region &) override {}
    void written(int, uint64_t address, size_t length, uint32_t writer) override {
        for_each_part(address, length, [&](const Range &range, uint64_t offset, uint64_t size) {
            range.file->record(offset, size, writer);
        });
    }
    void persist(int, uint64_t address, size_t length, uint32_t writer) override {
        for_each_part(address, length, [&](const Range &range, uint64_t offset, uint64_t size) {
            if (writer == 0 || (range.memory.flags & RDMA_SIM_MEMORY_NO_DIRECT_WRITE) == 0)
                range.file->persist(offset, size, writer);
        });
    }
    bool is_persistent(int, uint64_t address, size_t length) override {
        uint64_t covered = 0;
        for_each_part(address, length,
                      [&](const Range &, uint64_t, uint64_t size) { covered += size; });
        return length > 0 && covered == length;
    }

  private:
    struct Range {
        rdma_sim_memory memory;
        std::unique_ptr<PmemFile> file;
    };
    // Calls use(range, offset, length) for each part of the range that is in a memory.
    template <class Use> void for_each_part(uint64_t address, uint64_t length, Use use) const {
        for (const Range &each : all_) {
            const auto start = reinterpret_cast<uint64_t>(each.memory.address);
            const uint64_t begin = std::max(address, start),
                           end = std::min(address + length, start + each.memory.size);
            if (begin < end)
                use(each, begin - start, end - begin);
        }
    }
    std::vector<Range> all_;
};

} // namespace sim
