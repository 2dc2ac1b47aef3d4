// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// heap.hh -- the heap of a program, which the next start resets

#pragma once

#include <cstddef>
#include <map>
#include <vector>

class Heap {
  public:
    void reset();
    void *allocate(size_t size); // NULL: the heap is full
    void *allocate_zeros(size_t size);
    void release(void *ptr);
    bool contains(const void *ptr) const;
    static size_t size_of(void *ptr);
    unsigned blocks() const { return blocks_; } // the number of allocated blocks

  private:
    char *begin_ = nullptr;
    size_t used_ = 0;
    unsigned blocks_ = 0;
    std::map<size_t, std::vector<void *>> released_; // free large blocks, by size
};
