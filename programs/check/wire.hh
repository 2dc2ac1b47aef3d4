// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// wire.hh -- memory, waits and connections that both sides use

#pragma once

#include "check.hh"

#include <memory>
#include <optional>
#include <span>
#include <sys/socket.h>

#ifndef CHECK_PROTOCOL // a test builds a program with another one
#define CHECK_PROTOCOL 1
#endif
constexpr unsigned PROTOCOL = CHECK_PROTOCOL;

// ---- waiting -----------------------------------------------------------------------------

void handle_stop_signals(); // SIGINT, SIGTERM and SIGHUP end waits
bool is_stopping();         // after one of them
struct Interrupted : Failure {
    using Failure::Failure;
};
// Throws if is_stopping().
void check_stopping();

// The other side has ended, or does not respond.
struct Lost : Failure {
    using Failure::Failure;
};
// A step of a question had no result in time.
struct Late : Failure {
    using Failure::Failure;
};

class Clock {
  public:
    Clock();
    double seconds() const;
    // Sleeps for a moment; returns false after the limit.
    bool wait(double limit) const;

  private:
    uint64_t begin_;
};

// ---- objects -----------------------------------------------------------------------------

constexpr size_t MEMORY_SIZE = 65536;
constexpr int USAGE = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
                      RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND |
                      RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;

struct Memory {
    explicit Memory(rpma::peer &peer, size_t size = MEMORY_SIZE);

    std::unique_ptr<std::byte, void (*)(void *)> bytes;
    rpma::mr_local mr;

    char *at(size_t offset) const { return reinterpret_cast<char *>(bytes.get()) + offset; }
};

std::string port_of(const sockaddr_storage &address);
// Without a scope; "" if it is neither IPv4 nor IPv6.
std::string address_of(const sockaddr_storage &address);
std::string to_hex(std::span<const std::byte> bytes);
std::vector<std::byte> from_hex(const std::string &text);

// The private data of a connection: the program, the protocol, and the kind of connection.
// The number lets the server refuse a request of an earlier question.
std::string greeting(std::string_view kind, unsigned number = 0);
struct Greeting {
    bool is_ours = false;
    unsigned protocol = 0, number = 0;
    std::string kind;
};
Greeting greeting_of(std::span<const std::byte> data);
constexpr char RECORDS[] = "records"; // the kind of connections of --power-cut
inline std::span<const std::byte> as_data(const std::string &text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

// One connection for questions.
struct Connection {
    Connection(rpma::peer &device, const Json &settings);
    // Continues connecting, or accepts: settings of conn_cfg, receives, private data.
    void establish(rpma::conn_req &&request, std::span<const std::byte> data);
    void set_up(rpma::conn_req &request);
    // The next event; throws Late.
    std::string event(double limit = 10);
    // The completions of the main CQ, at most count; fewer if no other one comes in time.
    std::vector<ibv_wc> take(size_t count, double limit = 5);
    std::vector<ibv_wc> take_received(size_t count, double limit = 5);
    rpma::status receive(size_t offset, size_t size);

    Json settings;
    rpma::peer &peer;
    Memory memory;
    rpma::srq srq;
    rpma::conn_cfg cfg;
    rpma::conn conn;
    rpma::mr_remote remote;
    int number = -1; // of the server
};

// Creates the configuration of settings: "sq", "rq", "cq", "sge", "inline", "rnr", "rnr_ms",
// "retry", "ack_ms", "shared", "rcq".
rpma::conn_cfg cfg_of(const Json &settings);
std::string event_name(rpma_conn_event event);
std::string status_name(ibv_wc_status status);
std::string code_name(rpma::status status);

// Throws a Failure that names the cause, unless the connection is established.
void expect_established(const rpma::conn &conn, rpma_conn_event event, const std::string &where,
                        bool is_of_records);

// ---- control messages --------------------------------------------------------------------

constexpr size_t MESSAGE_MAX = 16384;

class Channel {
  public:
    // Connects; throws a Failure that names the cause.
    Channel(rpma::peer &peer, const std::string &address, const std::string &port);
    Channel(rpma::peer &peer, rpma::conn_req &&incoming);

    void send(const Json &message);
    // Waits for the next message, and meanwhile calls idle().
    template <class Idle> Json receive(double limit, Idle idle) {
        for (const Clock clock; !poll();) {
            idle();
            if (!clock.wait(limit))
                throw Lost("the other side does not respond");
        }
        return take();
    }
    rpma::conn conn;

  private:
    void establish(rpma::conn_req &&request);
    bool poll(); // returns true if a message has arrived
    Json take();
    void expect();

    Memory memory_; // the received message, and the one to send
    size_t size_ = 0;
};
