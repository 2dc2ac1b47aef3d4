// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// burst.hh -- accesses to the memory of a process that are made together.

#pragma once

#include "../model/memory.hh"
#include "../protocol/mailbox.hh"

#include <memory>
#include <sys/uio.h>
#include <vector>

namespace sim {

class ProcessMemory;

// Reads the data of several requests before their execution, and collects their writes. Each is
// then one system call, of which an access to the memory of another process otherwise needs
// one, whatever its length.
class Burst {
  public:
    static constexpr size_t MAX_RANGES = Mailbox::MAX_RANGES, MAX_BYTES = Mailbox::MAX_BYTES,
                            MAX_LENGTH = 8192; // of one range: a longer one is copied alone
    void begin() { is_open_ = true; }
    void end();
    // Adds a range of the process for fetch(). Returns false if there is no room.
    bool add(uint64_t address, size_t length);
    void fetch(ProcessMemory &memory);
    // Copies a fetched range, of which fetch() has read them in their order. Returns false if
    // it is not the next one.
    bool read(const ProcessMemory &memory, uint64_t address, void *to, size_t length);
    // Returns false unless the process was written to before in this burst, directly: it has
    // not ended before the requests were posted.
    bool write(ProcessMemory &memory, uint64_t address, const void *from, size_t length);
    void has_written(ProcessMemory &memory); // directly
    void flush();                            // executes the collected writes
    void forget(const ProcessMemory &memory);

  private:
    struct Ranges {
        size_t count = 0, bytes = 0;
        iovec of_process[MAX_RANGES];
        std::unique_ptr<char[]> data{new char[MAX_BYTES]};
        bool add(uint64_t address, size_t length);
    };
    bool is_open_ = false;
    Ranges fetched_, written_;
    const ProcessMemory *source_ = nullptr; // of the fetched ranges; NULL: there are none
    size_t next_ = 0, next_byte_ = 0;       // of the fetched ranges
    ProcessMemory *target_ = nullptr;
};

} // namespace sim
