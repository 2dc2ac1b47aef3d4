// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// direct.hh -- the fabric in the process that uses libibverbs.so.1 and librdmacm.so.1.

#pragma once

#include "../client/client.hh"
#include "../server/server.hh"

#include <functional>
#include <mutex>

namespace sim {

// While it exists, the calls of this process use its fabric, whose time only advance() changes.
class Direct {
  public:
    explicit Direct(const Options &options, Persistence *persistence = nullptr);
    ~Direct();
    Direct(const Direct &) = delete;
    Direct &operator=(const Direct &) = delete;
    // On which the next calls of this thread run; host 1 before. A `program` has objects of its
    // own; 0: it is no program of an exploration.
    void use_host(unsigned host, unsigned program = 0);
    // As at the end of a process. The caller has the lock.
    void end_program(unsigned host, unsigned program);
    const Session *session_of(unsigned host, unsigned program) const; // NULL: it has none
    void advance(uint64_t nanoseconds);
    Fabric &fabric() { return fabric_; }
    std::mutex &lock() { return lock_; } // each call holds it
    int call(rdma_sim_message &message);
    // Sets a function that is called without the lock before each call of a function that
    // programs know by `name`, unless the client has locked its list of devices.
    void set_before_call(std::function<void(const char *name)> function) {
        before_call_ = std::move(function);
    }

  private:
    std::mutex lock_;
    const uint64_t number_; // of the fabrics of the process
    SharedEnvironment environment_;
    Fabric fabric_;
    uint64_t place() const;
    std::map<uint64_t, Caller> callers_; // by place
    std::shared_ptr<Program> memory_;
    std::function<void(const char *)> before_call_;
};

} // namespace sim
