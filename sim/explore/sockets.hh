// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// sockets.hh -- TCP and UDP between the hosts
//
// The programs have sockets of the kernel, on the loopback interface, which transfers bytes at
// once. Bytes that are late, or whose link is cut, wait here, with a duplicate of the sender's
// socket. As long as a duplicate exists, the end of a program sends no FIN or RST. The
// duplicates of the connections of a cut link are kept until the link is joined. A connection
// takes WINDOW bytes that its receiver has not read, which the kernel always has room for: the
// number that the kernel takes depends on the moments at which it transfers them.

#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

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

    // loopback: the network of the programs on the loopback interface.
    Sockets(sim::Fabric &fabric, sim::VirtualClock &clock, uint32_t loopback, Report report,
            std::function<std::vector<Owner>()> owners)
        : fabric_(fabric), clock_(clock), loopback_(loopback), report_(std::move(report)),
          owners_(std::move(owners)) {}
    ~Sockets();
    Sockets(const Sockets &) = delete;
    Sockets &operator=(const Sockets &) = delete;

    // Decides about bytes that the owner sends `delay` nanoseconds late.
    sim::Transmit::Verdict transmit(const Owner &owner, const sim::Transmit &request,
                                    std::string data, uint64_t delay);
    void links_changed();
    // The connections of the host no longer exist, which it does not report to its peers.
    void lose_power(unsigned host);
    // Transfers what can arrive now. Returns true if a program may notice it.
    bool deliver();
    // Waits until the kernel has transferred all bytes that it can. Returns true if there were
    // some.
    bool settle() const;
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
    struct Window { // of a Stream, for WINDOW bytes
        uint64_t inode;
        size_t room;
        bool was_accepted = false;
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
    void look(Window &window, int socket, unsigned to) const;
    bool takes(const Owner &owner, const sim::Transmit &request, size_t bytes);
    Window &window_of(uint64_t inode);
    bool deliver(Stream &stream);
    bool deliver(const Datagram &datagram);
    uint64_t timeout_of(const Stream &stream) const; // UINT64_MAX: it has none
    void time_out(const Stream &stream);
    void keep_connections(const Owner &owner);
    sim::Transmit::Verdict transmit_datagram(const Owner &owner, const sim::Transmit &request,
                                             std::string data, uint64_t delay);

    sim::Fabric &fabric_;
    sim::VirtualClock &clock_;
    const uint32_t loopback_;
    const Report report_;
    const std::function<std::vector<Owner>()> owners_; // the processes that run
    std::deque<Stream> streams_;
    std::vector<Window> windows_;
    std::deque<Datagram> datagrams_;
    std::deque<Kept> kept_;
};
