// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// wire.cc -- memory, waits and connections that both sides use

#include "wire.hh"

#include "nonblocking.hh"

#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

// ---- waiting -----------------------------------------------------------------------------

static volatile sig_atomic_t stopping;

// Without SA_RESTART, a signal ends a wait.
void handle_stop_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { stopping = 1; };
    for (const int number : {SIGINT, SIGTERM, SIGHUP})
        (void)sigaction(number, &action, nullptr);
}

bool is_stopping() {
    return stopping != 0;
}

void check_stopping() {
    if (is_stopping())
        throw Interrupted("interrupted; there is no report");
}

static uint64_t now_ns() {
    timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 +
           static_cast<uint64_t>(time.tv_nsec);
}

Clock::Clock() : begin_(now_ns()) {}

double Clock::seconds() const {
    return static_cast<double>(now_ns() - begin_) / 1e9;
}

// Polls fast at first: most results need microseconds.
bool Clock::wait(double limit) const {
    check_stopping();
    const timespec moment = {0, seconds() < 0.005 ? 20000 : 500000};
    (void)nanosleep(&moment, nullptr);
    return seconds() < limit;
}

// ---- objects -----------------------------------------------------------------------------

Memory::Memory(rpma::peer &peer, size_t size)
    : bytes(static_cast<std::byte *>(std::aligned_alloc(4096, size)), std::free) {
    if (!bytes)
        throw std::bad_alloc();
    std::memset(bytes.get(), 0, size);
    try {
        mr = rpma::mr_local(peer, bytes.get(), size, USAGE | RPMA_MR_USAGE_ATOMIC);
    } catch (const rpma::error &error) { // the device has no atomics
        if (error.code() != rpma::status::nosupp)
            throw;
        mr = rpma::mr_local(peer, bytes.get(), size, USAGE);
    }
}

std::string port_of(const sockaddr_storage &address) {
    const auto &in = reinterpret_cast<const sockaddr_in &>(address); // the same offset in IPv6
    return std::to_string(ntohs(in.sin_port));
}

std::string address_of(const sockaddr_storage &address) {
    char digits[INET6_ADDRSTRLEN] = "";
    if (address.ss_family == AF_INET)
        (void)inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in &>(address).sin_addr,
                        digits, sizeof(digits));
    else if (address.ss_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6 &>(address).sin6_addr,
                        digits, sizeof(digits));
    return digits;
}

std::string to_hex(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte each : bytes)
        text += fmt::format("{:02x}", std::to_integer<unsigned>(each));
    return text;
}

std::vector<std::byte> from_hex(const std::string &text) {
    std::vector<std::byte> bytes(text.size() / 2);
    for (size_t i = 0; i < bytes.size(); i++)
        bytes[i] =
            static_cast<std::byte>(std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
    return bytes;
}

std::string greeting(std::string_view kind, unsigned number) {
    return fmt::format("rpma-check {} {} {} ", PROTOCOL, kind, number);
}

Greeting greeting_of(std::span<const std::byte> data) {
    const std::string text(reinterpret_cast<const char *>(data.data()), data.size());
    char kind[16] = "";
    Greeting found;
    found.is_ours = std::sscanf(text.c_str(), "rpma-check %9u %15s %9u", &found.protocol, kind,
                                &found.number) >= 1;
    found.kind = kind;
    return found;
}

rpma::conn_cfg cfg_of(const Json &settings) {
    rpma::conn_cfg cfg;
    const auto value = [&](const char *key, auto other) {
        return settings.is_null() ? other : settings.value(key, other);
    };
    cfg.set_timeout(5000)
        .set_sq_size(value("sq", 16U))
        .set_rq_size(value("rq", 16U))
        .set_cq_size(value("cq", value("sq", 16U) + value("rq", 16U)))
        .set_max_sge(value("sge", 1U))
        .set_inline_size(value("inline", 8U))
        .set_rnr_retry_count(value("rnr", 6U))
        .set_retry_count(value("retry", 6U))
        .set_ack_timeout(value("ack_ms", 500))
        .set_compl_channel(value("shared", false))
        .set_rcq_size(value("rcq", 0U));
    if (settings.contains("rnr_ms"))
        cfg.set_rnr_timer(value("rnr_ms", 10));
    return cfg;
}

std::string event_name(rpma_conn_event event) {
    const std::string name = rpma_utils_conn_event_2str(event);
    return name.substr(name.starts_with("Connection ") ? 11 : 0);
}

std::string status_name(ibv_wc_status status) {
    return ibv_wc_status_str(status);
}

std::string code_name(rpma::status status) {
    return status == rpma::status::ok ? "ok" : rpma_err_2str(static_cast<int>(status));
}

Connection::Connection(rpma::peer &device, const Json &chosen)
    : settings(chosen.is_null() ? Json::object() : chosen), peer(device), memory(device),
      cfg(cfg_of(chosen)) {
    if (!settings.value("srq", false))
        return;
    srq = rpma::srq(peer);
    cfg.set_srq(srq);
}

rpma::status Connection::receive(size_t offset, size_t size) {
    return srq.get() != nullptr ? srq.recv(memory.mr, offset, size)
                                : conn.recv(memory.mr, offset, size);
}

void Connection::set_up(rpma::conn_req &request) {
    request.setup(cfg);
    for (unsigned i = 0; i < settings.value("receives", 0U); i++)
        rpma::check(srq.get() != nullptr
                        ? srq.recv(memory.mr, 64 * (i % 1024), 64)
                        : request.recv(memory.mr, 64 * (i % 1024), 64, memory.at(64 * i)));
}

void Connection::establish(rpma::conn_req &&request, std::span<const std::byte> data) {
    set_up(request);
    conn = std::move(request).connect(data);
}

std::string Connection::event(double limit) {
    make_nonblocking(conn.get_event_fd());
    for (const Clock clock;;) {
        try {
            if (const auto found = conn.next_event())
                return event_name(*found);
        } catch (const rpma::error &error) {
            if (error.code() != rpma::status::unknown) // an event without a name
                throw;
        }
        if (!clock.wait(limit))
            throw Late("no event");
    }
}

static std::vector<ibv_wc> take_from(rpma::cq_ref cq, size_t count, double limit) {
    std::vector<ibv_wc> found;
    for (const Clock clock; found.size() < count;) {
        ibv_wc wc{};
        const rpma::status status = cq.get_wc(wc);
        if (status == rpma::status::ok)
            found.push_back(wc);
        else if (status != rpma::status::no_completion)
            rpma::check(status);
        else if (!clock.wait(limit))
            break;
    }
    return found;
}

std::vector<ibv_wc> Connection::take(size_t count, double limit) {
    return take_from(conn.get_cq(), count, limit);
}

std::vector<ibv_wc> Connection::take_received(size_t count, double limit) {
    return take_from(srq.get() != nullptr && srq.get_rcq() ? *srq.get_rcq()
                     : conn.get_rcq()                      ? *conn.get_rcq()
                                                           : conn.get_cq(),
                     count, limit);
}

// ---- control messages --------------------------------------------------------------------

static std::string refusal_of(const Greeting &server, bool is_of_records) {
    if (!server.is_ours)
        return "the connection is refused: no rpma-check --server listens there";
    if (server.protocol != PROTOCOL)
        return fmt::format("the server has version {} of the protocol, this program version "
                           "{}: install the same release on both machines",
                           server.protocol, PROTOCOL);
    if (is_of_records != (server.kind == RECORDS))
        return fmt::format("the server was started {} --power-cut: start both sides with it, "
                           "or both without it",
                           is_of_records ? "without" : "with");
    return "the server serves another client: try again later";
}

void expect_established(const rpma::conn &conn, rpma_conn_event event, const std::string &where,
                        bool is_of_records) {
    if (event == RPMA_CONN_REJECTED)
        fail("{}: {}", where, refusal_of(greeting_of(conn.get_private_data()), is_of_records));
    if (event != RPMA_CONN_ESTABLISHED)
        fail("cannot connect to {}: the other side is {}", where, event_name(event));
}

Channel::Channel(rpma::peer &peer, const std::string &address, const std::string &port)
    : memory_(peer, 2 * MESSAGE_MAX) {
    const rpma::conn_cfg cfg = cfg_of({});
    const std::string where = fmt::format("{} port {}", escaped(address), port);
    try {
        rpma::conn_req request(peer, address, port, cfg);
        rpma::check(request.recv(memory_.mr, 0, MESSAGE_MAX));
        conn = std::move(request).connect(as_data(greeting("control")));
    } catch (const rpma::error &error) {
        fail("cannot connect to {}: {}", where, error.what());
    }
    make_nonblocking(conn.get_event_fd());
    std::optional<rpma_conn_event> event;
    for (const Clock clock; !(event = conn.next_event());)
        if (!clock.wait(10))
            fail("{} does not respond: is rpma-check --server running there?", where);
    expect_established(conn, *event, where, false);
}

Channel::Channel(rpma::peer &peer, rpma::conn_req &&incoming) : memory_(peer, 2 * MESSAGE_MAX) {
    const rpma::conn_cfg cfg = cfg_of({});
    incoming.setup(cfg);
    rpma::check(incoming.recv(memory_.mr, 0, MESSAGE_MAX));
    conn = std::move(incoming).connect(as_data(greeting("control")));
    make_nonblocking(conn.get_event_fd());
}

bool Channel::poll() {
    ibv_wc wc{};
    while (conn.get_cq().get_wc(wc) == rpma::status::ok) {
        if (wc.status != IBV_WC_SUCCESS)
            throw Lost("the other side has ended");
        if (wc.opcode == IBV_WC_RECV)
            size_ = wc.byte_len;
    }
    if (size_ > 0)
        return true;
    const auto event = conn.next_event();
    if (event && *event != RPMA_CONN_ESTABLISHED)
        throw Lost("the other side has ended");
    return false;
}

Json Channel::take() {
    const std::string text(memory_.at(0), std::min(size_, MESSAGE_MAX));
    size_ = 0;
    if (conn.recv(memory_.mr, 0, MESSAGE_MAX) != rpma::status::ok)
        throw Lost("the other side has ended");
    try {
        return Json::parse(text);
    } catch (const Json::exception &) {
        throw Lost("the other side sends no message of rpma-check");
    }
}

void Channel::send(const Json &message) {
    const std::string text = message.dump();
    if (text.size() > MESSAGE_MAX)
        fail("a message has {} bytes", text.size());
    std::memcpy(memory_.at(MESSAGE_MAX), text.data(), text.size());
    if (conn.send(memory_.mr, MESSAGE_MAX, text.size(), RPMA_F_COMPLETION_ALWAYS) !=
        rpma::status::ok)
        throw Lost("the other side has ended");
}
