// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// handle_entry.hh -- which handle an object of libibverbs belongs to
//
// An event of the device names its object by a pointer. The object may be one that the program
// made on the same context, and then nothing in it says whose it is: cq_context and the like
// are the program's. So each object of a handle is entered here, and whatever is not found is
// nobody's. Events of all peers on a device come together, so one table serves the process.
//
// Thread-safety: entries come and go in any thread while others search.

#pragma once

namespace rpma {

// The entry of one object. Withdraw it before the object is destroyed, because its address may
// belong to an object of the program then.
class HandleEntry {
  public:
    HandleEntry() = default;
    HandleEntry(const HandleEntry &) = delete;
    ~HandleEntry() { withdraw(); }

    void enter(const void *object, void *handle);
    void withdraw();

  private:
    friend void *handle_of(const void *object);

    const void *object_ = nullptr; // nullptr: not entered
    void *handle_;
    HandleEntry *next_;
    HandleEntry **link_; // what points to this entry
};

// The handle of an object that is alive, or nullptr.
void *handle_of(const void *object);

} // namespace rpma
