// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cm_network.hh -- the connection manager of a fabric without programs, with a server and a
// client.

#pragma once

#include "../../model/fabric.hh"

#include <arpa/inet.h>
#include <cerrno>
#include <optional>

extern "C" {
#include <csetjmp>
#include <cstdarg>

#include <cmocka.h>
}

namespace sim {

constexpr uint64_t SECOND = 1000000000;

struct NoEnvironment : Environment {
    int open_channel(uint32_t) override { return 0; }
    void close_channel(uint32_t) override {}
    void raise(uint32_t) override {}
    void lower(uint32_t) override {}
    Ring *open_ring(uint32_t, size_t, RingPlace &, int &) override { return nullptr; }
    void close_ring(Ring *, size_t) override {}
};

struct Network {
    NoEnvironment environment;
    Fabric fabric;
    explicit Network(const char *device)
        : fabric(environment, [device] {
              Options options;
              options.profile = sim_find_profile(device);
              return options;
          }()) {}
};

inline CmAddress address(const char *text, uint16_t port) {
    CmAddress made{};
    if (inet_pton(AF_INET, text, &made.v4.sin_addr) == 1) {
        made.v4.sin_family = AF_INET;
        made.v4.sin_port = htons(port);
    } else {
        inet_pton(AF_INET6, text, &made.v6.sin6_addr);
        made.v6.sin6_family = AF_INET6;
        made.v6.sin6_port = htons(port);
    }
    return made;
}

// A program on a host, with one event channel.
struct Process {
    Network &network;
    Caller caller;
    uint32_t channel = 0;

    Process(Network &on, unsigned host) : network(on) {
        Hello hello{};
        hello.host = host;
        must(hello);
        channel = must(CmCreateChannel{}).channel;
    }
    template <class T> int call(const T &request, typename T::Reply &reply) {
        Reply raw;
        const int error = network.fabric.call(caller, &request, sizeof(request), raw);
        if (error == 0)
            memcpy(&reply, raw.bytes.data(), std::min(sizeof(reply), raw.bytes.size()));
        return error;
    }
    template <class T> int call(const T &request) {
        typename T::Reply reply{};
        return call(request, reply);
    }
    template <class T> typename T::Reply must(const T &request) {
        typename T::Reply reply{};
        assert_int_equal(call(request, reply), 0);
        return reply;
    }
    // Sets the ID of a request and sends it.
    template <class T> int simple(uint32_t id, T request = {}) {
        request.id = id;
        return call(request);
    }
    uint32_t create(uint64_t cookie = 1, uint32_t port_space = RDMA_PS_TCP,
                    uint32_t qp_type = IBV_QPT_RC) {
        CmCreate request{};
        request.channel = channel;
        request.cookie = cookie;
        request.port_space = port_space;
        request.qp_type = qp_type;
        return must(request).id;
    }
    int bind(uint32_t id, const CmAddress &to, bool privileged = false) {
        CmBind request{};
        request.address = to;
        request.privileged = privileged;
        return simple(id, request);
    }
    int listen(uint32_t id, int backlog = 0) {
        CmListen request{};
        request.backlog = backlog;
        return simple(id, request);
    }
    uint32_t listener(const char *text = "10.77.0.1", uint16_t port = 7471, int backlog = 0) {
        const uint32_t id = create();
        assert_int_equal(bind(id, address(text, port)), 0);
        assert_int_equal(listen(id, backlog), 0);
        return id;
    }
    int resolve(uint32_t id, const CmAddress &to) {
        CmResolveAddr request{};
        request.timeout_ms = 2000;
        request.destination = to;
        return simple(id, request);
    }
    uint32_t resolved(uint16_t port = 7471) {
        const uint32_t id = create();
        assert_int_equal(resolve(id, address("10.77.0.1", port)), 0);
        expect(RDMA_CM_EVENT_ADDR_RESOLVED);
        CmResolveRoute route{};
        assert_int_equal(simple(id, route), EINVAL); // without a timeout
        route.timeout_ms = 2000;
        assert_int_equal(simple(id, route), 0);
        expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
        return id;
    }
    int connect(uint32_t id, uint8_t data_length = 0) {
        CmConnect request{};
        request.param.valid = 1;
        request.param.retry_count = 3;
        request.param.rnr_retry_count = 5;
        request.param.initiator_depth = 2;
        request.param.responder_resources = 4;
        request.param.private_data_len = data_length;
        memset(request.param.private_data, 'q', data_length);
        return simple(id, request);
    }
    int accept(uint32_t id, uint8_t data_length = 0) {
        CmAccept request{};
        request.cookie = 2;
        request.param.valid = 1;
        request.param.rnr_retry_count = 6;
        request.param.private_data_len = data_length;
        memset(request.param.private_data, 'a', data_length);
        return simple(id, request);
    }
    std::optional<CmEvent> event() {
        TakeEvent request{};
        request.channel = channel;
        Reply raw;
        if (network.fabric.call(caller, &request, sizeof(request), raw))
            return {};
        CmEvent taken;
        memcpy(&taken, raw.bytes.data() + sizeof(TakeEvent::Reply), sizeof(taken));
        return taken;
    }
    CmEvent expect(rdma_cm_event_type type, int status = 0) {
        const std::optional<CmEvent> taken = event();
        assert_true(taken.has_value());
        assert_int_equal(taken->type, type);
        assert_int_equal(taken->status, status);
        return *taken;
    }
    void expect_none() { assert_false(event().has_value()); }
    void end() { network.fabric.end_session(*caller.session); }
};

// A server on host 1 and a client on host 2.
struct CmPair : Network {
    Process server{*this, 1}, client{*this, 2};
    uint32_t active = 0, passive = 0;
    explicit CmPair(const char *device) : Network(device) {}
    void request() {
        server.listener();
        active = client.resolved();
        assert_int_equal(client.connect(active), 0);
        passive = server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
    }
    void connect() {
        request();
        assert_int_equal(server.accept(passive), 0);
        client.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
        assert_int_equal(client.simple<CmAccept>(active), 0);
        server.expect(RDMA_CM_EVENT_ESTABLISHED);
    }
};

} // namespace sim
