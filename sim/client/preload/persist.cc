// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// persist.cc -- maps files of --pmem as on FS-DAX, and sends rdma-sim the ranges that a program
// makes persistent
//
// The flush instructions of the processor cannot be intercepted. So the functions of libpmem
// and libpmem2 send requests instead. A program that executes such instructions itself must
// call msync().

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../protocol/protocol.hh"
#include "preload.hh"

namespace {

enum Match { IS_SAME, IS_ON_SAME_DEVICE };

// Compares with the files that have these paths now: a program may replace a file by another.
bool is_persistent(const struct stat &status, Match match = IS_SAME) {
    const char *end;
    for (const char *path = settings().persistent; (end = strstr(path, "//")) != nullptr;
         path = end + 2) {
        char name[PATH_MAX];
        struct stat named;
        snprintf(name, sizeof(name), "%.*s", static_cast<int>(end - path), path);
        if (stat(name, &named) == 0 && named.st_dev == status.st_dev &&
            (match == IS_ON_SAME_DEVICE || named.st_ino == status.st_ino))
            return true;
        *(strrchr(name, '/') + 1) = '\0'; // there may be no file now
        if (match == IS_ON_SAME_DEVICE && stat(name, &named) == 0 &&
            named.st_dev == status.st_dev)
            return true;
    }
    return false;
}

bool is_persistent(int fd, struct stat &status, Match match = IS_SAME) {
    const int error = errno;
    const bool result = fd >= 0 && fstat(fd, &status) == 0 && is_persistent(status, match);
    errno = error;
    return result;
}

// Each request has a connection of its own: requests are rare, and a child of fork() needs one.
template <class Request> bool exchange(int fd, const Request &request) {
    char reply[sim::MAX_MESSAGE];
    // Not send() and recv(), which explore replaces.
    if (REAL(syscall)(SYS_sendto, fd, &request, sizeof(request), MSG_NOSIGNAL, nullptr, 0) !=
            sizeof(request) ||
        REAL(syscall)(SYS_recvfrom, fd, reply, sizeof(reply), 0, nullptr, nullptr) <
            static_cast<long>(sizeof(sim::ReplyHead)))
        return false;
    sim::ReplyHead head;
    memcpy(&head, reply, sizeof(head));
    errno = head.error;
    return head.error == 0;
}

// Ends the program, because a success would promise what rdma-sim has not done.
[[noreturn]] void fail() {
    fprintf(stderr, "rdma-sim: data cannot be made persistent: %s\n", strerror(errno));
    _exit(sim::EXIT_FAILED);
}

void persist(const void *address, size_t length) {
    if (settings().persistent[0] == '\0' || length == 0)
        return;
    sockaddr_un server = {.sun_family = AF_UNIX, .sun_path = ""};
    snprintf(server.sun_path, sizeof(server.sun_path), "%s", settings().socket);
    const int error = errno, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sim::Hello hello = {};
    hello.host = settings().host;
    sim::Persist request = {};
    request.thread = static_cast<uint32_t>(REAL(syscall)(SYS_gettid));
    request.address = reinterpret_cast<uint64_t>(address);
    request.length = length;
    if (fd < 0 ||
        REAL(connect)(fd, reinterpret_cast<const sockaddr *>(&server), sizeof(server)) != 0 ||
        !exchange(fd, hello) || !exchange(fd, request))
        fail();
    close(fd);
    errno = error;
}

// Makes the whole file persistent: write() changes it without a mapping of the program. Another
// file on the same device may get the path of a --pmem file later.
void persist_file(int fd) {
    struct stat status;
    if (!is_persistent(fd, status, IS_ON_SAME_DEVICE) || !S_ISREG(status.st_mode) ||
        status.st_size == 0)
        return;
    const auto size = static_cast<size_t>(status.st_size);
    char path[64]; // fd may be open for writing alone, and a mapping reads
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const int readable = open(path, O_RDONLY | O_CLOEXEC);
    void *const all =
        REAL(mmap)(nullptr, size, PROT_READ, MAP_SHARED, readable < 0 ? fd : readable, 0);
    if (all == MAP_FAILED)
        fail();
    close(readable);
    persist(all, size);
    munmap(all, size);
}

void *move_and_persist(void *to, const void *from, size_t length) {
    memmove(to, from, length);
    persist(to, length);
    return to;
}
void *set_and_persist(void *to, int value, size_t length) {
    memset(to, value, length);
    persist(to, length);
    return to;
}
void drain() {}

// The content that a file has when it gets the path of a --pmem file is persistent: the
// program may have made it so below another path.
int persist_named(int result, int at, const char *path) {
    struct stat status;
    const int error = errno;
    if (result == 0 && fstatat(at, path, &status, 0) == 0 && S_ISREG(status.st_mode) &&
        is_persistent(status)) {
        const int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            fail();
        persist_file(fd);
        close(fd);
    }
    errno = error;
    return result;
}

// Removes MAP_SYNC for a file of --pmem, because its file system may refuse this flag.
int without_sync(int flags, int fd) {
    struct stat status;
    return (flags & MAP_SYNC) != 0 && is_persistent(fd, status)
               ? (flags & ~(MAP_SYNC | MAP_SHARED_VALIDATE)) | MAP_SHARED
               : flags;
}

} // namespace

EXPORTED void *mmap(void *at, size_t length, int protection, int flags, int fd,
                    off_t offset) noexcept {
    return REAL(mmap)(at, length, protection, without_sync(flags, fd), fd, offset);
}
EXPORTED void *mmap64(void *at, size_t length, int protection, int flags, int fd,
                      off64_t offset) noexcept {
    return REAL(mmap64)(at, length, protection, without_sync(flags, fd), fd, offset);
}
EXPORTED int msync(void *address, size_t length, int flags) {
    const int result = REAL(msync)(address, length, flags);
    if (result == 0 && (flags & MS_SYNC) != 0)
        persist(address, length);
    return result;
}
EXPORTED int fsync(int fd) {
    const int result = REAL(fsync)(fd);
    if (result == 0)
        persist_file(fd);
    return result;
}
EXPORTED int fdatasync(int fd) {
    const int result = REAL(fdatasync)(fd);
    if (result == 0)
        persist_file(fd);
    return result;
}
EXPORTED int rename(const char *from, const char *to) noexcept {
    return persist_named(REAL(rename)(from, to), AT_FDCWD, to);
}
EXPORTED int renameat(int at, const char *from, int to_at, const char *to) noexcept {
    return persist_named(REAL(renameat)(at, from, to_at, to), to_at, to);
}
EXPORTED int renameat2(int at, const char *from, int to_at, const char *to,
                       unsigned flags) noexcept {
    const int result = persist_named(REAL(renameat2)(at, from, to_at, to, flags), to_at, to);
    return (flags & RENAME_EXCHANGE) != 0 ? persist_named(result, at, from) : result;
}
EXPORTED int link(const char *from, const char *to) noexcept {
    return persist_named(REAL(link)(from, to), AT_FDCWD, to);
}
EXPORTED int linkat(int at, const char *from, int to_at, const char *to, int flags) noexcept {
    return persist_named(REAL(linkat)(at, from, to_at, to, flags), to_at, to);
}

// One line for each function: its type and name, its parameters, and what it returns.
#define REPLACE(type, name, parameters, value) \
    EXPORTED type name parameters {            \
        return value;                          \
    }
#define RANGE (const void *address, size_t length)
#define MOVE (void *to, const void *from, size_t length)
#define MOVE_BY_FLAGS (void *to, const void *from, size_t length, unsigned)
#define SET (void *to, int value, size_t length)
#define SET_BY_FLAGS (void *to, int value, size_t length, unsigned)

REPLACE(void, pmem_persist, RANGE, persist(address, length))
REPLACE(void, pmem_flush, RANGE, persist(address, length))
REPLACE(void, pmem_deep_flush, RANGE, persist(address, length))
REPLACE(int, pmem_deep_persist, RANGE, (persist(address, length), 0))
REPLACE(int, pmem_msync, RANGE, (persist(address, length), 0))
REPLACE(void *, pmem_memmove_persist, MOVE, move_and_persist(to, from, length))
REPLACE(void *, pmem_memcpy_persist, MOVE, move_and_persist(to, from, length))
REPLACE(void *, pmem_memmove_nodrain, MOVE, move_and_persist(to, from, length))
REPLACE(void *, pmem_memcpy_nodrain, MOVE, move_and_persist(to, from, length))
REPLACE(void *, pmem_memmove, MOVE_BY_FLAGS, move_and_persist(to, from, length))
REPLACE(void *, pmem_memcpy, MOVE_BY_FLAGS, move_and_persist(to, from, length))
REPLACE(void *, pmem_memset_persist, SET, set_and_persist(to, value, length))
REPLACE(void *, pmem_memset_nodrain, SET, set_and_persist(to, value, length))
REPLACE(void *, pmem_memset, SET_BY_FLAGS, set_and_persist(to, value, length))

REPLACE(auto *, pmem2_get_persist_fn, (void *), persist)
REPLACE(auto *, pmem2_get_flush_fn, (void *), persist)
REPLACE(auto *, pmem2_get_drain_fn, (void *), drain)
REPLACE(auto *, pmem2_get_memmove_fn, (void *), pmem_memmove)
REPLACE(auto *, pmem2_get_memcpy_fn, (void *), pmem_memcpy)
REPLACE(auto *, pmem2_get_memset_fn, (void *), pmem_memset)
REPLACE(int, pmem2_deep_flush, (void *, void *address, size_t length),
        (persist(address, length), 0))
