// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// descriptors.cc -- for "rdma-sim explore": sockets between the hosts, pipes and the like. A
// call that would block waits until another thread has used a descriptor.

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#include "control.hh"

namespace {

using namespace control;

bool is_pipe(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

bool is_eventfd(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == 0;
}

bool is_blocking(int fd, int flags = 0) {
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0 && (flags & MSG_DONTWAIT) == 0;
}

// The numbers of copies of descriptors. A program gets lower ones.
constexpr int FIRST_COPY = 512, MAX_COPIES = 512;
bool copies[MAX_COPIES]; // which are open
bool has_full;           // a call has waited for room, such as that in an eventfd

} // namespace

bool control::is_of_program(int fd) {
    return is_on() && fd != rdma_sim_connection();
}
bool control::is_shared(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && (S_ISSOCK(status.st_mode) || S_ISFIFO(status.st_mode));
}
bool control::is_random(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) &&
           (status.st_rdev == makedev(1, 8) || status.st_rdev == makedev(1, 9));
}

// A thread that is cancelled keeps its copy.
control::OpenDescriptor::OpenDescriptor(int fd)
    : fd_(fd), copy_(has_threads() ? fcntl(fd, F_DUPFD_CLOEXEC, FIRST_COPY) : -1) {
    if (copy_ >= 0 && copy_ - FIRST_COPY < MAX_COPIES)
        copies[copy_ - FIRST_COPY] = true;
}
control::OpenDescriptor::~OpenDescriptor() {
    if (copy_ >= 0 && copy_ - FIRST_COPY < MAX_COPIES)
        copies[copy_ - FIRST_COPY] = false;
    if (copy_ >= 0)
        REAL(close)(copy_);
}
void control::OpenDescriptor::close_all() {
    for (int i = 0; i < MAX_COPIES; i++)
        if (std::exchange(copies[i], false))
            REAL(close)(FIRST_COPY + i);
}

namespace {

// The waits of one call that blocks.
class Blocking {
  public:
    Blocking(int fd, short events, const char *function) : function_(function) {
        const int option = (events & POLLIN) != 0 ? SO_RCVTIMEO : SO_SNDTIMEO;
        timeval limit = {};
        socklen_t size = sizeof(limit);
        if (getsockopt(fd, SOL_SOCKET, option, &limit, &size) == 0 && nanoseconds(limit) != 0)
            until_ = now() + nanoseconds(limit);
    }
    // Returns false, with errno, after the time limit of the socket or a handler.
    bool wait() const {
        if (until_ > now()) {
            wait_for_turn(Wait::EVENT, until_, function_);
            pthread_testcancel();
        }
        errno = is_interrupted(signals_) ? EINTR : EAGAIN;
        return errno != EINTR && until_ > now();
    }

  private:
    const char *function_;
    unsigned signals_ = handled_signals();
    uint64_t until_ = NEVER;
};

} // namespace

bool control::wait_for(int fd, short events, int flags, const char *function) {
    const int error = errno;
    pollfd ready = {fd, events, 0};
    if (is_blocking(fd, flags) && REAL(poll)(&ready, 1, 0) == 0) {
        const OpenDescriptor open(fd);
        const Blocking blocking(fd, events, function);
        ready.fd = open.number();
        has_full |= events == POLLOUT;
        for (bool may_wait = true; may_wait;) {
            may_wait = blocking.wait();
            const int reason = errno;
            if (REAL(poll)(&ready, 1, 0) != 0)
                break;
            errno = reason;
            if (!may_wait)
                return false;
        }
    }
    errno = error;
    return true;
}

namespace {

// ---- TCP and UDP between the hosts ----

using Verdict = sim::Transmit::Verdict;
constexpr uint64_t CONNECT_TIME = 127 * SECOND; // net.ipv4.tcp_syn_retries = 6

bool is_reachable(unsigned from, unsigned to) {
    return shared().unreachable[from][to] == 0;
}

uint64_t inode_of(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

bool is_stream(int fd) {
    int type = 0;
    socklen_t length = sizeof(type);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

// An acknowledgement cannot arrive through a cut link, nor can an RST.
ssize_t with_timeout(int fd, ssize_t result) {
    if (result >= 0 || (errno != ECONNRESET && errno != EPIPE) || shared().timeouts == 0)
        return result;
    const uint64_t inode = inode_of(fd);
    const volatile uint64_t *const all = shared().timed_out;
    for (size_t i = 0; i < sim::VirtualClock::TIMEOUTS; i++)
        if (all[i] == inode)
            errno = ETIMEDOUT;
    return result;
}

// Lets rdma-sim decide when the bytes arrive.
Verdict transmit(int fd, const rdma_sim_route &route, const void *data, size_t size,
                 const char *function, sim::Transmit request = {}) {
    sim::Transmit::Reply reply = {};
    request.socket = fd;
    request.host = route.to;
    request.is_stream = route.is_stream;
    request.inode = inode_of(fd);
    request.address_size = route.address_size;
    memcpy(request.address, route.address, sizeof(request.address));
    snprintf(request.function, sizeof(request.function), "%s", function);
    ask(request, data, size, reply);
    return static_cast<Verdict>(reply.verdict);
}

size_t size_of(const iovec *parts, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += parts[i].iov_len;
    return size;
}

// The parts of a message as one, which free() releases.
char *joined(const iovec *parts, size_t count, size_t size) {
    auto *const data = static_cast<char *>(malloc(size + 1));
    if (data == nullptr)
        abort();
    for (size_t i = 0, at = 0; i < count; at += parts[i++].iov_len)
        memcpy(data + at, parts[i].iov_base, parts[i].iov_len);
    return data;
}

// Sends the bytes of a stream. The kernel would block in the middle of a long message.
ssize_t send_all(int fd, const char *data, size_t size, int flags, const char *function) {
    const bool blocks = is_blocking(fd, flags);
    rdma_sim_route route;
    const bool is_routed = rdma_sim_find_route(fd, nullptr, 0, &route);
    const Blocking blocking(fd, POLLOUT, function);
    size_t done = 0;
    // Otherwise a short segment waits for an acknowledgement, for up to 40 ms of real time.
    const int on = 1;
    if (is_routed)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    do {
        const char *const begin = data + done;
        size_t part = size - done;
        if (!wait_for(fd, POLLOUT, flags, function))
            return done > 0 ? static_cast<ssize_t>(done) : -1;
        Verdict verdict = Verdict::SEND;
        if (is_routed) {
            sim::Transmit request = {};
            part = part < sim::Transmit::MAX_STREAM ? part : sim::Transmit::MAX_STREAM;
            request.waits = blocks;
            verdict = transmit(fd, route, begin, part, function, request);
        }
        if (verdict == Verdict::FULL && blocks) {
            if (!blocking.wait())
                return done > 0 ? static_cast<ssize_t>(done) : -1;
            continue;
        }
        ssize_t sent = static_cast<ssize_t>(part);
        errno = EAGAIN;
        if (verdict != Verdict::TAKEN)
            sent = verdict == Verdict::FULL
                       ? -1
                       : with_timeout(fd, REAL(send)(fd, begin, part, flags | MSG_DONTWAIT));
        if (sent < 0 && blocks && errno == EAGAIN)
            continue;
        if (sent < 0)
            return done > 0 ? static_cast<ssize_t>(done) : -1;
        done += static_cast<size_t>(sent);
        descriptors_changed();
    } while (done < size && (blocks || is_routed));
    return static_cast<ssize_t>(done);
}

// Sends a message by the function, which does not wait. `to`: NULL if the socket is connected.
template <class Send>
ssize_t send_message(int fd, const iovec *parts, size_t count, const sockaddr *to,
                     socklen_t length, int flags, const char *function, Send send) {
    rdma_sim_route route;
    const size_t size = size_of(parts, count);
    if (!wait_for(fd, POLLOUT, flags, function))
        return -1;
    Verdict verdict = Verdict::SEND;
    if (size <= sim::Transmit::MAX_DATAGRAM && rdma_sim_find_route(fd, to, length, &route)) {
        char *const data = joined(parts, count, size);
        verdict = transmit(fd, route, data, size, function);
        free(data);
    }
    if (verdict == Verdict::TAKEN)
        return static_cast<ssize_t>(size);
    if (verdict == Verdict::SEND_TWICE)
        (void)send();
    const ssize_t result = send();
    if (is_shared(fd) || is_eventfd(fd)) {
        descriptors_changed();
        yield_after(function);
    }
    return result;
}

// A pipe that poll() calls writable has room for PIPE_BUF bytes: the kernel would block in the
// middle of more.
ssize_t write_to_pipe(int fd, const char *data, size_t size, const char *function) {
    size_t done = 0;
    while (done < size) {
        iovec part = {const_cast<char *>(data) + done, std::min<size_t>(size - done, PIPE_BUF)};
        const ssize_t written = send_message(fd, &part, 1, nullptr, 0, 0, function, [&] {
            return REAL(write)(fd, part.iov_base, part.iov_len);
        });
        if (written < 0)
            return done > 0 ? static_cast<ssize_t>(done) : -1;
        done += static_cast<size_t>(written);
    }
    return static_cast<ssize_t>(done);
}

// Calls the function with the bytes of the parts.
template <class Send> ssize_t send_joined(const iovec *parts, size_t count, Send send) {
    if (count == 1)
        return send(static_cast<const char *>(parts->iov_base), parts->iov_len);
    const size_t size = size_of(parts, count);
    char *const data = joined(parts, count, size);
    const ssize_t result = send(data, size);
    const int error = errno;
    free(data);
    errno = error;
    return result;
}

// A call that sends the parts. `send_now`: the function of the C library.
template <class Send>
ssize_t send_parts(int fd, const iovec *parts, size_t count, const sockaddr *to,
                   socklen_t length, int flags, const char *function, Send send_now) {
    if (!is_of_program(fd))
        return send_now();
    if (is_stream(fd))
        return send_joined(parts, count, [&](const char *data, size_t size) {
            return send_all(fd, data, size, flags, function);
        });
    if (is_pipe(fd) && is_blocking(fd) && size_of(parts, count) > PIPE_BUF)
        return send_joined(parts, count, [&](const char *data, size_t size) {
            return write_to_pipe(fd, data, size, function);
        });
    return send_message(fd, parts, count, to, length, flags, function, send_now);
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
        if (!is_of_program(fd))                                     \
            return REAL(name) arguments;                            \
        if (!wait_for(fd, events, flags, #name))                    \
            return -1;                                              \
        const type result = REAL(name) arguments;                   \
        if (is_shared(fd))                                          \
            descriptors_changed();                                  \
        return static_cast<type>(with_timeout(fd, result));         \
    }
WAITS_FOR(int, accept, (int fd, sockaddr *from, socklen_t *length), (fd, from, length), POLLIN,
          0)
WAITS_FOR(int, accept4, (int fd, sockaddr *from, socklen_t *length, int options),
          (fd, from, length, options), POLLIN, 0)
EXPORTED ssize_t read(int fd, void *to, size_t size) {
    if (!is_of_program(fd))
        return REAL(read)(fd, to, size);
    if (is_random(fd))
        return getrandom(to, size, 0);
    if (!wait_for(fd, POLLIN, 0, "read"))
        return -1;
    const ssize_t result = REAL(read)(fd, to, size);
    if (is_shared(fd) || has_full)
        descriptors_changed();
    if (result > 0)
        number_senders(fd, to, static_cast<size_t>(result));
    return with_timeout(fd, result);
}
EXPORTED ssize_t __read_chk(int fd, void *to, size_t size, size_t room) {
    return size <= room ? read(fd, to, size) : REAL(__read_chk)(fd, to, size, room);
}
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

// The kernel would adapt the buffers to the time between calls, so that other schedules block.
// Accepted sockets inherit them.
static void fix_buffers(int fd) {
    const int size = 128 << 10; // less than the default of net.core.wmem_max
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

// A connection is established once both hosts reach each other. A socket that does not block
// connects at once, as if the link was cut afterwards.
EXPORTED int connect(int fd, const sockaddr *to, socklen_t length) {
    if (!is_of_program(fd))
        return REAL(connect)(fd, to, length);
    rdma_sim_route route;
    const bool is_routed = rdma_sim_find_route(fd, to, length, &route) && route.is_stream,
               blocks = is_blocking(fd);
    if (is_routed)
        fix_buffers(fd);
    const auto is_cut = [&] {
        return is_routed &&
               (!is_reachable(route.from, route.to) || !is_reachable(route.to, route.from));
    };
    for (const uint64_t until = now() + CONNECT_TIME; blocks && is_cut();) {
        if (until <= now()) {
            errno = ETIMEDOUT;
            return -1;
        }
        wait_for_turn(Wait::EVENT, until, "connect");
        pthread_testcancel();
    }
    const int result = REAL(connect)(fd, to, length);
    if (result != 0 && errno == ECONNREFUSED && is_cut())
        errno = EHOSTUNREACH;
    descriptors_changed();
    return result;
}

EXPORTED ssize_t sendmsg(int fd, const msghdr *message, int flags) {
    const auto send_now = [&] { return with_timeout(fd, REAL(sendmsg)(fd, message, flags)); };
    if (!is_of_program(fd) || message == nullptr)
        return send_now();
    if (message->msg_controllen == 0)
        return send_parts(fd, message->msg_iov, message->msg_iovlen,
                          static_cast<const sockaddr *>(message->msg_name),
                          message->msg_namelen, flags, "sendmsg", send_now);
    return send_message(fd, message->msg_iov, message->msg_iovlen,
                        static_cast<const sockaddr *>(message->msg_name), message->msg_namelen,
                        flags, "sendmsg", send_now);
}
EXPORTED ssize_t sendto(int fd, const void *data, size_t size, int flags, const sockaddr *to,
                        socklen_t length) {
    const iovec part = {const_cast<void *>(data), size};
    return send_parts(fd, &part, 1, to, length, flags, "sendto",
                      [&] { return REAL(sendto)(fd, data, size, flags, to, length); });
}
EXPORTED ssize_t send(int fd, const void *data, size_t size, int flags) {
    const iovec part = {const_cast<void *>(data), size};
    return send_parts(fd, &part, 1, nullptr, 0, flags, "send",
                      [&] { return REAL(send)(fd, data, size, flags); });
}
EXPORTED ssize_t write(int fd, const void *data, size_t size) {
    const iovec part = {const_cast<void *>(data), size};
    return send_parts(fd, &part, 1, nullptr, 0, 0, "write",
                      [&] { return REAL(write)(fd, data, size); });
}
EXPORTED ssize_t writev(int fd, const iovec *from, int count) {
    const auto send_now = [&] { return REAL(writev)(fd, from, count); };
    return count < 0 ? send_now()
                     : send_parts(fd, from, static_cast<size_t>(count), nullptr, 0, 0, "writev",
                                  send_now);
}
EXPORTED int eventfd_read(int fd, eventfd_t *value) {
    return read(fd, value, sizeof(*value)) == sizeof(*value) ? 0 : -1;
}
EXPORTED int eventfd_write(int fd, eventfd_t value) {
    return write(fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1;
}

EXPORTED int close(int fd) {
    if (is_on() && (is_shared(fd) || has_file_locks()))
        descriptors_changed(); // for the next turn
    const int result = REAL(close)(fd);
    yield_after("close");
    return result;
}
// Those that close descriptors as well.
#define CLOSES(name, parameters, arguments)      \
    EXPORTED int name parameters noexcept {      \
        if (is_on())                             \
            descriptors_changed();               \
        const int result = REAL(name) arguments; \
        yield_after(#name);                      \
        return result;                           \
    }
CLOSES(dup2, (int from, int to), (from, to))
CLOSES(dup3, (int from, int to, int flags), (from, to, flags))
CLOSES(close_range, (unsigned first, unsigned last, int flags), (first, last, flags))
EXPORTED void closefrom(int lowest) noexcept {
    (void)close_range(lowest < 0 ? 0 : static_cast<unsigned>(lowest), UINT_MAX, 0);
}
EXPORTED int shutdown(int fd, int how) noexcept {
    rdma_sim_route route;
    sim::Transmit request = {};
    request.ends = true;
    // The FIN follows the bytes that have not arrived.
    if (is_of_program(fd) && how != SHUT_RD && rdma_sim_find_route(fd, nullptr, 0, &route) &&
        route.is_stream &&
        transmit(fd, route, nullptr, 0, "shutdown", request) == Verdict::TAKEN) {
        if (how == SHUT_WR)
            return 0;
        how = SHUT_RD;
    }
    const int result = REAL(shutdown)(fd, how);
    if (is_on())
        descriptors_changed();
    return result;
}
// The next command may start.
EXPORTED int listen(int fd, int backlog) noexcept {
    if (is_on() && is_stream(fd))
        fix_buffers(fd);
    const int result = REAL(listen)(fd, backlog);
    if (is_on() && result == 0)
        wait_for_turn(Wait::LISTENS, NEVER, "listen");
    return result;
}
