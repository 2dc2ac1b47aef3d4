// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// heap.cc -- the heap of a program: never reuses small blocks, so that a use after free() is
// detected

#include "heap.hh"

#include "memory.hh"

#include <cstring>

namespace {

constexpr size_t HEAP_SIZE = size_t{256} << 20, LARGE = PAGE, ALIGNMENT = 16;
constexpr int RELEASED = 0xdd; // no pointer has such bytes

size_t &head_of(void *ptr) {
    return *reinterpret_cast<size_t *>(static_cast<char *>(ptr) - ALIGNMENT);
}

} // namespace

void Heap::reset() {
    if (!begin_)
        begin_ = map_anonymous(HEAP_SIZE);
    used_ = 0;
    blocks_ = 0;
    released_.clear();
}

void *Heap::allocate(size_t size) {
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    std::vector<void *> *const released = size >= LARGE ? &released_[size] : nullptr;
    if (released && !released->empty()) {
        void *const ptr = released->back();
        released->pop_back();
        blocks_++;
        return ptr;
    }
    if (size > HEAP_SIZE - used_ - ALIGNMENT)
        return nullptr;
    char *const ptr = begin_ + used_ + ALIGNMENT;
    head_of(ptr) = size;
    used_ += size + ALIGNMENT;
    blocks_++;
    return ptr;
}

void *Heap::allocate_zeros(size_t size) {
    char *const ptr = static_cast<char *>(allocate(size));
    if (ptr)
        clear_memory(ptr, size);
    return ptr;
}

void Heap::release(void *ptr) {
    const size_t size = head_of(ptr);
    blocks_--;
    if (size >= LARGE)
        released_[size].push_back(ptr);
    else
        memset(ptr, RELEASED, size);
}

size_t Heap::size_of(void *ptr) {
    return head_of(ptr);
}

bool Heap::contains(const void *ptr) const {
    return ptr >= begin_ && ptr < begin_ + HEAP_SIZE;
}
