// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.hh -- the persistent memory of a machine: its visible data and its persistent data

#pragma once

#include "model/memory_rule.h"

#include <cstddef>
#include <cstdint>
#include <span>

constexpr size_t WORD = 8; // how many bytes a platform writes atomically
constexpr size_t PAGE = 4096;
constexpr size_t MEMORY_SIZE = size_t{8} << 20;
constexpr size_t WORDS = MEMORY_SIZE / WORD;

// The writer of a store: the handle of a queue pair, or the machine's own program.
using Writer = uint32_t;
constexpr Writer OWN = UINT32_MAX;

// A write of the bits `mask` of a word.
struct Part {
    uint64_t *word;
    uint64_t value, mask;
};

char *map_anonymous(size_t size); // zero-filled
void clear_map(void *map, size_t size);
void clear_memory(char *begin, size_t size); // a part of such a map, or of a module's zeros

class Memory {
  public:
    Memory();
    void reset();

    char *visible() const { return visible_; }
    bool contains(const void *ptr) const {
        return ptr >= visible_ && ptr < visible_ + MEMORY_SIZE;
    }

    // Makes the word visible.
    void store(const Part &part, Writer writer);

    // Executes a persistent flush of the writer.
    void flush(Writer writer, const char *begin, const char *end);

    // Makes a range persistent for the machine's own program.
    void persist(size_t begin, size_t end);

    // Records the new stores of the machine's own program in the marked pages.
    void find_own_stores();

    // Gives each word that is not persistent one of its possible values, at random.
    template <typename Random> void lose_power(Random random_bit) {
        find_pages();
        find_own_stores();
        sim_lose_power(
            &stores_, stores_.persistent,
            [](void *random) { return (*static_cast<Random *>(random))() ? UINT64_MAX : 0; },
            &random_bit);
        restart();
    }

    // Increases whenever the memory may have changed.
    uint64_t changes() const { return changes_; }

    // The visible image, or the persistent one without the stores that may survive.
    const char *image(bool persistent) const { return persistent ? persistent_ : visible_; }
    // Calls use(value) for the visible value of a word, or for each value that a power failure
    // can leave.
    template <typename Use> void each_outcome(bool persistent, size_t offset, Use use) const {
        use(word(persistent ? persistent_ : visible_, offset / WORD));
        for (const sim_store &store : stores())
            if (persistent && store.word == offset / WORD)
                use(store.value);
    }
    // Returns true if every power failure leaves the persistent image of the range.
    bool is_certain(size_t begin, size_t end) const;

  private:
    std::span<sim_store> stores() const { return {stores_.all, stores_.count}; }
    static uint64_t &word(char *image, size_t index) {
        return reinterpret_cast<uint64_t *>(image)[index];
    }
    void mark(size_t index) {
        size_t page = index / (PAGE / WORD);
        pages_[page / 64] |= uint64_t{1} << page % 64;
    }
    template <typename Use> void each_page(Use use) const {
        for (size_t i = 0; i < MEMORY_SIZE / PAGE / 64; i++)
            for (uint64_t left = pages_[i]; left; left &= left - 1)
                use((i * 64 + static_cast<size_t>(__builtin_ctzll(left))) * PAGE);
    }
    void find_pages();
    void restart();

    char *visible_, *persistent_;
    char *known_; // the visible data without unrecorded stores of the own program
    uint64_t changes_ = 0;
    sim_stores stores_{};                          // stores that are not persistent
    uint64_t pages_[MEMORY_SIZE / PAGE / 64] = {}; // bit mask of the touched pages
};
