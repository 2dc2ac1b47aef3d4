// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// rsocket.cc -- the functions of rsocket(7), by librdmacm.so.1 of the machine
//
// Its rsocket.c calls libibverbs and the other functions of librdmacm by their names, which the
// dynamic linker binds to those of the fabric. ShimId has the members that it reads directly.

#include "cma.hh"

#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <rdma/rsocket.h>
#include <sys/stat.h>

namespace sim {

thread_local bool creates_rsocket;

namespace {

void *library; // NULL: there is none that works
pthread_once_t is_loaded = PTHREAD_ONCE_INIT;

// Returns true if the directory has a library that is not `own`.
bool is_other_in(const char *directory, const struct stat &own, char (&path)[PATH_MAX]) {
    struct stat found;
    snprintf(path, sizeof(path), "%s/librdmacm.so.1", directory);
    return stat(path, &found) == 0 &&
           (found.st_dev != own.st_dev || found.st_ino != own.st_ino);
}

void load() {
    const link_map *map;
    struct stat own;
    Dl_serinfo size;
    char path[PATH_MAX];
    // This library, whose functions are global symbols from now on, also if the program has
    // loaded it by dlopen(): otherwise the machine's library would call its own.
    void *const global = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    if (!global || dlinfo(global, RTLD_DI_LINKMAP, &map) != 0 || stat(map->l_name, &own) != 0 ||
        dlinfo(global, RTLD_DI_SERINFOSIZE, &size) != 0)
        return;
    auto *const paths = static_cast<Dl_serinfo *>(malloc(size.dls_size));
    if (!paths)
        return;
    *paths = size;
    if (dlinfo(global, RTLD_DI_SERINFO, paths) == 0)
        for (unsigned i = 0; i < paths->dls_cnt; i++)
            if (is_other_in(paths->dls_serpath[i].dls_name, own, path)) {
                library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
                break;
            }
    free(paths);
}

template <class Function> Function *find(const char *name, Function *) {
    pthread_once(&is_loaded, load);
    void *const found = library ? dlsym(library, name) : nullptr;
    if (!found)
        fail(rdma_sim_unsupported(name, "rsockets without librdmacm.so.1 of the machine are"));
    return reinterpret_cast<Function *>(found);
}

} // namespace

} // namespace sim

using namespace sim;

// Defines a function by its type, name and parameters, and the arguments of the machine's.
#define FORWARD(type, name, parameters, ...)                 \
    type name parameters {                                   \
        static auto *const real = find(#name, name);         \
        return real ? real(__VA_ARGS__) : type(fail(errno)); \
    }

extern "C" {

int rsocket(int domain, int type, int protocol) {
    static auto *const real = find("rsocket", rsocket);
    if (!real)
        return -1;
    creates_rsocket = true;
    const int made = real(domain, type, protocol);
    creates_rsocket = false;
    return made;
}

int rfcntl(int socket, int cmd, ...) {
    static auto *const real = find("rfcntl", rfcntl);
    va_list arguments;
    va_start(arguments, cmd);
    const long argument = va_arg(arguments, long);
    va_end(arguments);
    return real ? real(socket, cmd, argument) : -1;
}

FORWARD(int, rbind, (int socket, const sockaddr *address, socklen_t length), socket, address,
        length)
FORWARD(int, rlisten, (int socket, int backlog), socket, backlog)
FORWARD(int, raccept, (int socket, sockaddr *address, socklen_t *length), socket, address,
        length)
FORWARD(int, rconnect, (int socket, const sockaddr *address, socklen_t length), socket, address,
        length)
FORWARD(int, rshutdown, (int socket, int how), socket, how)
FORWARD(int, rclose, (int socket), socket)
FORWARD(ssize_t, rrecv, (int socket, void *to, size_t size, int flags), socket, to, size, flags)
FORWARD(ssize_t, rrecvfrom,
        (int socket, void *to, size_t size, int flags, sockaddr *address, socklen_t *length),
        socket, to, size, flags, address, length)
FORWARD(ssize_t, rrecvmsg, (int socket, msghdr *message, int flags), socket, message, flags)
FORWARD(ssize_t, rsend, (int socket, const void *from, size_t size, int flags), socket, from,
        size, flags)
FORWARD(ssize_t, rsendto,
        (int socket, const void *from, size_t size, int flags, const sockaddr *address,
         socklen_t length),
        socket, from, size, flags, address, length)
FORWARD(ssize_t, rsendmsg, (int socket, const msghdr *message, int flags), socket, message,
        flags)
FORWARD(ssize_t, rread, (int socket, void *to, size_t size), socket, to, size)
FORWARD(ssize_t, rreadv, (int socket, const iovec *parts, int count), socket, parts, count)
FORWARD(ssize_t, rwrite, (int socket, const void *from, size_t size), socket, from, size)
FORWARD(ssize_t, rwritev, (int socket, const iovec *parts, int count), socket, parts, count)
FORWARD(int, rpoll, (pollfd * descriptors, nfds_t count, int timeout), descriptors, count,
        timeout)
FORWARD(int, rselect,
        (int count, fd_set *readable, fd_set *writable, fd_set *failed, timeval *timeout),
        count, readable, writable, failed, timeout)
FORWARD(int, rgetpeername, (int socket, sockaddr *address, socklen_t *length), socket, address,
        length)
FORWARD(int, rgetsockname, (int socket, sockaddr *address, socklen_t *length), socket, address,
        length)
FORWARD(int, rsetsockopt,
        (int socket, int level, int option, const void *value, socklen_t length), socket, level,
        option, value, length)
FORWARD(int, rgetsockopt, (int socket, int level, int option, void *value, socklen_t *length),
        socket, level, option, value, length)
FORWARD(off_t, riomap,
        (int socket, void *memory, size_t size, int protection, int flags, off_t offset),
        socket, memory, size, protection, flags, offset)
FORWARD(int, riounmap, (int socket, void *memory, size_t size), socket, memory, size)
FORWARD(size_t, riowrite, (int socket, const void *from, size_t size, off_t offset, int flags),
        socket, from, size, offset, flags)
}
