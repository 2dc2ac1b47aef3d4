// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// descriptors.cc -- for "rdma-sim explore": sockets between the hosts, pipes and the like. A
// call that would block waits until another thread has used a descriptor.

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "control.hh"

namespace {

using namespace control;

bool is_controlled(int fd) {
    return is_on() && fd != rdma_sim_connection();
}

// Others may wait for such a descriptor.
bool is_shared(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && (S_ISSOCK(status.st_mode) || S_ISFIFO(status.st_mode));
}

bool is_eventfd(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == 0;
}

void wait_for(int fd, short events, int flags, const char *function) {
    const int error = errno;
    pollfd ready = {fd, events, 0};
    const int status = fcntl(fd, F_GETFL);
    while (status >= 0 && (status & O_NONBLOCK) == 0 && (flags & MSG_DONTWAIT) == 0 &&
           REAL(poll)(&ready, 1, 0) == 0) {
        wait_for_turn(Wait::EVENT, NEVER, function);
        pthread_testcancel();
    }
    errno = error;
}

bool is_stream(int fd) {
    int type = 0;
    socklen_t length = sizeof(type);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

// The kernel would block in the middle of a long message.
ssize_t send_all(int fd, const void *data, size_t size, int flags, const char *function) {
    const bool blocks = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0 && (flags & MSG_DONTWAIT) == 0;
    size_t done = 0;
    do {
        wait_for(fd, POLLOUT, flags, function);
        const ssize_t sent = REAL(send)(fd, static_cast<const char *>(data) + done, size - done,
                                        flags | MSG_DONTWAIT);
        if (sent < 0 && blocks && errno == EAGAIN)
            continue;
        if (sent < 0)
            return done > 0 ? static_cast<ssize_t>(done) : -1;
        done += static_cast<size_t>(sent);
        descriptors_changed();
    } while (blocks && done < size);
    return static_cast<ssize_t>(done);
}

} // namespace

extern "C" {
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, sockaddr *, socklen_t *);
}

// Defines a function that waits for an event of a descriptor, and may let others continue.
#define WAITS_FOR(type, name, parameters, arguments, events, flags) \
    EXPORTED type name parameters {                                 \
        if (!is_controlled(fd))                                     \
            return REAL(name) arguments;                            \
        wait_for(fd, events, flags, #name);                         \
        const type result = REAL(name) arguments;                   \
        if (is_shared(fd))                                          \
            descriptors_changed();                                  \
        return result;                                              \
    }
WAITS_FOR(int, accept, (int fd, sockaddr *from, socklen_t *length), (fd, from, length), POLLIN,
          0)
WAITS_FOR(int, accept4, (int fd, sockaddr *from, socklen_t *length, int options),
          (fd, from, length, options), POLLIN, 0)
WAITS_FOR(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size), POLLIN, 0)
WAITS_FOR(ssize_t, __read_chk, (int fd, void *to, size_t size, size_t room),
          (fd, to, size, room), POLLIN, 0)
WAITS_FOR(ssize_t, readv, (int fd, const iovec *to, int count), (fd, to, count), POLLIN, 0)
WAITS_FOR(ssize_t, recv, (int fd, void *to, size_t size, int flags), (fd, to, size, flags),
          POLLIN, flags)
WAITS_FOR(ssize_t, __recv_chk, (int fd, void *to, size_t size, size_t room, int flags),
          (fd, to, size, room, flags), POLLIN, flags)
WAITS_FOR(ssize_t, recvfrom,
          (int fd, void *to, size_t size, int flags, sockaddr *from, socklen_t *length),
          (fd, to, size, flags, from, length), POLLIN, flags)
WAITS_FOR(ssize_t, __recvfrom_chk,
          (int fd, void *to, size_t size, size_t room, int flags, sockaddr *from,
           socklen_t *length),
          (fd, to, size, room, flags, from, length), POLLIN, flags)
WAITS_FOR(ssize_t, recvmsg, (int fd, msghdr *message, int flags), (fd, message, flags), POLLIN,
          flags)
WAITS_FOR(ssize_t, sendmsg, (int fd, const msghdr *message, int flags), (fd, message, flags),
          POLLOUT, flags)
WAITS_FOR(ssize_t, sendto,
          (int fd, const void *data, size_t size, int flags, const sockaddr *to,
           socklen_t length),
          (fd, data, size, flags, to, length), POLLOUT, flags)
WAITS_FOR(ssize_t, writev, (int fd, const iovec *from, int count), (fd, from, count), POLLOUT,
          0)
WAITS_FOR(int, connect, (int fd, const sockaddr *to, socklen_t length), (fd, to, length), 0,
          MSG_DONTWAIT)

EXPORTED ssize_t send(int fd, const void *data, size_t size, int flags) {
    return is_controlled(fd) ? send_all(fd, data, size, flags, "send")
                             : REAL(send)(fd, data, size, flags);
}
EXPORTED ssize_t write(int fd, const void *data, size_t size) {
    if (!is_controlled(fd))
        return REAL(write)(fd, data, size);
    if (is_stream(fd))
        return send_all(fd, data, size, 0, "write");
    wait_for(fd, POLLOUT, 0, "write");
    const ssize_t result = REAL(write)(fd, data, size);
    if (is_shared(fd) || is_eventfd(fd))
        descriptors_changed();
    return result;
}
EXPORTED int eventfd_read(int fd, eventfd_t *value) {
    return read(fd, value, sizeof(*value)) == sizeof(*value) ? 0 : -1;
}
EXPORTED int eventfd_write(int fd, eventfd_t value) {
    return write(fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1;
}

EXPORTED int close(int fd) {
    if (is_on() && is_shared(fd))
        descriptors_changed(); // for the next turn
    return REAL(close)(fd);
}
EXPORTED int shutdown(int fd, int how) noexcept {
    const int result = REAL(shutdown)(fd, how);
    if (is_on())
        descriptors_changed();
    return result;
}
// The next command may start.
EXPORTED int listen(int fd, int backlog) noexcept {
    const int result = REAL(listen)(fd, backlog);
    if (is_on() && result == 0)
        wait_for_turn(Wait::LISTENS, NEVER, "listen");
    return result;
}
