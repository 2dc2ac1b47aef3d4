// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// handle_entry.hh -- finds the handle of an object of libibverbs
//
// An event of the device holds a pointer to its object. The program may have created this
// object on the same context, and none of its members shows the owner: cq_context and similar
// members belong to the program. Therefore each object of a handle has an entry here, and an
// object without an entry has no handle. All peers on a device share its events, so one table
// serves the process.
//
// Thread-safety: any thread may add and remove entries while others search.

#pragma once

namespace rpma {

// The entry of one object. Remove it before the object is destroyed: later, an object of the
// program may have the same address.
class HandleEntry {
  public:
    HandleEntry() = default;
    HandleEntry(const HandleEntry &) = delete;
    ~HandleEntry() { remove(); }

    void add(const void *object, void *handle);
    // Does nothing if there is no entry.
    void remove() {
        if (object_ != nullptr)
            remove_added();
    }

  private:
    friend void *handle_of(const void *object);

    void remove_added();

    const void *object_ = nullptr; // nullptr: no entry
    void *handle_;
    HandleEntry *next_;
    HandleEntry **link_; // the pointer that points to this entry
};

// The handle of an existing object, or nullptr.
void *handle_of(const void *object);

} // namespace rpma
