// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// netlink.cc -- netlink sockets whose requests this library executes in the process
//
// Such a socket is a datagram socket that is connected to itself: a request is not sent, and
// the messages of its response are. So poll() and the functions that receive work unchanged,
// and a copy by dup() or fork() is the same socket. Its name contains the protocol and the
// port.

#include "netlink.hh"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload.hh"

namespace netlink {

namespace {

constexpr struct {
    int number;
    Respond *respond;
} PROTOCOLS[] = {
    {NETLINK_ROUTE, respond_route},
    {NETLINK_RDMA, respond_rdma},
};

Respond *function_of(int protocol) {
    for (const auto &row : PROTOCOLS)
        if (row.number == protocol)
            return row.respond;
    return nullptr;
}

constexpr size_t MAX_REQUEST = 65536;
constexpr uint32_t MAX_SOCKETS = 512; // of a process and a protocol

// The abstract name of a socket: a prefix that fits into a sockaddr_nl, the protocol, "/" and
// the port. Two sockets cannot have the same name, as two of the kernel cannot have one port.
constexpr char PREFIX[] = "\0sim-nl";
constexpr size_t PREFIX_SIZE = sizeof(PREFIX) - 1;
constexpr size_t PREFIX_END = offsetof(sockaddr_un, sun_path) + PREFIX_SIZE;
struct Name {
    sockaddr_un address = {};
    socklen_t length = 0;
    Name() = default;
    Name(int protocol, uint32_t port) {
        address.sun_family = AF_UNIX;
        memcpy(address.sun_path, PREFIX, PREFIX_SIZE);
        const int rest =
            snprintf(address.sun_path + PREFIX_SIZE, sizeof(address.sun_path) - PREFIX_SIZE,
                     "%c/%08x", '0' + protocol, port);
        length = static_cast<socklen_t>(PREFIX_END + static_cast<size_t>(rest));
    }
    const sockaddr *any() const { return reinterpret_cast<const sockaddr *>(&address); }
    int protocol() const { return address.sun_path[PREFIX_SIZE] - '0'; }
    uint32_t port() const {
        return static_cast<uint32_t>(
            strtoul(address.sun_path + PREFIX_SIZE + 2, nullptr, 16)); // after "/"
    }
};

bool is_name(const void *address, socklen_t length) {
    const auto *const name = static_cast<const sockaddr_un *>(address);
    return length >= PREFIX_END && name->sun_family == AF_UNIX &&
           memcmp(name->sun_path, PREFIX, PREFIX_SIZE) == 0;
}

bool has_sockets; // this process, or its parent, has created one

// Returns false if the socket is another one.
bool read_name(int fd, Name &name) {
    const int error = errno;
    name.length = sizeof(name.address) - 1;
    const bool is_one =
        has_sockets &&
        REAL(getsockname)(fd, reinterpret_cast<sockaddr *>(&name.address), &name.length) == 0 &&
        is_name(&name.address, name.length);
    errno = error;
    return is_one;
}

// Returns a socket, or -1 with errno: EADDRINUSE if another socket has the port.
int open_socket(int protocol, uint32_t port, int flags) {
    const Name name(protocol, port);
    constexpr int room = 4 << 20; // the kernel reduces it to its limit
    const int fd = REAL(socket)(AF_UNIX, SOCK_DGRAM | flags, 0);
    if (fd < 0)
        return -1;
    (void)REAL(setsockopt)(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    if (REAL(bind)(fd, name.any(), name.length) == 0 &&
        REAL(connect)(fd, name.any(), name.length) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int fail(int error) {
    errno = error;
    return -1;
}

bool is_executed(const nlmsghdr &request) {
    return (request.nlmsg_flags & NLM_F_REQUEST) != 0 && request.nlmsg_type >= NLMSG_MIN_TYPE;
}

void fill_address(void *to, socklen_t room, socklen_t &length, uint32_t port) {
    sockaddr_nl full = {};
    full.nl_family = AF_NETLINK;
    full.nl_pid = port;
    memcpy(to, &full, room < sizeof(full) ? room : sizeof(full));
    length = sizeof(full);
}

} // namespace

// ---- messages ------------------------------------------------------------------------------

Response::Response(int fd, uint32_t port, const nlmsghdr &request)
    : fd_(fd), port_(port), request_(request),
      is_dump_(is_executed(request) && (request.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP),
      bytes_(static_cast<char *>(malloc(MAX_DATAGRAM + MAX_MESSAGE))) {
    if (bytes_ == nullptr)
        error_ = ENOBUFS;
}

void Response::append(const void *data, size_t size) {
    const size_t aligned = NLMSG_ALIGN(size);
    if (error_ == 0 && (size > MAX_MESSAGE || used_ + aligned > begin_ + MAX_MESSAGE))
        error_ = EMSGSIZE;
    if (error_ != 0)
        return;
    memset(bytes_ + used_, 0, aligned);
    if (size > 0)
        memcpy(bytes_ + used_, data, size);
    used_ += aligned;
    const auto length = static_cast<uint32_t>(used_ - begin_);
    memcpy(bytes_ + begin_, &length, sizeof(length)); // nlmsg_len
}

// Sends the first bytes as a datagram.
void Response::send(size_t size) {
    if (size > 0 && REAL(sendto)(fd_, bytes_, size, MSG_DONTWAIT, nullptr, 0) < 0 &&
        error_ == 0)
        error_ = errno == EAGAIN ? ENOBUFS : errno;
    used_ -= size;
    begin_ = 0;
    if (used_ > 0)
        memmove(bytes_, bytes_ + size, used_);
}

void Response::begin(unsigned type, unsigned flags) {
    // Only a dump has several messages in a datagram. The last one may have exceeded it.
    if (is_dump() && used_ > MAX_DATAGRAM && begin_ > 0)
        send(begin_);
    if (!is_dump() || used_ > MAX_DATAGRAM)
        send(used_);
    begin_ = used_;
    nlmsghdr head = {};
    head.nlmsg_type = static_cast<uint16_t>(type);
    head.nlmsg_flags = static_cast<uint16_t>(flags);
    head.nlmsg_seq = request_.nlmsg_seq;
    head.nlmsg_pid = port_;
    append(&head, sizeof(head));
}

void Response::begin(unsigned type, const void *header, size_t size) {
    begin(type, is_dump() ? NLM_F_MULTI : 0);
    append(header, size);
}

void Response::put(unsigned type, const void *data, size_t size) {
    const nlattr head = {static_cast<uint16_t>(NLA_HDRLEN + size), static_cast<uint16_t>(type)};
    append(&head, sizeof(head));
    append(data, size);
}

size_t Response::nest(unsigned type) {
    const size_t start = used_ - begin_;
    put(type, nullptr, 0);
    return start;
}

void Response::unnest(size_t start) {
    const auto length = static_cast<uint16_t>(used_ - begin_ - start);
    if (error_ == 0)
        memcpy(bytes_ + begin_ + start, &length, sizeof(length)); // nla_len
}

// Linux 6.1, net/netlink/af_netlink.c: netlink_dump_done(), netlink_ack()
int Response::finish(int error) {
    if (error_ != 0)
        used_ = begin_; // the last message is incomplete
    if (error == 0)
        error = error_;
    const int lost = error_ == ENOBUFS ? ENOBUFS : 0;
    error_ = 0;
    if (bytes_ == nullptr)
        return lost;
    if (error == 0 && is_dump()) {
        send(used_);
        begin(NLMSG_DONE, NLM_F_MULTI);
        append(&error, sizeof(error));
    } else if (error != 0 || (request_.nlmsg_flags & NLM_F_ACK) != 0) {
        send(used_);
        begin(NLMSG_ERROR, error == 0 ? NLM_F_CAPPED : 0);
        error = -error;
        append(&error, sizeof(error));
        append(&request_, error == 0 ? sizeof(request_) : request_.nlmsg_len);
    }
    send(used_);
    return lost != 0 ? lost : error_;
}

const nlattr *find_attribute(const nlmsghdr &request, size_t size, unsigned type,
                             size_t least) {
    const char *const bytes = reinterpret_cast<const char *>(&request);
    for (size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(size); at + NLA_HDRLEN <= request.nlmsg_len;) {
        const auto *const found = reinterpret_cast<const nlattr *>(bytes + at);
        if (found->nla_len < NLA_HDRLEN || at + found->nla_len > request.nlmsg_len)
            return nullptr;
        if ((found->nla_type & NLA_TYPE_MASK) == type && size_of(*found) >= least)
            return found;
        at += NLA_ALIGN(found->nla_len);
    }
    return nullptr;
}

// ---- sockets -------------------------------------------------------------------------------

namespace {

// Linux 6.1, net/netlink/af_netlink.c: netlink_rcv_skb(). An incomplete message ends the loop.
int respond_all(int fd, const Name &name, const char *bytes, size_t size) {
    int error = 0;
    for (size_t at = 0; size - at >= NLMSG_HDRLEN && error == 0;) {
        const auto &request = *reinterpret_cast<const nlmsghdr *>(bytes + at);
        if (request.nlmsg_len < NLMSG_HDRLEN || request.nlmsg_len > size - at)
            break;
        Response response(fd, name.port(), request);
        error = response.finish(
            is_executed(request) ? function_of(name.protocol())(request, response) : 0);
        at += NLMSG_ALIGN(request.nlmsg_len) < size - at ? NLMSG_ALIGN(request.nlmsg_len)
                                                         : size - at;
    }
    return error;
}

// Linux 6.1, net/netlink/af_netlink.c: netlink_sendmsg()
int check_destination(const void *to, socklen_t length) {
    sockaddr_nl address = {};
    if (to == nullptr)
        return 0;
    if (length < sizeof(address))
        return EINVAL;
    memcpy(&address, to, sizeof(address));
    if (address.nl_family != AF_NETLINK)
        return EINVAL;
    if (address.nl_groups != 0)
        return EPERM; // multicast needs a privilege
    return address.nl_pid != 0 ? ECONNREFUSED : 0;
}

} // namespace

bool execute(int fd, const iovec *parts, size_t count, const void *to, socklen_t length,
             ssize_t &result) {
    Name name;
    if (!read_name(fd, name))
        return false;
    size_t size = 0;
    int error = check_destination(to, length);
    for (size_t i = 0; i < count; i++)
        size += parts[i].iov_len;
    if (size > MAX_REQUEST && error == 0)
        error = EMSGSIZE;
    char *const bytes = error == 0 ? static_cast<char *>(malloc(size + 1)) : nullptr;
    if (bytes == nullptr && error == 0)
        error = ENOBUFS;
    if (error == 0) {
        size_t at = 0;
        for (size_t i = 0; i < count; at += parts[i++].iov_len)
            if (parts[i].iov_len > 0)
                memcpy(bytes + at, parts[i].iov_base, parts[i].iov_len);
        error = respond_all(fd, name, bytes, size);
    }
    free(bytes);
    result = error == 0 ? static_cast<ssize_t>(size) : fail(error);
    return true;
}

bool set_port(int fd, const sockaddr *address, socklen_t length, int &result) {
    Name name;
    if (!read_name(fd, name))
        return false;
    sockaddr_nl asked = {};
    result = -1;
    if (address == nullptr || length < sizeof(asked)) {
        errno = EINVAL;
        return true;
    }
    memcpy(&asked, address, sizeof(asked));
    if (asked.nl_family != AF_NETLINK) {
        errno = EINVAL;
        return true;
    }
    result = 0;
    if (asked.nl_pid == 0 || asked.nl_pid == name.port())
        return true;
    // The port is part of the name, which is fixed.
    const int descriptor_flags = fcntl(fd, F_GETFD), flags = fcntl(fd, F_GETFL);
    const int other = open_socket(name.protocol(), asked.nl_pid,
                                  (flags & O_NONBLOCK) != 0 ? SOCK_NONBLOCK : 0);
    result = other < 0 ? -1 : dup3(other, fd, descriptor_flags != 0 ? O_CLOEXEC : 0);
    if (other >= 0)
        close(other);
    result = result < 0 ? -1 : 0;
    return true;
}

bool is_socket(int fd) {
    Name name;
    return read_name(fd, name);
}

void replace_sender(void *address, socklen_t room, socklen_t &length) {
    if (address != nullptr && room >= PREFIX_END && is_name(address, length))
        fill_address(address, room, length, 0);
}

bool name_of(int fd, sockaddr *address, socklen_t *length, bool is_peer, int &result) {
    Name name;
    if (address == nullptr || length == nullptr || !read_name(fd, name))
        return false;
    fill_address(address, *length, *length, is_peer ? 0 : name.port());
    result = 0;
    return true;
}

} // namespace netlink

EXPORTED int socket(int domain, int type, int protocol) noexcept {
    using namespace netlink;
    if (domain != AF_NETLINK || settings().host == 0 || function_of(protocol) == nullptr)
        return REAL(socket)(domain, type, protocol);
    const int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (kind != SOCK_RAW && kind != SOCK_DGRAM)
        return fail(ESOCKTNOSUPPORT);
    // The first socket of a process has its number as port.
    const auto pid = static_cast<uint32_t>(getpid());
    int fd = -1;
    errno = EADDRINUSE;
    for (uint32_t i = 0; i < MAX_SOCKETS && fd < 0 && errno == EADDRINUSE; i++)
        fd = open_socket(protocol, pid | i << 22, type & ~kind);
    has_sockets = has_sockets || fd >= 0;
    return fd;
}

EXPORTED int setsockopt(int fd, int level, int name, const void *value,
                        socklen_t length) noexcept {
    using namespace netlink;
    Name own;
    if (!has_sockets || !read_name(fd, own))
        return REAL(setsockopt)(fd, level, name, value, length);
    // A program may request less room than a response needs.
    if (level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_SNDBUFFORCE))
        return 0;
    if (level != SOL_NETLINK)
        return REAL(setsockopt)(fd, level, name, value, length);
    // The messages of a dump are not filtered, as before Linux 4.20.
    return name <= 0 || name >= NETLINK_GET_STRICT_CHK ? fail(ENOPROTOOPT) : 0;
}

EXPORTED int getsockopt(int fd, int level, int name, void *value, socklen_t *length) noexcept {
    using namespace netlink;
    Name own;
    int result = 0;
    if (!has_sockets || level != SOL_SOCKET || !read_name(fd, own))
        return REAL(getsockopt)(fd, level, name, value, length);
    switch (name) {
    case SO_DOMAIN:
        result = AF_NETLINK;
        break;
    case SO_PROTOCOL:
        result = own.protocol();
        break;
    case SO_TYPE:
        result = SOCK_RAW;
        break;
    default:
        return REAL(getsockopt)(fd, level, name, value, length);
    }
    if (*length > sizeof(result))
        *length = sizeof(result);
    memcpy(value, &result, *length);
    return 0;
}

EXPORTED ssize_t send(int fd, const void *data, size_t size, int flags) {
    const iovec part = {const_cast<void *>(data), size};
    ssize_t result;
    return netlink::execute(fd, &part, 1, nullptr, 0, result)
               ? result
               : REAL(send)(fd, data, size, flags);
}

EXPORTED ssize_t write(int fd, const void *data, size_t size) {
    const iovec part = {const_cast<void *>(data), size};
    ssize_t result;
    return netlink::execute(fd, &part, 1, nullptr, 0, result) ? result
                                                              : REAL(write)(fd, data, size);
}

EXPORTED ssize_t writev(int fd, const iovec *parts, int count) {
    ssize_t result;
    return count >= 0 &&
                   netlink::execute(fd, parts, static_cast<size_t>(count), nullptr, 0, result)
               ? result
               : REAL(writev)(fd, parts, count);
}
