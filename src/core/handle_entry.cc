// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// handle_entry.cc -- the table of handles

#include "core/handle_entry.hh"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/lock.hh"

namespace rpma {

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
// Many lists, because a device may report an error for each of ten thousand queue pairs.
HandleEntry *lists[256];

HandleEntry *&list_of(const void *object) {
    constexpr unsigned CACHE_LINE = 6; // the low bits of the addresses of objects hardly differ
    return lists[(reinterpret_cast<uintptr_t>(object) >> CACHE_LINE) % std::size(lists)];
}

} // namespace

void HandleEntry::add(const void *object, void *handle) {
    Lock lock(mutex);
    object_ = object;
    handle_ = handle;
    HandleEntry *&first = list_of(object);
    next_ = first;
    if (next_ != nullptr)
        next_->link_ = &next_;
    link_ = &first;
    first = this;
}

void HandleEntry::remove_added() {
    Lock lock(mutex);
    *link_ = next_;
    if (next_ != nullptr)
        next_->link_ = link_;
    object_ = nullptr;
}

void *handle_of(const void *object) {
    Lock lock(mutex);
    for (const HandleEntry *entry = list_of(object); entry != nullptr; entry = entry->next_)
        if (entry->object_ == object)
            return entry->handle_;
    return nullptr;
}

} // namespace rpma
