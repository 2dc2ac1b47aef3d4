// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "sockets.hh"

#include "../model/faults.hh"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// Linux 6.1, net/ipv4/tcp_timer.c, retransmits_timed_out(): with tcp_retries2 = 15, a segment
// that is not acknowledged for so long ends the connection.
constexpr uint64_t RETRANSMISSION_TIME = 924'600'000'000;
constexpr uint64_t REORDERED = 1'000'000; // nanoseconds by which later datagrams pass one
constexpr size_t BUFFER = 4 << 20;        // net.ipv4.tcp_wmem
constexpr uint8_t ESTABLISHED = 1;        // linux net/tcp_states.h
constexpr size_t WINDOW = 128 << 10;      // ../client/preload/descriptors.cc: fix_buffers()

// Returns a duplicate of a descriptor of another process, or -1.
int duplicate(const Sockets::Owner &owner, int fd) {
    static bool is_reported;
    const auto found = static_cast<int>(syscall(SYS_pidfd_getfd, owner.pidfd, fd, 0));
    if (found < 0 && (errno == EPERM || errno == ENOSYS) && !is_reported) {
        is_reported = true;
        fprintf(stderr,
                "rdma-sim: faults and delays do not reach TCP and UDP: pidfd_getfd: %s\n",
                strerror(errno));
    }
    return found;
}

union Address {
    sockaddr any;
    sockaddr_in ip4;
    sockaddr_in6 ip6;
    bool operator==(const Address &other) const {
        return any.sa_family == other.any.sa_family &&
               (any.sa_family == AF_INET
                    ? memcmp(&ip4, &other.ip4, offsetof(sockaddr_in, sin_zero)) == 0
                    : memcmp(&ip6, &other.ip6, sizeof(ip6)) == 0);
    }
};

// An address of a connection of TCP. The IPv4 address, if it is mapped to IPv6.
bool get_address(int fd, bool is_peer, Address &address) {
    socklen_t size = sizeof(address);
    address = {};
    if ((is_peer ? getpeername : getsockname)(fd, &address.any, &size) != 0)
        return false;
    if (address.any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&address.ip6.sin6_addr)) {
        Address mapped = {};
        mapped.ip4.sin_family = AF_INET;
        mapped.ip4.sin_port = address.ip6.sin6_port;
        memcpy(&mapped.ip4.sin_addr, address.ip6.sin6_addr.s6_addr + 12,
               sizeof(mapped.ip4.sin_addr));
        address = mapped;
    }
    return address.any.sa_family == AF_INET;
}

// Returns 0 for an address outside the fabric.
unsigned host_of(const Address &address, uint32_t loopback) {
    const uint32_t ip = ntohl(address.ip4.sin_addr.s_addr);
    const unsigned host = ip & ~sim::LOOPBACK_MASK;
    return (ip & sim::LOOPBACK_MASK) == loopback && host <= sim::MAX_HOSTS ? host : 0;
}

int protocol_of(int fd) {
    int protocol = 0;
    socklen_t size = sizeof(protocol);
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 ? protocol : 0;
}

bool listens(int fd) {
    int value = 0;
    socklen_t size = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value != 0;
}

uint64_t inode_of(int fd) {
    struct stat status {};
    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// The two sockets are the ends of a connection.
bool are_connected(int a, int b) {
    Address own, peer, its_own, its_peer;
    return get_address(a, false, own) && get_address(a, true, peer) &&
           get_address(b, false, its_own) && get_address(b, true, its_peer) &&
           its_own == peer && its_peer == own;
}

tcp_info state_of(int fd) {
    tcp_info state{};
    socklen_t size = sizeof(state);
    (void)getsockopt(fd, IPPROTO_TCP, TCP_INFO, &state, &size);
    return state;
}

std::string count(size_t bytes, const char *protocol) {
    return std::to_string(bytes) + " bytes by " + protocol;
}

// Calls the function with a duplicate of each socket of TCP of a process, and with the host of
// the peer, or its own one if the socket listens and can have connections. The function returns
// true if it keeps the duplicate.
template <class Function>
void for_each_connection(uint32_t loopback, const Sockets::Owner &owner, Function function) {
    const std::string path = "/proc/" + std::to_string(owner.pid) + "/fd";
    DIR *const directory = opendir(path.c_str());
    if (directory == nullptr)
        return;
    while (const dirent *const entry = readdir(directory)) {
        char target[64] = "";
        Address peer;
        if (readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1) < 0 ||
            strncmp(target, "socket:", 7) != 0)
            continue;
        const int socket = duplicate(owner, atoi(entry->d_name));
        if (socket < 0)
            continue;
        const bool is_tcp = protocol_of(socket) == IPPROTO_TCP;
        const unsigned host = !is_tcp                           ? 0
                              : get_address(socket, true, peer) ? host_of(peer, loopback)
                              : listens(socket)                 ? owner.host
                                                                : 0;
        if (host == 0 || !function(socket, host))
            close(socket);
    }
    closedir(directory);
}

} // namespace

Sockets::~Sockets() {
    for (const Stream &each : streams_)
        close(each.socket);
    for (const Datagram &each : datagrams_)
        close(each.socket);
    for (const Kept &each : kept_)
        close(each.socket);
}

sim::Transmit::Verdict Sockets::transmit_datagram(const Owner &owner,
                                                  const sim::Transmit &request,
                                                  std::string data, uint64_t delay) {
    using enum sim::Transmit::Verdict;
    const std::string what = count(data.size(), "UDP");
    const sim::Fate fate = fabric_.fate_of_datagram(owner.host);
    if (fate == sim::Fate::LOST || !is_reachable(owner.host, request.host)) {
        report_(owner.host, request.host, what + " are lost");
        return TAKEN;
    }
    if (fate == sim::Fate::LATE)
        delay = std::max(delay, REORDERED);
    const int socket = delay == 0 ? -1 : duplicate(owner, request.socket);
    if (socket < 0) {
        for (unsigned i = 0; i <= (fate == sim::Fate::REPEATED); i++)
            report_(owner.host, request.host, what + " arrive");
        return fate == sim::Fate::REPEATED ? SEND_TWICE : SEND;
    }
    const uint64_t time = fabric_.now() + delay;
    datagrams_.push_back(
        {socket, owner.host, request.host, time,
         std::string(reinterpret_cast<const char *>(request.address), request.address_size),
         std::move(data)});
    fabric_.at(time, [] {}); // for the next deliver()
    return TAKEN;
}

Sockets::Window &Sockets::window_of(uint64_t inode) {
    const auto found = std::ranges::find(windows_, inode, &Window::inode);
    return found != windows_.end() ? *found : windows_.emplace_back(Window{inode, WINDOW});
}

// Finds out how many bytes the receiver has read.
void Sockets::look(Window &window, int socket, unsigned to) const {
    const tcp_info sender = state_of(socket);
    const uint64_t written =
        sender.tcpi_bytes_sent - sender.tcpi_bytes_retrans + sender.tcpi_notsent_bytes;
    uint64_t read = 0;
    bool is_open = false;
    for (const Owner &owner : owners_())
        if (owner.host == to && !is_open)
            for_each_connection(loopback_, owner, [&](int receiver, unsigned) {
                int unread = 0;
                if (!is_open && are_connected(socket, receiver) &&
                    ioctl(receiver, FIONREAD, &unread) == 0) {
                    read =
                        state_of(receiver).tcpi_bytes_received - static_cast<unsigned>(unread);
                    is_open = true;
                }
                return false;
            });
    window.was_accepted |= is_open;
    // The kernel answers for a receiver that has closed the connection.
    const bool is_closed =
        !is_open && (window.was_accepted || sender.tcpi_state != ESTABLISHED);
    const uint64_t unread = written - std::min(read, written);
    window.room = is_closed ? SIZE_MAX : WINDOW - std::min<uint64_t>(unread, WINDOW);
}

// Returns true if the sender's socket takes all of the bytes.
bool Sockets::takes(const Owner &owner, const sim::Transmit &request, size_t bytes) {
    Window &window = window_of(request.inode);
    if (window.room < bytes) {
        const int socket = duplicate(owner, request.socket);
        if (socket < 0)
            return true;
        look(window, socket, request.host);
        close(socket);
    }
    const bool takes = window.room >= bytes;
    if (takes)
        window.room -= bytes;
    return takes;
}

sim::Transmit::Verdict Sockets::transmit(const Owner &owner, const sim::Transmit &request,
                                         std::string data, uint64_t delay) {
    using enum sim::Transmit::Verdict;
    if (request.is_stream == 0)
        return transmit_datagram(owner, request, std::move(data), delay);
    auto stream = std::ranges::find(streams_, request.inode, &Stream::inode);
    const bool is_direct = stream == streams_.end() && delay == 0 &&
                           is_reachable(owner.host, request.host) &&
                           std::ranges::none_of(kept_, [&](const Kept &each) {
                               return each.has_lost_power && each.host == request.host;
                           });
    const int socket =
        is_direct || stream != streams_.end() ? -1 : duplicate(owner, request.socket);
    if (stream == streams_.end() && socket < 0) {
        if (request.waits != 0 && !takes(owner, request, data.size()))
            return FULL;
        if (!data.empty())
            report_(owner.host, request.host, count(data.size(), "TCP") + " arrive");
        return SEND;
    }
    if (stream == streams_.end()) {
        streams_.push_back({owner.pid, request.inode, socket, owner.host, request.host});
        stream = streams_.end() - 1;
    }
    if (stream->bytes + data.size() > BUFFER)
        return FULL;
    stream->bytes += data.size();
    stream->ends |= request.ends != 0;
    const uint64_t now = fabric_.now();
    if (!data.empty())
        stream->segments.push_back({std::move(data), now, now + delay});
    fabric_.at(now + delay, [] {}); // for the next deliver()
    return TAKEN;
}

// A connection of a host that has lost its power since: its peer gets an RST for its bytes.
bool Sockets::loses_power_before(int socket, unsigned host) {
    for (auto each = kept_.begin(); each != kept_.end(); each++) {
        if (!each->has_lost_power || each->host != host || !are_connected(socket, each->socket))
            continue;
        const linger reset = {1, 0};
        (void)setsockopt(each->socket, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(each->socket);
        kept_.erase(each);
        return true;
    }
    return false;
}

// Returns true if nothing is left.
bool Sockets::deliver(Stream &stream) {
    if (!is_reachable(stream.from, stream.to))
        return false;
    if (!stream.segments.empty() && stream.segments.front().arrives_at <= fabric_.now() &&
        loses_power_before(stream.socket, stream.to)) {
        report_(stream.to, stream.from, "RST of TCP arrives");
        return true;
    }
    while (!stream.segments.empty()) {
        Segment &segment = stream.segments.front();
        if (segment.arrives_at > fabric_.now())
            return false;
        Window &window = window_of(stream.inode);
        if (window.room < segment.data.size())
            look(window, stream.socket, stream.to);
        if (pollfd state = {stream.socket, 0, 0};
            poll(&state, 1, 0) > 0 && (state.revents & POLLERR) != 0) {
            report_(stream.to, stream.from, "RST of TCP arrives");
            return true; // send() would take the error that the program gets
        }
        const size_t taken = std::min(window.room, segment.data.size());
        if (taken == 0)
            return false; // the receiver does not read
        const ssize_t sent =
            send(stream.socket, segment.data.data(), taken, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0)
            return errno != EAGAIN; // the receiver has ended
        report_(stream.from, stream.to, count(static_cast<size_t>(sent), "TCP") + " arrive");
        window.room -= static_cast<size_t>(sent);
        stream.bytes -= static_cast<size_t>(sent);
        if (static_cast<size_t>(sent) < segment.data.size()) {
            segment.data.erase(0, static_cast<size_t>(sent));
            return false;
        }
        stream.segments.pop_front();
    }
    if (stream.ends)
        (void)shutdown(stream.socket, SHUT_WR);
    return true;
}

bool Sockets::deliver(const Datagram &datagram) {
    if (datagram.arrives_at > fabric_.now())
        return false;
    const bool arrives = is_reachable(datagram.from, datagram.to);
    if (arrives)
        (void)sendto(datagram.socket, datagram.data.data(), datagram.data.size(),
                     MSG_DONTWAIT | MSG_NOSIGNAL,
                     datagram.address.empty()
                         ? nullptr
                         : reinterpret_cast<const sockaddr *>(datagram.address.data()),
                     static_cast<socklen_t>(datagram.address.size()));
    report_(datagram.from, datagram.to,
            count(datagram.data.size(), "UDP") + (arrives ? " arrive" : " are lost"));
    return true;
}

// A program that has ended does not notice it.
uint64_t Sockets::timeout_of(const Stream &stream) const {
    return stream.segments.empty() || is_reachable(stream.from, stream.to) ||
                   kill(stream.pid, 0) != 0
               ? UINT64_MAX
               : stream.segments.front().sent_at + RETRANSMISSION_TIME;
}

// The program gets ETIMEDOUT: ../client/preload/descriptors.cc. The kernel also sends an RST,
// although it would not arrive: its receiver would wait forever otherwise.
void Sockets::time_out(const Stream &stream) {
    const sockaddr none = {AF_UNSPEC, {}};
    clock_.timed_out[clock_.timeouts++ % sim::VirtualClock::TIMEOUTS] = stream.inode;
    (void)connect(stream.socket, &none, sizeof(none));
    report_(stream.from, stream.to, "TCP connection times out");
}

bool Sockets::deliver() {
    const size_t before = streams_.size() + datagrams_.size();
    size_t bytes = 0, bytes_after = 0;
    for (const Stream &each : streams_)
        bytes += each.bytes;
    std::erase_if(streams_, [&](Stream &stream) {
        const bool is_late = timeout_of(stream) <= fabric_.now();
        if (is_late)
            time_out(stream);
        const bool is_done = is_late || deliver(stream);
        if (is_done)
            close(stream.socket);
        return is_done;
    });
    std::erase_if(datagrams_, [&](const Datagram &datagram) {
        const bool is_done = deliver(datagram);
        if (is_done)
            close(datagram.socket);
        return is_done;
    });
    for (const Stream &each : streams_)
        bytes_after += each.bytes;
    return streams_.size() + datagrams_.size() != before || bytes_after != bytes;
}

uint64_t Sockets::next_timeout() const {
    uint64_t next = UINT64_MAX;
    for (const Stream &each : streams_)
        next = std::min(next, timeout_of(each));
    return next;
}

// Keeps the connections of a process whose packets do not arrive at the peer.
void Sockets::keep_connections(const Owner &owner) {
    for_each_connection(loopback_, owner, [&](int socket, unsigned host) {
        const uint64_t inode = inode_of(socket);
        if (is_reachable(owner.host, host) ||
            std::ranges::find(kept_, inode, &Kept::inode) != kept_.end())
            return false;
        kept_.push_back({inode, socket, owner.host, host});
        return true;
    });
}

bool Sockets::settle() const {
    constexpr int TRIES = 100;
    const auto unsent = [&] {
        int64_t sum = 0;
        for (const Owner &owner : owners_())
            for_each_connection(loopback_, owner, [&](int socket, unsigned) {
                int bytes = 0;
                if (ioctl(socket, SIOCOUTQNSD, &bytes) == 0)
                    sum += bytes;
                return false;
            });
        return sum;
    };
    const int64_t before = unsent();
    for (int i = 0; before != 0 && i < TRIES; i++, usleep(1000))
        if (unsent() != before)
            return true;
    return false;
}

void Sockets::links_changed() {
    bool has_cut = false;
    const auto &hosts = fabric_.hosts();
    for (const auto &from : hosts)
        for (const auto &to : hosts) {
            uint8_t &is_cut = clock_.unreachable[from->number][to->number];
            is_cut =
                from == to ? !from->has_power : !fabric_.reachable(from->number, to->number);
            has_cut |= is_cut != 0;
        }
    std::erase_if(kept_, [&](const Kept &each) {
        const bool is_joined = !each.has_lost_power && is_reachable(each.host, each.peer);
        if (is_joined)
            close(each.socket);
        return is_joined;
    });
    if (has_cut)
        for (const Owner &owner : owners_())
            keep_connections(owner);
}

void Sockets::lose_power(unsigned host) {
    for (Kept &each : kept_)
        each.has_lost_power |= each.host == host && each.peer != host;
    std::erase_if(streams_, [&](const Stream &each) {
        if (each.from == host)
            close(each.socket);
        return each.from == host;
    });
}
