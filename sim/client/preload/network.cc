// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// network.cc -- TCP and UDP between simulated hosts, on addresses of the loopback interface
//
// Host N has 10.77.0.N and fd77::N. Its sockets use 127.X.Y.N (loopback_of_run()): every
// address in 127/8 works without configuration, and hosts can use the same ports. A socket that
// is bound to all addresses, or to 127.0.0.1, uses the address of its host.

#include <arpa/inet.h>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../protocol/protocol.hh"
#include "../client.hh"
#include "netlink.hh"
#include "preload.hh"

namespace {

constexpr uint32_t SIMULATED = 0x0a4d0000, MASK = 0xffff0000;
constexpr uint32_t NO_HOST = 0, ALL = 255; // in place of N
constexpr uint8_t SIMULATED_6[14] = {0xfd, 0x77},
                  MAPPED_6[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

union Address {
    sockaddr any;
    sockaddr_in ip4;
    sockaddr_in6 ip6;
    sockaddr_storage room;
};

uint32_t own_address() {
    return settings().loopback | settings().host;
}

// The last 16 bits of an address of the fabric.
uint32_t loopback_of_host(uint32_t number) {
    return settings().loopback | (number <= sim::MAX_HOSTS ? number
                                  : number == ~MASK        ? ALL
                                                           : NO_HOST);
}

// Returns the address on the loopback interface, or 0 if the address is outside the fabric.
uint32_t loopback_of(uint32_t ip) {
    if (ip == INADDR_ANY || ip == INADDR_LOOPBACK)
        return own_address();
    return (ip & MASK) == SIMULATED ? loopback_of_host(ip & ~MASK) : 0;
}

uint32_t loopback_of(const in6_addr &ip) {
    uint32_t last;
    memcpy(&last, ip.s6_addr + 12, sizeof(last));
    last = ntohl(last);
    if (IN6_IS_ADDR_UNSPECIFIED(&ip) || IN6_IS_ADDR_LOOPBACK(&ip))
        return own_address();
    if (IN6_IS_ADDR_V4MAPPED(&ip))
        return loopback_of(last);
    return memcmp(ip.s6_addr, SIMULATED_6, sizeof(SIMULATED_6)) == 0
               ? loopback_of_host(last & ~MASK)
               : 0;
}

void set_mapped(in6_addr &ip, uint32_t last) {
    last = htonl(last);
    memcpy(ip.s6_addr, MAPPED_6, sizeof(MAPPED_6));
    memcpy(ip.s6_addr + 12, &last, sizeof(last));
}

// Copies an address of the fabric, translated to the loopback interface. `any4` is another
// family of all IPv4 addresses.
bool to_loopback(Address &to, const sockaddr *from, socklen_t length, int any4 = AF_INET) {
    if (settings().host == 0 || from == nullptr || length > sizeof(to) ||
        length < sizeof(sockaddr_in))
        return false;
    memcpy(&to, from, length);
    uint32_t found = 0;
    if (to.any.sa_family == any4 && to.ip4.sin_addr.s_addr == INADDR_ANY)
        to.any.sa_family = AF_INET;
    if (to.any.sa_family == AF_INET) {
        found = loopback_of(ntohl(to.ip4.sin_addr.s_addr));
        to.ip4.sin_addr.s_addr = htonl(found);
    } else if (to.any.sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
        found = loopback_of(to.ip6.sin6_addr);
        set_mapped(to.ip6.sin6_addr, found);
    }
    return found != 0;
}

// The number of the host that has an address of the loopback interface, or 0.
unsigned host_of(const Address &address) {
    uint32_t ip = address.ip4.sin_addr.s_addr;
    if (address.any.sa_family == AF_INET6)
        memcpy(&ip, address.ip6.sin6_addr.s6_addr + 12, sizeof(ip));
    else if (address.any.sa_family != AF_INET)
        return 0;
    ip = ntohl(ip);
    return (ip & sim::LOOPBACK_MASK) == settings().loopback ? ip & ~sim::LOOPBACK_MASK : 0;
}

// Returns true if this host has the translated address, or all hosts do (broadcast).
bool is_local(const Address &address) {
    const unsigned host = host_of(address);
    return host == settings().host || (address.any.sa_family == AF_INET && host == ALL);
}

void from_loopback(sockaddr *address, socklen_t length) {
    Address found;
    if (settings().host == 0 || address == nullptr || length < sizeof(sockaddr_in) ||
        length > sizeof(found))
        return;
    memcpy(&found, address, length);
    if (found.any.sa_family == AF_INET) {
        if (const unsigned host = host_of(found))
            found.ip4.sin_addr.s_addr = htonl(SIMULATED | (host == ALL ? ~MASK : host));
    } else if (found.any.sa_family == AF_INET6 && length >= sizeof(sockaddr_in6) &&
               IN6_IS_ADDR_V4MAPPED(&found.ip6.sin6_addr)) {
        if (const unsigned host = host_of(found)) {
            memcpy(found.ip6.sin6_addr.s6_addr, SIMULATED_6, sizeof(SIMULATED_6));
            found.ip6.sin6_addr.s6_addr[14] = 0;
            found.ip6.sin6_addr.s6_addr[15] = static_cast<uint8_t>(host);
        }
    }
    memcpy(address, &found, length);
}

// Mapped IPv4 addresses need an IPv6 socket that is not restricted to IPv6.
void allow_mapped(int fd, const Address &address) {
    const int off = 0;
    if (address.any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
}

// Binds an unbound socket, so that the peer gets the host's address.
void bind_own(int fd, const Address &to) {
    Address own = {};
    socklen_t length = sizeof(own);
    const int on = 1;
    if (REAL(getsockname)(fd, &own.any, &length) != 0 || own.ip4.sin_port != 0 ||
        own.any.sa_family != to.any.sa_family)
        return;
    if (own.any.sa_family == AF_INET)
        own.ip4.sin_addr.s_addr = htonl(own_address());
    else
        set_mapped(own.ip6.sin6_addr, own_address());
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    (void)REAL(bind)(fd, &own.any, length);
}

void report_listening() {
    const int error = errno;
    if (settings().listening[0] != '\0')
        close(open(settings().listening, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    errno = error;
}

} // namespace

// The connections of the schedule before are in TIME-WAIT: a port is free again at once.
static void allow_used_port(int fd) {
    static const bool is_explored = getenv("RDMA_SIM_CLOCK") != nullptr;
    const int one = 1;
    int type = 0;
    socklen_t size = sizeof(type);
    if (is_explored && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
        type == SOCK_STREAM)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
}

EXPORTED int bind(int fd, const sockaddr *address, socklen_t length) noexcept {
    Address own;
    int result;
    if (netlink::set_port(fd, address, length, result))
        return result;
    // Linux 6.1, net/ipv4/af_inet.c, __inet_bind() accepts AF_UNSPEC, which Open MPI uses.
    if (!to_loopback(own, address, length, AF_UNSPEC))
        return REAL(bind)(fd, address, length);
    if (!is_local(own)) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    allow_mapped(fd, own);
    allow_used_port(fd);
    return REAL(bind)(fd, &own.any, length);
}

EXPORTED int connect(int fd, const sockaddr *address, socklen_t length) {
    Address peer;
    if (netlink::is_socket(fd))
        return 0;
    if (!to_loopback(peer, address, length))
        return REAL(connect)(fd, address, length);
    allow_mapped(fd, peer);
    bind_own(fd, peer);
    return REAL(connect)(fd, &peer.any, length);
}

EXPORTED ssize_t sendto(int fd, const void *data, size_t size, int flags,
                        const sockaddr *address, socklen_t length) {
    Address peer;
    const iovec part = {const_cast<void *>(data), size};
    ssize_t result;
    if (netlink::execute(fd, &part, 1, address, length, result))
        return result;
    if (!to_loopback(peer, address, length))
        return REAL(sendto)(fd, data, size, flags, address, length);
    allow_mapped(fd, peer);
    bind_own(fd, peer);
    return REAL(sendto)(fd, data, size, flags, &peer.any, length);
}

EXPORTED ssize_t sendmsg(int fd, const msghdr *message, int flags) {
    Address peer;
    ssize_t result;
    if (message != nullptr && netlink::execute(fd, message->msg_iov, message->msg_iovlen,
                                               message->msg_name, message->msg_namelen, result))
        return result;
    if (message == nullptr ||
        !to_loopback(peer, static_cast<const sockaddr *>(message->msg_name),
                     message->msg_namelen))
        return REAL(sendmsg)(fd, message, flags);
    msghdr changed = *message;
    changed.msg_name = &peer;
    allow_mapped(fd, peer);
    bind_own(fd, peer);
    return REAL(sendmsg)(fd, &changed, flags);
}

// Functions that return the address of a peer or of the socket itself.
#define REPLACE_NAMED(type, name, parameters, ...)               \
    EXPORTED type name parameters {                              \
        const socklen_t room = length != nullptr ? *length : 0;  \
        const type result = REAL(name)(__VA_ARGS__);             \
        if (result >= 0 && length != nullptr)                    \
            netlink::replace_sender(address, room, *length);     \
        if (result >= 0 && length != nullptr && *length <= room) \
            from_loopback(address, *length);                     \
        return result;                                           \
    }
extern "C" ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, sockaddr *, socklen_t *);
REPLACE_NAMED(int, accept, (int fd, sockaddr *address, socklen_t *length), fd, address, length)
REPLACE_NAMED(int, accept4, (int fd, sockaddr *address, socklen_t *length, int flags), fd,
              address, length, flags)
REPLACE_NAMED(ssize_t, recvfrom,
              (int fd, void *data, size_t size, int flags, sockaddr *address,
               socklen_t *length),
              fd, data, size, flags, address, length)
// Called by fortified programs.
REPLACE_NAMED(ssize_t, __recvfrom_chk,
              (int fd, void *data, size_t size, size_t data_room, int flags, sockaddr *address,
               socklen_t *length),
              fd, data, size, data_room, flags, address, length)

#define REPLACE_NAME(name, is_peer)                                            \
    EXPORTED int name(int fd, sockaddr *address, socklen_t *length) noexcept { \
        const socklen_t room = length != nullptr ? *length : 0;                \
        int result;                                                            \
        if (netlink::name_of(fd, address, length, is_peer, result))            \
            return result;                                                     \
        result = REAL(name)(fd, address, length);                              \
        if (result == 0 && *length <= room)                                    \
            from_loopback(address, *length);                                   \
        return result;                                                         \
    }
REPLACE_NAME(getsockname, false)
REPLACE_NAME(getpeername, true)

EXPORTED ssize_t recvmsg(int fd, msghdr *message, int flags) {
    const socklen_t room = message != nullptr ? message->msg_namelen : 0;
    const ssize_t result = REAL(recvmsg)(fd, message, flags);
    if (result >= 0 && message->msg_name != nullptr) {
        netlink::replace_sender(message->msg_name, room, message->msg_namelen);
        from_loopback(static_cast<sockaddr *>(message->msg_name), message->msg_namelen);
    }
    return result;
}

EXPORTED bool rdma_sim_find_route(int fd, const sockaddr *address, unsigned length,
                                  rdma_sim_route *route) {
    Address peer = {};
    int protocol = 0;
    socklen_t size = sizeof(protocol), peer_size = sizeof(peer);
    *route = {};
    if (settings().host == 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 ||
        (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP))
        return false;
    if (address == nullptr ? REAL(getpeername)(fd, &peer.any, &peer_size) != 0
                           : !to_loopback(peer, address, length))
        return false;
    route->from = settings().host;
    route->to = host_of(peer);
    route->is_stream = protocol == IPPROTO_TCP;
    if (route->to == 0 || route->to == route->from || route->to == ALL)
        return false;
    if (address != nullptr && !route->is_stream) {
        allow_mapped(fd, peer);
        bind_own(fd, peer);
        route->address_size = length < sizeof(route->address) ? length : sizeof(route->address);
        memcpy(route->address, &peer, route->address_size);
    }
    return true;
}

// rdma-sim starts the next program once this one listens.
EXPORTED int listen(int fd, int backlog) noexcept {
    const int result = REAL(listen)(fd, backlog);
    if (result == 0)
        report_listening();
    return result;
}
// Called by librdmacm.so.1 of the fabric, which a plugin may load with RTLD_LOCAL.
EXPORTED void rdma_sim_listens() {
    report_listening();
}
