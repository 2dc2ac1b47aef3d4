// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// environment.cc -- resources shared by fabric and processes: descriptors, rings, memory.

#include "server.hh"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace sim {

// ---- descriptors and rings -----------------------------------------------------------------

SharedEnvironment::~SharedEnvironment() {
    for (const auto &[channel, ends] : channels_) {
        close(ends.own);
        close(ends.of_process);
    }
}

int SharedEnvironment::open_channel(uint32_t channel) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    channels_[channel] = {ends[0], ends[1]};
    return ends[1];
}

void SharedEnvironment::close_channel(uint32_t channel) {
    const auto found = channels_.find(channel);
    if (found == channels_.end())
        return;
    close(found->second.own);
    close(found->second.of_process);
    channels_.erase(found);
}

void SharedEnvironment::raise(uint32_t channel) {
    const char byte = 0;
    (void)!send(channels_.at(channel).own, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void SharedEnvironment::lower(uint32_t channel) {
    char byte;
    (void)!recv(channels_.at(channel).of_process, &byte, 1, MSG_DONTWAIT);
}

Ring *SharedEnvironment::open_ring(size_t bytes, int &fd) {
    fd = memfd_create("rpma-sim-cq", MFD_CLOEXEC);
    if (fd < 0)
        return nullptr;
    void *const mapped = ftruncate(fd, (off_t)bytes)
                             ? MAP_FAILED
                             : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        return static_cast<Ring *>(mapped);
    close(fd);
    fd = -1;
    return nullptr;
}

void SharedEnvironment::close_ring(Ring *ring, size_t bytes) {
    munmap(ring, bytes);
}

// ---- memory of processes -------------------------------------------------------------------

ProcessMemory::~ProcessMemory() {
    if (thread_ >= 0)
        close(thread_);
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

bool ProcessMemory::access(uint64_t address, void *bytes, size_t length, bool is_write) {
    if (thread_ >= 0)
        return access_by_thread(address, static_cast<char *>(bytes), length, is_write);
    struct iovec own {
        bytes, length
    };
    struct iovec other {
        reinterpret_cast<void *>(address), length
    };
    const ssize_t done = is_write ? process_vm_writev(pid_, &own, 1, &other, 1, 0)
                                  : process_vm_readv(pid_, &own, 1, &other, 1, 0);
    return done == (ssize_t)length;
}

// A stopped or dead process has no thread that replies.
static bool is_running(int pid) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *const opened = fopen(path, "re");
    if (!opened)
        return false;
    text[fread(text, 1, sizeof(text) - 1, opened)] = '\0';
    fclose(opened);
    const char *const state =
        strrchr(text, ')'); // after the name, which may contain any character
    return state && state[1] == ' ' && !strchr("TtZX", state[2]);
}

bool ProcessMemory::transfer(void *bytes, size_t length, bool is_write) {
    for (size_t done = 0; done < length;) {
        struct pollfd ready {
            thread_, (short)(is_write ? POLLOUT : POLLIN), 0
        };
        if (poll(&ready, 1, 100) <= 0) {
            if (!is_running(pid_))
                return false;
            continue;
        }
        char *const at = static_cast<char *>(bytes) + done;
        const ssize_t n = is_write
                              ? send(thread_, at, length - done, MSG_NOSIGNAL | MSG_DONTWAIT)
                              : recv(thread_, at, length - done, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool ProcessMemory::access_by_thread(uint64_t address, char *bytes, size_t length,
                                     bool is_write) {
    for (size_t done = 0; done < length;) {
        MemoryRequest request{address + done,
                              (uint32_t)std::min<size_t>(length - done, MemoryRequest::MAX),
                              is_write};
        int32_t error = 0;
        const bool has_reply =
            transfer(&request, sizeof(request), true) &&
            (!is_write || transfer(bytes + done, request.length, true)) &&
            transfer(&error, sizeof(error), false) &&
            (is_write || error || transfer(bytes + done, request.length, false));
        if (!has_reply) { // a late reply would be read as the next one
            close(thread_);
            thread_ = -1;
        }
        if (!has_reply || error)
            return false;
        done += request.length;
    }
    return true;
}

bool ProcessMemory::read(uint64_t address, void *to, size_t length) {
    return access(address, to, length, false);
}

bool ProcessMemory::write(uint64_t address, const void *from, size_t length) {
    return access(address, const_cast<void *>(from), length, true);
}

// Is true if the process maps the range, which must be writable if the device may
// write: Linux 7.3, drivers/infiniband/core/umem.c, ib_umem_get() and ib_access_writable().
static int check_mappings(int pid, uint64_t begin, uint64_t end, bool is_written) {
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    FILE *const maps = fopen(path, "re");
    if (!maps)
        return 0; // no permission to read: the access will fail
    uint64_t from, to;
    char mode[5];
    while (begin < end && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, mode) != 3 || to <= begin)
            continue;
        if (from > begin || mode[0] != 'r' || (is_written && mode[1] != 'w'))
            break;
        begin = to;
    }
    fclose(maps);
    return begin < end ? EFAULT : 0;
}

int ProcessMemory::pin(const Mr &mr) {
    const bool is_written = mr.access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                         IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    const int error = check_mappings(pid_, mr.address, mr.address + mr.length, is_written);
    if (!error && persistence_)
        persistence_->registered(pid_, mr);
    return error;
}

void ProcessMemory::forget(const Mr &mr) {
    if (persistence_)
        persistence_->deregistered(pid_, mr);
}

void ProcessMemory::persist(uint64_t address, size_t length) {
    if (persistence_)
        persistence_->persist(pid_, address, length);
}

bool ProcessMemory::is_persistent(uint64_t address, size_t length) {
    return persistence_ && persistence_->is_persistent(pid_, address, length);
}

} // namespace sim
