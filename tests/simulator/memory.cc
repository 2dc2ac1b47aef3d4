// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.cc -- stores that survive a power failure, by the rules of README.md

#include "memory.hh"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

char *map_anonymous(size_t size) {
    void *map = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        perror("simulator: no memory for a machine or a program");
        exit(EXIT_FAILURE);
    }
    madvise(map, size, MADV_NOHUGEPAGE); // a schedule touches few words
    return static_cast<char *>(map);
}

// The kernel frees the touched pages, which are few, and reads of them return zeros.
void clear_map(void *map, size_t size) {
    madvise(map, size, MADV_DONTNEED);
}

// A program touches few pages of a copied log, and few of the tables of the libraries.
void clear_memory(char *begin, size_t size) {
    if (size < 16 * PAGE) {
        memset(begin, 0, size);
        return;
    }
    const size_t before = -reinterpret_cast<uintptr_t>(begin) % PAGE,
                 pages = (size - before) / PAGE * PAGE;
    memset(begin, 0, before);
    clear_map(begin + before, pages);
    memset(begin + before + pages, 0, size - before - pages);
}

Memory::Memory() {
    visible_ = map_anonymous(3 * MEMORY_SIZE + WORDS * sizeof(*stores_.settled));
    persistent_ = visible_ + MEMORY_SIZE;
    known_ = persistent_ + MEMORY_SIZE;
    stores_.persistent = reinterpret_cast<uint64_t *>(persistent_);
    stores_.settled = reinterpret_cast<uint32_t *>(known_ + MEMORY_SIZE);
}

void Memory::reset() {
    clear_map(visible_, 3 * MEMORY_SIZE);
    stores_.count = 0;
    memset(pages_, 0, sizeof(pages_));
    changes_++;
}

void Memory::store(const Part &part, Writer writer) {
    size_t index = static_cast<size_t>(part.word - reinterpret_cast<uint64_t *>(visible_));
    uint64_t value = (*part.word & ~part.mask) | (part.value & part.mask);
    *part.word = word(known_, index) = value;
    sim_add_store(&stores_, {static_cast<uint32_t>(index), writer, value});
    mark(index);
    changes_++;
}

void Memory::flush(Writer writer, const char *from, const char *to) {
    if (!contains(from))
        return;
    size_t begin = static_cast<size_t>(from - visible_);
    size_t end = begin + static_cast<size_t>(to - from);
    sim_flush_stores(&stores_, writer, (begin + WORD - 1) / WORD, end / WORD); // whole words
    changes_++;
}

// Marks the pages that the program has touched, as reported by the kernel.
void Memory::find_pages() {
    unsigned char exist[MEMORY_SIZE / PAGE];
    if (mincore(visible_, MEMORY_SIZE, exist))
        perror("simulator: mincore");
    for (size_t page = 0; page < MEMORY_SIZE / PAGE; page++)
        if (exist[page] & 1)
            mark(page * PAGE / WORD);
}

void Memory::persist(size_t begin, size_t end) {
    begin = begin / WORD * WORD;
    end = (end + WORD - 1) / WORD * WORD;
    if (end - begin > PAGE)
        find_pages();
    mark(begin / WORD);
    mark((end - 1) / WORD);
    each_page([&](size_t page) {
        size_t from = std::max(page, begin), to = std::min(page + PAGE, end);
        if (from >= to)
            return;
        memcpy(persistent_ + from, visible_ + from, to - from);
        memcpy(known_ + from, visible_ + from, to - from);
    });
    sim_remove_stores(&stores_, begin / WORD, end / WORD);
    changes_++;
}

void Memory::find_own_stores() {
    each_page([&](size_t page) {
        if (!memcmp(visible_ + page, known_ + page, PAGE))
            return;
        for (size_t index = page / WORD; index < (page + PAGE) / WORD; index++) {
            uint64_t *seen = &word(visible_, index);
            if (*seen != word(known_, index))
                store({seen, *seen, UINT64_MAX}, OWN);
        }
    });
}

void Memory::restart() {
    stores_.count = 0;
    clear_map(visible_, MEMORY_SIZE);
    each_page([&](size_t page) {
        memcpy(visible_ + page, persistent_ + page, PAGE);
        memcpy(known_ + page, persistent_ + page, PAGE);
    });
    changes_++;
}

bool Memory::is_certain(size_t begin, size_t end) const {
    for (const sim_store &store : stores()) {
        size_t offset = store.word * WORD;
        if (offset < end && offset + WORD > begin &&
            store.value != word(persistent_, store.word))
            return false;
    }
    return true;
}
