// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// sockets.hh -- TCP and UDP between the hosts
//
// The programs have sockets of the kernel, on the loopback interface, which transfers bytes at
// once. Bytes that are late, or whose link is cut, wait here, with a duplicate of the sender's
// socket. As long as a duplicate exists, the end of a program sends no FIN or RST. The
// duplicates of the connections of a cut link are kept until the link is joined.

#pragma once

#include <deque>
#include <functional>
#include <span>
#include <string>

#include "../model/fabric.hh"

class Sockets {
  public:
    struct Owner {
        pid_t pid;
        int pidfd;
        unsigned host;
    };
    // Called when bytes arrive, or are lost.
    using Report = std::function<void(unsigned from, unsigned to, const std::string &what)>;

    Sockets(sim::Fabric &fabric, sim::VirtualClock &clock, Report report)
        : fabric_(fabric), clock_(clock), report_(std::move(report)) {}
    ~Sockets();
    Sockets(const Sockets &) = delete;
    Sockets &operator=(const Sockets &) = delete;

    // Decides about bytes that the owner sends `delay` nanoseconds late.
    sim::Transmit::Verdict transmit(const Owner &owner, const sim::Transmit &request,
                                    std::string data, uint64_t delay);
    void links_changed(std::span<const Owner> owners);
    // The connections of the host no longer exist, which it does not report to its peers.
    void lose_power(unsigned host);
    // Transfers what can arrive now. Returns true if a program may notice it.
    bool deliver();
    // Waits until the kernel has transferred all bytes that it can. Returns true if there were
    // some.
    static bool settle(std::span<const Owner> owners);
    // The time of the next timeout, or UINT64_MAX.
    uint64_t next_timeout() const;

  private:
    struct Segment {
        std::string data;
        uint64_t sent_at, arrives_at;
    };
    struct Stream { // the bytes from one end of a connection
        pid_t pid;
        uint64_t inode;
        int socket;
        unsigned from, to;
        std::deque<Segment> segments{};
        size_t bytes = 0;
        bool ends = false; // by shutdown(), after the segments
    };
    struct Datagram {
        int socket;
        unsigned from, to;
        uint64_t arrives_at;
        std::string address, data;
    };
    struct Kept { // of a connection whose packets do not arrive at the peer
        uint64_t inode;
        int socket;
        unsigned host, peer;
        bool has_lost_power = false;
    };

    bool is_reachable(unsigned from, unsigned to) const {
        return clock_.unreachable[from][to] == 0;
    }
    bool loses_power_before(int socket, unsigned host);
    bool deliver(Stream &stream);
    bool deliver(const Datagram &datagram);
    uint64_t timeout_of(const Stream &stream) const; // UINT64_MAX: it has none
    void time_out(const Stream &stream);
    void keep_connections(const Owner &owner);
    sim::Transmit::Verdict transmit_datagram(const Owner &owner, const sim::Transmit &request,
                                             std::string data, uint64_t delay);

    sim::Fabric &fabric_;
    sim::VirtualClock &clock_;
    const Report report_;
    std::deque<Stream> streams_;
    std::deque<Datagram> datagrams_;
    std::deque<Kept> kept_;
};
