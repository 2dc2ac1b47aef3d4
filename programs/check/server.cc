// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.cc -- serves checks: one client at a time, command by command

#include "server.hh"

#include "../info/info.hh"
#include "device_description.hh"
#include "nonblocking.hh"
#include "wire.hh"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <poll.h>

namespace {

constexpr double ACCEPT_S = 8, IDLE_S = 180;

class Server {
  public:
    Server(const Options &parsed, Helper &forks);
    int serve();

  private:
    using Command = Json (Server::*)(const Json &);

    std::optional<rpma::conn_req> next_request();
    void check_client(rpma::conn_req &&request);
    void keep_requests();
    Json respond(const Json &command);
    Connection &connection(const Json &command);
    void use_path();
    std::span<std::byte> range(const Json &command, size_t size) const;

    Json hello(const Json &command);
    Json accept(const Json &command);
    Json close(const Json &command);
    Json peek(const Json &command);
    Json poke(const Json &command);
    Json receive(const Json &command);
    Json send(const Json &command);
    Json free_port(const Json &command);
    Json taken(const Json &command);
    Json fail_queue(const Json &command);
    Json add(const Json &command);
    Json watch(const Json &command);
    Json descriptors(const Json &command);
    Json victim(const Json &command);
    Json path(const Json &command);
    Json bye(const Json &command);

    const Options &options_;
    Helper &helper_;
    rpma::peer peer_;
    rpma::ep ep_;
    Memory target_; // the target of all connections
    std::optional<::memory> mapped_;
    rpma::mr_local mapped_mr_;
    std::string mapped_error_;
    std::optional<Channel> control_;
    std::deque<rpma::conn_req> waiting_;
    std::map<int, std::unique_ptr<Connection>> connections_;
    int last_number_ = 0;
    bool is_finished_ = false;
};

Server::Server(const Options &parsed, Helper &forks)
    : options_(parsed), helper_(forks),
      peer_(peer_of(parsed.address, RPMA_UTIL_IBV_CONTEXT_LOCAL)), target_(peer_) {
    try {
        ep_ = rpma::ep(peer_, options_.address, options_.port);
    } catch (const rpma::error &error) {
        fail("cannot listen on {} port {}: {}", escaped(options_.address), options_.port,
             error.what());
    }
    make_nonblocking(ep_.get_fd());
    if (!options_.memory.empty())
        use_path();
    fmt::print("rpma-check serves on {} port {}\n", escaped(options_.address), options_.port);
    (void)std::fflush(stdout);
}

void Server::use_path() {
    try {
        mapped_.emplace(options_.memory);
    } catch (const std::exception &why) {
        fail("{}", why.what());
    }
    if (mapped_->kind != MemoryKind::devdax && !mapped_->map_sync)
        fail("{} {}", escaped(options_.memory), NOT_PERSISTENT);
    try {
        mapped_mr_ = rpma::mr_local(peer_, mapped_->base, mapped_->mapped,
                                    USAGE | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
    } catch (const rpma::error &error) {
        mapped_error_ = code_name(static_cast<rpma::status>(error.code().value()));
    }
}

std::optional<rpma::conn_req> Server::next_request() {
    try {
        return ep_.next_incoming();
    } catch (const rpma::error &) { // of a client that has gone
        return std::nullopt;
    }
}

// Requests of other clients are refused, connections of this one are kept.
void Server::keep_requests() {
    while (auto request = next_request()) {
        const Greeting other = greeting_of(request->get_private_data());
        if (other.is_ours && other.protocol == PROTOCOL && other.kind == "data")
            waiting_.push_back(std::move(*request));
        else
            std::move(*request).reject(as_data(greeting("busy")));
    }
}

Json Server::hello(const Json &) {
    return {{"device", describe_device(peer_.get_ibv_pd()->context)}};
}

// Takes the next request. "how": accept, reject, drop; "after": seconds before that.
Json Server::accept(const Json &command) {
    const Json &settings = command.at("settings");
    const std::string how = settings.value("how", "accept");
    const Clock clock;
    const auto is_wanted = [&](const rpma::conn_req &request) {
        return greeting_of(request.get_private_data()).number == command.at("connection");
    };
    auto place = waiting_.end();
    for (;;) {
        keep_requests();
        place = std::ranges::find_if(waiting_, is_wanted);
        if (place != waiting_.end())
            break;
        if (!clock.wait(ACCEPT_S)) {
            waiting_.clear(); // of questions that failed
            return {{"error", "no request of the client arrives"}};
        }
    }
    for (const Clock pause; pause.wait(std::min(settings.value("after", 0.0), ACCEPT_S));)
        ;
    rpma::conn_req request = std::move(*place);
    waiting_.erase(place);
    const std::string filler(std::min(settings.value("reply", 0U), 255U), 'r');
    const size_t received = request.get_private_data().size();
    if (how == "reject") {
        std::move(request).reject(as_data(filler));
        return {{"private", received}};
    }
    if (how == "drop") {
        request.close();
        return {{"private", received}};
    }
    auto made = std::make_unique<Connection>(peer_, settings);
    made->establish(std::move(request), as_data(filler));
    if (settings.value("sends", false)) // before the client has read its event
        rpma::check(made->conn.send(made->memory.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS));
    const std::string event = made->event(ACCEPT_S);
    connections_[++last_number_] = std::move(made);
    return {{"private", received},
            {"event", event},
            {"number", last_number_},
            {"region",
             to_hex(rpma::packed({target_.mr.get()}, rpma::peer_cfg().set_served_by(peer_)))}};
}

Connection &Server::connection(const Json &command) {
    return *connections_.at(command.at("number"));
}

// "how": disconnect (the other side has disconnected, or this side begins), delete.
Json Server::close(const Json &command) {
    Connection &found = connection(command);
    Json result = {{"event", "none"}};
    try {
        if (command.value("first", false))
            found.conn.disconnect();
        if (command.value("waits", true))
            result["event"] = found.event(5);
        if (!command.value("first", false))
            found.conn.disconnect();
    } catch (const Late &) {
    }
    if (!command.value("keeps", false))
        connections_.erase(command.at("number").get<int>());
    return result;
}

// A client may send any numbers.
std::span<std::byte> Server::range(const Json &command, size_t size) const {
    const size_t offset = command.at("offset");
    if (offset > MEMORY_SIZE || size > MEMORY_SIZE - offset || size > MESSAGE_MAX / 4)
        throw std::out_of_range("the memory ends before that");
    return {target_.bytes.get() + offset, size};
}

Json Server::peek(const Json &command) {
    return {{"bytes", to_hex(range(command, command.at("size")))}};
}

Json Server::poke(const Json &command) {
    const auto bytes = from_hex(command.at("bytes"));
    std::ranges::copy(bytes, range(command, bytes.size()).begin());
    return Json::object();
}

Json Server::receive(const Json &command) {
    Connection &found = connection(command);
    for (unsigned i = 0; i < command.at("count"); i++)
        if (const rpma::status status = found.receive(64 * (i % 1024), 64);
            status != rpma::status::ok)
            return {{"status", code_name(status)}, {"posted", i}};
    return {{"status", "ok"}, {"posted", command.at("count")}};
}

Json Server::send(const Json &command) {
    Connection &found = connection(command);
    rpma::check(found.conn.send(found.memory.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS));
    return {{"completions", found.take(1).size()}};
}

// A port without a listener.
Json Server::free_port(const Json &) {
    const rpma::ep other(peer_, options_.address, "0");
    return {{"port", port_of(other.get_addr())}};
}

// Takes received messages: their number, and the text of the last one.
Json Server::taken(const Json &command) {
    Connection &found = connection(command);
    const auto completions = found.take_received(
        command.at("count"), std::min(command.value("limit", 5.0), ACCEPT_S));
    unsigned good = 0;
    for (const ibv_wc &wc : completions)
        good += wc.status == IBV_WC_SUCCESS ? 1 : 0;
    return {{"completions", completions.size()},
            {"received", good},
            {"text", to_hex(std::span(found.memory.bytes.get(), 64))}};
}

// The queue pair then reacts to nothing.
Json Server::fail_queue(const Json &command) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    return {
        {"error", ibv_modify_qp(connection(command).conn.get_ibv_qp(), &attr, IBV_QP_STATE)}};
}

// The processor adds 1 to a word of the memory, while the client does so as well.
Json Server::add(const Json &command) {
    std::atomic_ref word(*reinterpret_cast<uint64_t *>(range(command, 8).data()));
    const unsigned count = std::min(command.at("count").get<unsigned>(), 1U << 20);
    for (unsigned i = 0; i < count; i++) {
        word.fetch_add(1, std::memory_order_relaxed);
        if (i % 64 == 0) {
            const Clock clock;
            (void)clock.wait(0);
        }
    }
    return {{"value", word.load()}};
}

// Reads words that the client writes, and counts those that are neither old nor new.
Json Server::watch(const Json &command) {
    const size_t count = std::min(command.at("words").get<size_t>(), MESSAGE_MAX);
    const volatile uint64_t *words =
        reinterpret_cast<uint64_t *>(range(command, 8 * count).data());
    const double seconds = std::min(command.at("seconds").get<double>(), 5.0);
    unsigned torn = 0, seen = 0, mixed = 0;
    uint64_t last = 0;
    for (const Clock clock; clock.seconds() < seconds;) {
        uint64_t first = 0;
        for (size_t i = 0; i < count; i++) {
            const uint64_t word = words[i], low = word & 0xff;
            torn += word != low * 0x0101010101010101 ? 1 : 0;
            mixed += i > 0 && word != first ? 1 : 0;
            first = i == 0 ? word : first;
        }
        seen += first != last ? 1 : 0;
        last = first;
        if (seen % 256 == 0)
            check_stopping();
    }
    return {{"torn", torn}, {"mixed", mixed}, {"seen", seen}};
}

Json Server::descriptors(const Json &) {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return {{"count", std::distance(begin(all), end(all))}};
}

Json Server::victim(const Json &command) {
    if (command.contains("kill")) {
        helper_.kill_victim();
        return Json::object();
    }
    return {{"port", helper_.start_victim(options_.address)}};
}

Json Server::path(const Json &command) {
    if (!mapped_)
        return {{"error", "no path"}};
    if (mapped_mr_.get() == nullptr)
        return {{"error", mapped_error_}};
    const auto *bytes = static_cast<const std::byte *>(mapped_->base);
    return {{"kind", text_at(mapped_->describe(), "kind")},
            {"descriptor", to_hex(mapped_mr_.get_descriptor())},
            {"bytes", to_hex({bytes, std::min({command.value("size", size_t{0}),
                                               mapped_->mapped, MESSAGE_MAX / 4})})}};
}

Json Server::bye(const Json &) {
    is_finished_ = true;
    return Json::object();
}

Json Server::respond(const Json &command) {
    static const std::map<std::string, Command> COMMANDS = {
        {"hello", &Server::hello},
        {"accept", &Server::accept},
        {"close", &Server::close},
        {"peek", &Server::peek},
        {"poke", &Server::poke},
        {"receive", &Server::receive},
        {"send", &Server::send},
        {"free port", &Server::free_port},
        {"taken", &Server::taken},
        {"fail", &Server::fail_queue},
        {"add", &Server::add},
        {"watch", &Server::watch},
        {"descriptors", &Server::descriptors},
        {"victim", &Server::victim},
        {"path", &Server::path},
        {"bye", &Server::bye}};
    try {
        return (this->*COMMANDS.at(command.at("do")))(command);
    } catch (const rpma::error &error) {
        return {{"error", code_name(static_cast<rpma::status>(error.code().value()))}};
    } catch (const Late &late) {
        return {{"error", late.what()}};
    } catch (const std::logic_error &) { // a command or a value that does not exist
        return {{"error", "unknown command"}};
    } catch (const Json::exception &) {
        return {{"error", "unknown command"}};
    }
}

void Server::check_client(rpma::conn_req &&request) {
    is_finished_ = false;
    control_.emplace(peer_, std::move(request));
    while (!is_finished_)
        control_->send(respond(control_->receive(IDLE_S, [this] { keep_requests(); })));
    // The client deletes its side after the last message.
    for (const Clock clock; !control_->conn.next_event() && clock.wait(2);)
        ;
}

int Server::serve() {
    bool is_served = false;
    while (!(options_.once && is_served)) {
        auto request = next_request();
        if (!request) {
            const Clock clock;
            pollfd listener = {ep_.get_fd(), POLLIN, 0};
            (void)::poll(&listener, 1, 60000);
            check_stopping();
            continue;
        }
        const Greeting other = greeting_of(request->get_private_data());
        if (!other.is_ours || other.protocol != PROTOCOL || other.kind != "control") {
            if (other.is_ours && other.protocol != PROTOCOL)
                print_error(fmt::format("a client has version {} of the protocol, this server "
                                        "version {}: install the same release on both machines",
                                        other.protocol, PROTOCOL));
            std::move(*request).reject(as_data(greeting("busy")));
            continue;
        }
        try {
            check_client(std::move(*request));
        } catch (const Lost &) {
            print_error("the client has ended before the check was complete");
        } catch (const rpma::error &error) {
            print_error(error.what());
        }
        is_served = true;
        connections_.clear();
        waiting_.clear();
        control_.reset();
    }
    return EXIT_AS_EXPECTED;
}

} // namespace

int run_server(const Options &options, Helper &helper) {
    try {
        return Server(options, helper).serve();
    } catch (const Interrupted &) { // the usual end of a server
        return EXIT_AS_EXPECTED;
    }
}
