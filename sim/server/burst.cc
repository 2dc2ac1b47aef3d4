// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "burst.hh"

#include "server.hh"

#include <cstring>

namespace sim {

bool Burst::Ranges::add(uint64_t address, size_t length) {
    if (count == MAX_RANGES || length > MAX_LENGTH || MAX_BYTES - bytes < length)
        return false;
    of_process[count++] = {reinterpret_cast<void *>(address), length};
    bytes += length;
    return true;
}

bool Burst::add(uint64_t address, size_t length) {
    return fetched_.add(address, length);
}

// A single range is read when its request is executed.
void Burst::fetch(ProcessMemory &memory) {
    next_ = next_byte_ = 0;
    source_ = nullptr;
    if (fetched_.count > 1 &&
        memory.access_all(fetched_.of_process, fetched_.count, fetched_.data.get(),
                          fetched_.bytes, false) == fetched_.bytes)
        source_ = &memory;
}

bool Burst::read(const ProcessMemory &memory, uint64_t address, void *to, size_t length) {
    if (source_ != &memory || next_ == fetched_.count)
        return false;
    const iovec &next = fetched_.of_process[next_];
    if (next.iov_base != reinterpret_cast<void *>(address) || next.iov_len != length)
        return false;
    memcpy(to, fetched_.data.get() + next_byte_, length);
    next_byte_ += length;
    next_++;
    return true;
}

bool Burst::write(ProcessMemory &memory, uint64_t address, const void *from, size_t length) {
    if (!is_open_ || target_ != &memory || length > MAX_LENGTH)
        return false;
    if (source_ == &memory) // the write may change the fetched data
        source_ = nullptr;
    if (!written_.add(address, length)) {
        flush();
        (void)written_.add(address, length);
    }
    memcpy(written_.data.get() + written_.bytes - length, from, length);
    return true;
}

void Burst::has_written(ProcessMemory &memory) {
    if (source_ == &memory)
        source_ = nullptr;
    target_ = is_open_ ? &memory : nullptr;
}

// A range that is not mapped any more is left out, as by a device, which writes to pages that
// the program does not see.
void Burst::flush() {
    char *data = written_.data.get();
    const size_t bytes = written_.bytes;
    size_t done = written_.count == 0 ? 0
                                      : target_->access_all(written_.of_process, written_.count,
                                                            data, bytes, true);
    for (size_t i = 0; i < written_.count; i++) {
        const iovec &range = written_.of_process[i];
        const bool is_done = done >= range.iov_len;
        done = is_done ? done - range.iov_len : 0;
        try {
            if (!is_done)
                target_->rewrite(reinterpret_cast<uint64_t>(range.iov_base), data,
                                 range.iov_len);
        } catch (const ProgramEnded &) {
            // it has ended since the first write of this burst
        }
        data += range.iov_len;
    }
    written_.count = written_.bytes = 0;
}

void Burst::forget(const ProcessMemory &memory) {
    if (source_ == &memory)
        source_ = nullptr;
    if (target_ == &memory) {
        written_.count = written_.bytes = 0;
        target_ = nullptr;
    }
}

void Burst::end() {
    flush();
    is_open_ = false;
    fetched_.count = fetched_.bytes = 0;
    source_ = nullptr;
    target_ = nullptr;
}

} // namespace sim
