// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// memory_thread.hh -- a thread of another process that accesses its memory for the fabric.

#pragma once

#include "../protocol/mailbox.hh"

#include <sys/types.h>

namespace sim {

// The state of a process in /proc/PID/stat; 'X': it has ended, or ends now.
char state_of(int pid);

class MemoryThread {
  public:
    // `socket`: a connection of the process. The mailbox is shared with it.
    MemoryThread(int pid, int socket, Mailbox *mailbox)
        : pid_(pid), socket_(socket), mailbox_(*mailbox) {}
    ~MemoryThread(); // ends the thread and unmaps the mailbox
    // Reads or writes ranges, one after the other, of at most Mailbox::MAX_BYTES. Returns how
    // many bytes were transferred before an error, or -1 if the thread does not execute the
    // request, because the process is stopped or has ended.
    ssize_t access(const iovec *ranges, size_t count, char *data, size_t bytes, bool is_write);
    // Returns an error number; EACCES: the thread does not execute the request.
    int check(const iovec &range, bool is_written);
    MemoryThread(const MemoryThread &) = delete;
    MemoryThread &operator=(const MemoryThread &) = delete;

  private:
    bool is_running() const;
    bool execute(Mailbox::Kind kind, const iovec *ranges, size_t count);
    int pid_, socket_;
    Mailbox &mailbox_;
    bool is_stopped_ = false; // when it was last asked
};

} // namespace sim
