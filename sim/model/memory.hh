// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// memory.hh -- the fabric's interface to its surroundings: memory of processes, and
// descriptors.

#pragma once

#include "../protocol/protocol.hh"

#include <stdexcept>

namespace sim {

// rdma-sim cannot continue: the run ends with this message, because any result of a device
// would be invented.
class Failure : public std::runtime_error {
    using runtime_error::runtime_error;
};

// The process whose memory a request needs has ended, and the end of its session is not handled
// yet: it does not respond any more.
class ProgramEnded : public std::exception {};

struct Channel;
struct Region;

// The memory of a process.
class Program {
  public:
    virtual ~Program() = default;
    // Return false if a part of the range is not mapped readable or writable. A prefix may then
    // have been transferred. Throw ProgramEnded, or Failure if the memory cannot be accessed
    // for another reason.
    virtual bool read(uint64_t address, void *to, size_t length) = 0;
    // `writer`: the handle of the queue pair whose request writes; 0: the program itself, whose
    // request reads.
    virtual bool write(uint64_t address, const void *from, size_t length, uint32_t writer) = 0;
    // The same for memory that stays accessible although the program unmaps it. A write may
    // happen later, but before any other access to memory by these functions, and before
    // Environment::write_collected() returns.
    virtual bool read_pinned(uint64_t address, void *to, size_t length) {
        return read(address, to, length);
    }
    virtual void write_pinned(uint64_t address, const void *from, size_t length,
                              uint32_t writer) {
        (void)write(address, from, length, writer);
    }
    // Called for each registration; returns an error number if the range cannot be registered.
    // forget() is called when the registration ends.
    virtual int pin(const Region &region) = 0;
    virtual void forget(const Region &) {}
    // Makes the writes of the queue pair in the range persistent; 0: its present content.
    virtual void persist(uint64_t address, size_t length, uint32_t writer) = 0;
    // Returns true if the range is memory for persistent flushes.
    virtual bool is_persistent(uint64_t address, size_t length) = 0;
};

// Files that lose unflushed data when a host loses power. `pid` is a process.
class Persistence {
  public:
    virtual ~Persistence() = default;
    virtual void registered(int pid, const Region &region) = 0;
    virtual void deregistered(int pid, const Region &region) = 0;
    // Called after each write if has_history().
    virtual void written(int pid, uint64_t address, size_t length, uint32_t writer) = 0;
    virtual bool has_history() const { return true; }
    virtual void persist(int pid, uint64_t address, size_t length, uint32_t writer) = 0;
    virtual bool is_persistent(int pid, uint64_t address, size_t length) = 0;
};

class Environment {
  public:
    virtual ~Environment() = default;
    // Creates the descriptors of a new channel. Returns the one for the process, or -1.
    virtual int open_channel(uint32_t channel) = 0;
    virtual void close_channel(uint32_t channel) = 0;
    // Makes the descriptor readable, or not any more.
    virtual void raise(uint32_t channel) = 0;
    virtual void lower(uint32_t channel) = 0;
    // Allocates memory that is shared with the process, or returns NULL without a descriptor.
    // `fd` is the memory at `place`.
    virtual Ring *open_ring(uint32_t session, size_t bytes, RingPlace &place, int &fd) = 0;
    virtual void close_ring(Ring *ring, size_t bytes) = 0;
    // Executes the writes that Program::write_pinned() has collected.
    virtual void write_collected() {}
};

} // namespace sim
