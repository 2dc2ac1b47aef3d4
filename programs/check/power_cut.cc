// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// power_cut.cc -- the client that writes and flushes records, and the server with the memory

#include "power_cut.hh"

#include "device_description.hh"
#include "mapping.hh"
#include "wire.hh"

#include <array>
#include <poll.h>
#include <random>
#include <sys/mman.h>

namespace {

constexpr double INTERVAL_S = 0.5; // between lines of the ledger
constexpr int POLL_MS = 200;
constexpr double CONNECT_S = 10;
// The loss of the server is noticed after seconds. A retry count of 7 has no limit on some
// devices. A device without these retries, such as siw, leaves a lost server to TCP.
constexpr int ACK_TIMEOUT_MS = 500, RETRIES = 3;
#ifndef CHECK_SILENCE_S // a test builds a program with another one
#define CHECK_SILENCE_S 60
#endif
constexpr int SILENCE_S = CHECK_SILENCE_S;

// Waits until a descriptor is readable, at most POLL_MS; a signal ends the wait.
void wait_for(std::span<pollfd> descriptors) {
    (void)poll(descriptors.data(), descriptors.size(), POLL_MS);
}

std::optional<rpma_conn_event> next_event(rpma::conn &conn, double limit) {
    pollfd descriptor = {conn.get_event_fd(), POLLIN, 0};
    for (const Clock clock; !is_stopping() && clock.seconds() < limit;) {
        wait_for({&descriptor, 1});
        if (descriptor.revents != 0)
            return conn.next_event();
    }
    return std::nullopt;
}

// ---- the client ----------------------------------------------------------------------------

struct Stream {
    uint64_t index = 0;
    rpma::conn conn;
    uint64_t posted = 0, done = 0;
    uint64_t listed = 0, bound = 0; // of the last line in the ledger
};

class Writer {
  public:
    Writer(const Options &options, rpma::peer &peer);

    void run(Ledger &ledger);
    uint64_t done() const;

    const Options &options;
    rpma::peer &peer;
    Rings rings;
    std::string reason; // of the loss of the server

  private:
    void connect(Stream &stream, unsigned client);
    void post(Stream &stream);
    bool take_completions(Stream &stream);
    void list(Ledger &ledger);
    void wait();

    std::array<Stream, STREAMS> streams_;
    std::vector<std::array<std::byte, RECORD_SIZE>> buffers_;
    rpma::mr_local source_;
    rpma::mr_remote target_;
};

Writer::Writer(const Options &given, rpma::peer &device)
    : options(given), peer(device), buffers_(STREAMS * DEPTH),
      source_(peer, std::as_writable_bytes(std::span(buffers_)), RPMA_MR_USAGE_WRITE_SRC) {
    std::random_device random;
    const unsigned client = random();
    for (Stream &stream : streams_) {
        stream.index = static_cast<uint64_t>(&stream - streams_.data());
        connect(stream, client);
    }
    rings.run = uint64_t{random()} << 32 | random();
    rings.places = target_.get_size() / RECORD_SIZE / STREAMS;
    if (rings.places < PLACES_MIN)
        fail("{} port {} has too little memory", escaped(options.address), options.port);
}

void Writer::connect(Stream &stream, unsigned client) {
    const std::string where = fmt::format("{} port {}", escaped(options.address), options.port);
    rpma::conn_cfg cfg;
    cfg.set_sq_size(2 * DEPTH).set_cq_size(2 * DEPTH).set_rq_size(1);
    cfg.set_ack_timeout(ACK_TIMEOUT_MS).set_retry_count(RETRIES);
    try {
        stream.conn = rpma::conn_req(peer, options.address, options.port, cfg)
                          .connect(as_data(greeting(RECORDS, client)));
    } catch (const rpma::error &error) {
        fail("cannot connect to {}: {}", where, error.what());
    }
    const auto event = next_event(stream.conn, CONNECT_S);
    if (!event)
        fail("{}: {}", where, is_stopping() ? "interrupted" : "the server does not respond");
    expect_established(stream.conn, *event, where, true);
    rpma::received received;
    try {
        received = rpma::unpack(stream.conn.get_private_data());
    } catch (const rpma::error &) { // of another program
    }
    if (received.regions.size() != 1 || !received.pcfg)
        fail("{} is not rpma-check --server --power-cut", where);
    stream.conn.apply_remote_peer_cfg(*received.pcfg);
    target_ = std::move(received.regions[0]);
}

void Writer::post(Stream &stream) {
    const size_t slot = stream.index * DEPTH + stream.posted % DEPTH;
    const size_t place = rings.offset_of(stream.index, stream.posted);
    rings.write_record(buffers_[slot], stream.index, stream.posted);
    auto status = stream.conn.write(target_, place, source_, slot * RECORD_SIZE, RECORD_SIZE,
                                    options.no_flush ? RPMA_F_COMPLETION_ALWAYS
                                                     : RPMA_F_COMPLETION_ON_ERROR);
    if (!options.no_flush && status == rpma::status::ok)
        status = stream.conn.flush(target_, place, RECORD_SIZE, RPMA_FLUSH_TYPE_PERSISTENT,
                                   RPMA_F_COMPLETION_ALWAYS);
    stream.posted++; // a failed call may still have posted the write
    if (status != rpma::status::ok)
        reason = rpma_err_2str(static_cast<int>(status));
}

// The completions are in the order of the requests. Returns true if there were any.
bool Writer::take_completions(Stream &stream) {
    std::array<ibv_wc, DEPTH> wcs;
    int count = 0;
    const auto status = static_cast<rpma::status>(
        rpma_cq_get_wc(stream.conn.get_cq().get(), DEPTH, wcs.data(), &count));
    if (status != rpma::status::ok && status != rpma::status::no_completion)
        reason = rpma_err_2str(static_cast<int>(status));
    for (int i = 0; i < count && reason.empty(); i++)
        if (wcs[static_cast<size_t>(i)].status == IBV_WC_SUCCESS)
            stream.done++;
        else
            reason = ibv_wc_status_str(wcs[static_cast<size_t>(i)].status);
    return count > 0;
}

// Half a ring is more than DEPTH, so the new bound permits further records.
void Writer::list(Ledger &ledger) {
    for (const Stream &stream : streams_)
        if (stream.done != stream.listed || stream.bound == 0)
            ledger.add({stream.index, stream.done, stream.done + rings.places / 2});
    ledger.sync();
    for (Stream &stream : streams_) {
        stream.listed = stream.done;
        stream.bound = stream.done + rings.places / 2;
    }
}

void Writer::wait() {
    std::array<pollfd, STREAMS> descriptors{};
    for (const Stream &stream : streams_)
        descriptors.at(stream.index) = {rpma::cq_ref{stream.conn.get_cq()}.get_fd(), POLLIN, 0};
    wait_for(descriptors);
    for (Stream &stream : streams_)
        if (descriptors.at(stream.index).revents != 0)
            (void)stream.conn.get_cq().wait(); // takes the notification, requests the next one
}

// Writes until the server is lost, or a signal ends the program.
void Writer::run(Ledger &ledger) {
    double last_line = 0, last_completion = 0;
    list(ledger);
    for (const Clock clock; !is_stopping() && reason.empty();) {
        bool is_limited = false, is_idle = true;
        for (Stream &stream : streams_) {
            while (reason.empty() &&
                   stream.posted < std::min(stream.done + DEPTH, stream.bound))
                post(stream);
            if (reason.empty() && take_completions(stream)) {
                is_idle = false;
                last_completion = clock.seconds();
            }
            is_limited |= stream.posted == stream.bound;
        }
        if (is_limited || clock.seconds() > last_line + INTERVAL_S) {
            list(ledger);
            last_line = clock.seconds();
        }
        if (clock.seconds() > last_completion + SILENCE_S)
            reason = fmt::format("no completion for {} s", SILENCE_S);
        else if (is_idle)
            wait();
    }
    for (const Stream &stream : streams_)
        ledger.add({stream.index, stream.done, stream.posted});
    ledger.sync();
}

uint64_t Writer::done() const {
    uint64_t sum = 0;
    for (const Stream &stream : streams_)
        sum += stream.done;
    return sum;
}

// ---- the server ----------------------------------------------------------------------------

struct RecordServer {
    rpma::ep &ep;
    const rpma::packed data; // the private data of its connections
    unsigned client = 0;     // the client that has the memory
    std::vector<rpma::conn> conns{};

    void take_request();
    bool has_client_ended(std::span<const pollfd> descriptors);
    void serve();
};

void RecordServer::take_request() {
    std::optional<rpma::conn_req> request = ep.next_conn_req();
    if (!request)
        return;
    const Greeting other = greeting_of(request->get_private_data());
    if (other.is_ours && other.protocol != PROTOCOL)
        print_error(fmt::format("a client has version {} of the protocol, this server version "
                                "{}: install the same release on both machines",
                                other.protocol, PROTOCOL));
    if (!other.is_ours || other.protocol != PROTOCOL || other.kind != RECORDS ||
        conns.size() == STREAMS || (!conns.empty() && other.number != client))
        return std::move(*request).reject(as_data(greeting(RECORDS)));
    client = other.number;
    conns.push_back(std::move(*request).connect(data));
}

bool RecordServer::has_client_ended(std::span<const pollfd> descriptors) {
    for (size_t i = 0; i < conns.size(); i++)
        if (descriptors[i].revents != 0)
            if (const auto event = conns[i].next_event();
                event && *event != RPMA_CONN_ESTABLISHED)
                return true;
    return false;
}

void RecordServer::serve() {
    while (!is_stopping()) {
        std::vector<pollfd> descriptors = {{ep.get_fd(), POLLIN, 0}};
        for (const rpma::conn &conn : conns)
            descriptors.push_back({conn.get_event_fd(), POLLIN, 0});
        wait_for(descriptors);
        if (has_client_ended(std::span(descriptors).subspan(1))) {
            fmt::print("the client has ended\n");
            return;
        }
        if (descriptors[0].revents != 0)
            try {
                take_request();
            } catch (const rpma::error &error) { // the client has ended meanwhile
                print_error(error.what());
            }
    }
}

} // namespace

int write_records(const Options &options) {
    handle_stop_signals();
    rpma::peer peer = peer_of(options.address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    Writer writer(options, peer);
    Ledger ledger(options.power_cut, writer.rings);
    fmt::print("writing into the server's memory: cut the power of the server\n");
    (void)std::fflush(stdout);
    writer.run(ledger);
    fmt::print("{} records {}, listed in {}: {}\n", writer.done(),
               options.no_flush ? "written without a flush" : "flushed",
               one_line(options.power_cut),
               writer.reason.empty() ? "interrupted" : "the server is lost: " + writer.reason);
    return EXIT_AS_EXPECTED;
}

int serve_records(const Options &options) {
    handle_stop_signals();
    const Mapping memory = Mapping::map(options.power_cut, PROT_READ | PROT_WRITE);
    if (!memory.is_persistent())
        fail("{} {}", options.power_cut, NOT_PERSISTENT);
    const size_t least = STREAMS * PLACES_MIN * RECORD_SIZE;
    if (memory.size() < least)
        fail("{} has {} bytes; the check needs {} or more", options.power_cut, memory.size(),
             least);
    rpma::peer peer = peer_of(options.address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    rpma::mr_local mr(peer, memory.data(), memory.size(),
                      RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                          RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
    rpma::peer_cfg pcfg;
    pcfg.set_direct_write_to_pmem(true).set_served_by(peer); // the power cut tests it
    rpma::ep ep(peer, options.address, options.port);
    fmt::print("{} is overwritten by one client\n", one_line(options.power_cut));
    (void)std::fflush(stdout);
    RecordServer{ep, rpma::packed({mr}, pcfg.get())}.serve();
    return EXIT_AS_EXPECTED;
}
