// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.hh -- the fabric's interface to its surroundings: memory of processes, and
// descriptors.

#ifndef RPMA_SIM_MEMORY_HH
#define RPMA_SIM_MEMORY_HH 1

#include "../verbs/protocol.hh"

namespace sim {

struct Channel;
struct Mr;

// The memory of a process.
class Program {
  public:
    virtual ~Program() = default;
    // Return false if a part of the range is not mapped readable or writable. A prefix may then
    // have been transferred.
    virtual bool read(uint64_t address, void *to, size_t length) = 0;
    virtual bool write(uint64_t address, const void *from, size_t length) = 0;
    // Called for each registration; returns an error number if the range cannot be registered.
    // forget() is called when the registration ends.
    virtual int pin(const Mr &mr) = 0;
    virtual void forget(const Mr &) {}
    // Makes the present content of the range persistent.
    virtual void persist(uint64_t address, size_t length) = 0;
    // Is true if the range is memory for persistent flushes.
    virtual bool is_persistent(uint64_t address, size_t length) = 0;
};

// Files that lose unflushed data when a host loses power. `pid` is a process.
class Persistence {
  public:
    virtual ~Persistence() = default;
    virtual void registered(int pid, const Mr &mr) = 0;
    virtual void deregistered(int pid, const Mr &mr) = 0;
    virtual void persist(int pid, uint64_t address, size_t length) = 0;
    virtual bool is_persistent(int pid, uint64_t address, size_t length) = 0;
};

class Environment {
  public:
    virtual ~Environment() = default;
    // Creates the descriptors of a new channel. Returns the one for the process, or -1.
    virtual int open_channel(uint32_t channel) = 0;
    virtual void close_channel(uint32_t channel) = 0;
    // Makes the descriptor readable (one byte), or removes the byte if it is still there.
    virtual void raise(uint32_t channel) = 0;
    virtual void lower(uint32_t channel) = 0;
    // Allocates memory that is shared with the process, or returns NULL. The caller owns its
    // descriptor.
    virtual Ring *open_ring(size_t bytes, int &fd) = 0;
    virtual void close_ring(Ring *ring, size_t bytes) = 0;
};

} // namespace sim

#endif // RPMA_SIM_MEMORY_HH
