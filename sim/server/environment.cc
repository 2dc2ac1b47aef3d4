// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// environment.cc -- resources shared by fabric and processes: descriptors, rings, memory.

#include "server.hh"

#include "../protocol/mappings.hh"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace sim {

// ---- descriptors and rings -----------------------------------------------------------------

SharedEnvironment::~SharedEnvironment() {
    for (const auto &[channel, fd] : channels_)
        close(fd);
}

int SharedEnvironment::open_channel(uint32_t channel) {
    const int fd = eventfd(0, EFD_CLOEXEC);
    if (fd < 0)
        return -1;
    channels_[channel] = fd;
    return fd;
}

void SharedEnvironment::close_channel(uint32_t channel) {
    const auto found = channels_.find(channel);
    if (found == channels_.end())
        return;
    close(found->second);
    channels_.erase(found);
}

void SharedEnvironment::raise(uint32_t channel) {
    const uint64_t one = 1;
    if (write(channels_.at(channel), &one, sizeof(one)) != sizeof(one))
        throw Failure(std::string("an event cannot be signaled: ") + strerror(errno));
}

void SharedEnvironment::lower(uint32_t channel) {
    uint64_t count;
    const struct iovec to = {&count, sizeof(count)};
    // The process, which shares the file description, decides whether it blocks.
    if (preadv2(channels_.at(channel), &to, 1, -1, RWF_NOWAIT) < 0 && errno != EAGAIN)
        throw Failure(std::string("an event cannot be cleared (Linux 5.8 can): ") +
                      strerror(errno));
}

// ENOMEM: rdma-sim can map no more, which is no fault of the program.
void *map_shared(const char *name, size_t size, int &fd) {
    fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return nullptr;
    void *const mapped = ftruncate(fd, static_cast<off_t>(size))
                             ? MAP_FAILED
                             : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        return mapped;
    close(fd);
    fd = -1;
    errno = ENOMEM;
    return nullptr;
}

// A process and rdma-sim can map 65530 ranges each (vm.max_map_count), but a device may have
// more CQs: the rings of a session share mappings.
Ring *SharedEnvironment::open_ring(uint32_t session, size_t bytes, RingPlace &place, int &fd) {
    constexpr size_t SMALLEST = 1 << 20, ALIGNMENT = 64;
    bytes = (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    std::vector<uint64_t> &of_session = memories_of_[session];
    for (const uint64_t number : of_session)
        if (Ring *const ring = memories_.at(number).take(bytes)) {
            place = memories_.at(number).place_of(number, ring);
            fd = memories_.at(number).fd;
            return ring;
        }
    RingMemory made;
    made.session = session;
    made.size = std::max(bytes, SMALLEST << std::min<size_t>(of_session.size(), 6));
    void *const mapped = map_shared("rdma-sim-cq", made.size, made.fd);
    if (!mapped)
        return nullptr;
    made.base = static_cast<char *>(mapped);
    const uint64_t number = ++last_memory_;
    of_session.push_back(number);
    RingMemory &memory = memories_[number] = made;
    by_address_[made.base] = number;
    Ring *const ring = memory.take(bytes);
    place = memory.place_of(number, ring);
    fd = memory.fd;
    return ring;
}

void SharedEnvironment::close_ring(Ring *ring, size_t bytes) {
    const auto found = std::prev(by_address_.upper_bound(reinterpret_cast<char *>(ring)));
    const uint64_t number = found->second;
    RingMemory &memory = memories_.at(number);
    memory.give_back(ring, (bytes + 63) & ~size_t{63});
    if (memory.rings > 0)
        return;
    munmap(memory.base, memory.size);
    close(memory.fd);
    std::erase(memories_of_[memory.session], number);
    by_address_.erase(found);
    memories_.erase(number);
}

Ring *RingMemory::take(size_t bytes) {
    size_t offset = used;
    if (const auto found = free.find(bytes); found != free.end()) {
        offset = found->second;
        free.erase(found);
    } else if (size - used < bytes) {
        return nullptr;
    } else {
        used += bytes;
    }
    rings++;
    Ring *const ring = reinterpret_cast<Ring *>(base + offset);
    *ring = {};
    return ring;
}

void RingMemory::give_back(Ring *ring, size_t bytes) {
    free.emplace(bytes, static_cast<size_t>(reinterpret_cast<char *>(ring) - base));
    rings--;
}

RingPlace RingMemory::place_of(uint64_t number, const Ring *ring) const {
    return {number, size, static_cast<uint64_t>(reinterpret_cast<const char *>(ring) - base)};
}

// ---- memory of processes -------------------------------------------------------------------

// A file that is opened before the process gives up the permission of rdma-sim to access its
// memory, with PR_SET_DUMPABLE or setuid(), stays usable; it belongs to the program of now, not
// to one that the process executes later.
ProcessMemory::ProcessMemory(int pid, Persistence *persistence, Burst *burst)
    : pid_(pid), persistence_(persistence), burst_(burst) {
    const std::string directory = "/proc/" + std::to_string(pid) + "/";
    file_ = open((directory + "mem").c_str(), O_RDWR | O_CLOEXEC);
    maps_ = open((directory + "maps").c_str(), O_RDONLY | O_CLOEXEC);
}

ProcessMemory::~ProcessMemory() {
    if (burst_)
        burst_->forget(*this);
    for (const int fd : {file_, maps_})
        if (fd >= 0)
            close(fd);
}

bool ProcessMemory::is_accessible(uint64_t address) const {
    uint64_t word = 0;
    struct iovec own {
        &word, sizeof(word)
    };
    struct iovec other {
        reinterpret_cast<void *>(address), sizeof(word)
    };
    return process_vm_readv(pid_, &own, 1, &other, 1, 0) == sizeof(word) &&
           word == Hello::PROBE;
}

// A child that the process has forked has the same memory, and keeps the registrations if the
// process ends.
bool ProcessMemory::access(uint64_t address, void *bytes, size_t length, bool is_write,
                           bool is_pinned) {
    char *const at = static_cast<char *>(bytes);
    try {
        return thread_ ? access_by_thread(address, at, length, is_write)
                       : access_directly(address, at, length, is_write, is_pinned);
    } catch (const ProgramEnded &) {
        for (const std::weak_ptr<ProcessMemory> &child : children_)
            if (const auto living = child.lock(); living && state_of(living->pid_) != 'X')
                return living->access(address, bytes, length, is_write, is_pinned);
        throw;
    }
}

// The file is faster than process_vm_readv() for a short range, because the kernel has checked
// the permission before, but ignores the protection of pages, as a device does for pinned ones.
bool ProcessMemory::access_directly(uint64_t address, char *bytes, size_t length, bool is_write,
                                    bool is_pinned) {
    constexpr size_t SHORT = 4096;
    if (is_pinned && length <= SHORT && file_ >= 0)
        return access_by_file(address, bytes, length, is_write);
    struct iovec own {
        bytes, length
    };
    struct iovec other {
        reinterpret_cast<void *>(address), length
    };
    const ssize_t done = is_write ? process_vm_writev(pid_, &own, 1, &other, 1, 0)
                                  : process_vm_readv(pid_, &own, 1, &other, 1, 0);
    if (done >= 0 || errno == EFAULT)
        return done == static_cast<ssize_t>(length);
    if (errno == ESRCH)
        throw ProgramEnded();
    return access_by_file(address, bytes, length, is_write);
}

// Linux, fs/proc/base.c, mem_rw(): 0 if the process has ended or executes another program, and
// EIO if the memory is not mapped.
bool ProcessMemory::access_by_file(uint64_t address, char *bytes, size_t length,
                                   bool is_write) {
    for (size_t done = 0; done < length;) {
        const auto at = static_cast<off_t>(address + done);
        const ssize_t n = is_write ? pwrite(file_, bytes + done, length - done, at)
                                   : pread(file_, bytes + done, length - done, at);
        if (n == 0 || (n < 0 && state_of(pid_) == 'X'))
            throw ProgramEnded();
        if (n < 0 && (errno == EIO || errno == EFAULT))
            return false;
        if (n < 0 && errno != EINTR)
            throw Failure("the memory of process " + std::to_string(pid_) +
                          " cannot be accessed: use --memory thread, and do not stop programs");
        done += n > 0 ? static_cast<size_t>(n) : 0;
    }
    return true;
}

// A stopped process has no thread that executes requests, but its memory stays reachable for a
// device.
bool ProcessMemory::access_by_thread(uint64_t address, char *bytes, size_t length,
                                     bool is_write) {
    for (size_t done = 0; done < length;) {
        const iovec range = {reinterpret_cast<void *>(address + done),
                             std::min(length - done, Mailbox::MAX_BYTES)};
        const ssize_t n = thread_->access(&range, 1, bytes + done, range.iov_len, is_write);
        if (n < 0)
            return access_directly(address + done, bytes + done, length - done, is_write,
                                   false);
        if (static_cast<size_t>(n) < range.iov_len)
            return false;
        done += range.iov_len;
    }
    return true;
}

size_t ProcessMemory::access_all(const iovec *ranges, size_t count, char *data, size_t bytes,
                                 bool is_write) {
    const struct iovec own = {data, bytes};
    const ssize_t done = thread_    ? thread_->access(ranges, count, data, bytes, is_write)
                         : is_write ? process_vm_writev(pid_, &own, 1, ranges, count, 0)
                                    : process_vm_readv(pid_, &own, 1, ranges, count, 0);
    return done > 0 ? static_cast<size_t>(done) : 0;
}

bool ProcessMemory::read(uint64_t address, void *to, size_t length) {
    flush_burst();
    return access(address, to, length, false, false);
}

bool ProcessMemory::read_pinned(uint64_t address, void *to, size_t length) {
    if (burst_ && burst_->read(*this, address, to, length))
        return true;
    flush_burst();
    return access(address, to, length, false, true);
}

bool ProcessMemory::write(uint64_t address, const void *from, size_t length, uint32_t writer) {
    return write_now(address, from, length, writer, false);
}

bool ProcessMemory::write_now(uint64_t address, const void *from, size_t length,
                              uint32_t writer, bool is_pinned) {
    writes_++;
    flush_burst();
    const bool is_written = access(address, const_cast<void *>(from), length, true, is_pinned);
    if (has_history() && writer != 0)
        persistence_->written(pid_, address, length, writer);
    if (burst_)
        burst_->has_written(*this);
    return is_written;
}

void ProcessMemory::write_pinned(uint64_t address, const void *from, size_t length,
                                 uint32_t writer) {
    if (burst_ && !has_history() && burst_->write(*this, address, from, length))
        writes_++;
    else
        (void)write_now(address, from, length, writer, true);
}

// Asks the memory thread if rdma-sim may not read the mappings.
int ProcessMemory::check(uint64_t begin, uint64_t end, bool is_written) {
    int error = EACCES;
    if (maps_ >= 0)
        error = check_mappings(maps_, begin, end, is_written);
    else if (thread_)
        error = thread_->check({reinterpret_cast<void *>(begin), end - begin}, is_written);
    if (error == ESRCH || (error && state_of(pid_) == 'X'))
        throw ProgramEnded();
    if (error && error != EFAULT)
        throw Failure("/proc/" + std::to_string(pid_) + "/maps: " + strerror(error));
    return error;
}

int ProcessMemory::pin(const Region &region) {
    const bool is_written = region.access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                             IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    const int error = check(region.address, region.address + region.length, is_written);
    if (!error && persistence_)
        persistence_->registered(pid_, region);
    return error;
}

void ProcessMemory::forget(const Region &region) {
    if (persistence_)
        persistence_->deregistered(pid_, region);
}

void ProcessMemory::persist(uint64_t address, size_t length, uint32_t writer) {
    flush_burst();
    if (persistence_)
        persistence_->persist(pid_, address, length, writer);
}

bool ProcessMemory::is_persistent(uint64_t address, size_t length) {
    return persistence_ && persistence_->is_persistent(pid_, address, length);
}

} // namespace sim
