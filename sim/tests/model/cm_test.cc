// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cm_test.cc -- the connection manager of the fabric, without processes. The expected values
// are those of Linux, drivers/infiniband/core; the comment of a test names the function.

#include "../../model/fabric.hh"

#include <arpa/inet.h>
#include <cerrno>
#include <optional>

extern "C" {
#include <csetjmp>
#include <cstdarg>

#include <cmocka.h>
}

namespace {

using namespace sim;

const uint64_t SECOND = 1000000000;

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

CmAddress address(const char *text, uint16_t port) {
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
struct Pair : Network {
    Process server{*this, 1}, client{*this, 2};
    uint32_t active = 0, passive = 0;
    explicit Pair(const char *device) : Network(device) {}
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

void expect_padded_data(const CmEvent &event, uint8_t length, char filler, unsigned sent) {
    assert_int_equal(event.param.private_data_len, length);
    for (unsigned i = 0; i < length; i++)
        assert_int_equal(event.param.private_data[i], i < sent ? filler : 0);
}

// cma_set_req_event_data(), cma_set_rep_event_data(): an event has the whole field of private
// data, and the depths as the receiver sees them.
void connection_delivers_events_to_both_sides(void **) {
    Pair pair("rxe");
    const uint32_t listener = pair.server.listener();
    const uint32_t active = pair.client.resolved();
    assert_int_equal(pair.client.connect(active, 57), EINVAL);
    assert_int_equal(pair.client.connect(active, 56), 0);
    assert_int_equal(pair.client.connect(active), EINVAL);
    const CmEvent request = pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_not_equal(request.id, listener);
    expect_padded_data(request, 56, 'q', 56);
    assert_int_equal(request.param.responder_resources, 2);
    assert_int_equal(request.param.initiator_depth, 4);
    assert_int_equal(request.route.source.v4.sin_port, htons(7471));
    assert_int_equal(request.route.destination.v4.sin_addr.s_addr, inet_addr("10.77.0.2"));
    assert_int_equal(pair.server.accept(request.id, 3), 0);
    expect_padded_data(pair.client.expect(RDMA_CM_EVENT_CONNECT_RESPONSE), 196, 'a', 3);
    pair.server.expect_none();
    assert_int_equal(pair.client.simple<CmAccept>(active), 0);
    expect_padded_data(pair.server.expect(RDMA_CM_EVENT_ESTABLISHED), 0, 0, 0);
    pair.client.expect_none();
}

// cma.c, rdma_accept(): rejects the other side, so that a second call fails.
void too_much_private_data_in_accept_rejects_the_request(void **) {
    Pair pair("rxe");
    pair.request();
    assert_int_equal(pair.server.accept(pair.passive, 197), EINVAL);
    pair.client.expect(RDMA_CM_EVENT_REJECTED, 28);
    assert_int_equal(pair.server.accept(pair.passive), EINVAL);
}

// cma_ib_handler() and cma_iw_handler()
void rejection_has_the_status_of_its_transport(void **) {
    static const struct {
        const char *device;
        int refused, unknown;
        uint8_t length;
    } rows[] = {{"rxe", 28, 8, 148}, {"irdma-iwarp", -ECONNREFUSED, -ECONNREFUSED, 4}};
    for (const auto &row : rows) {
        Pair pair(row.device);
        pair.request();
        CmReject reject{};
        assert_int_equal(pair.server.simple(pair.passive, reject), EINVAL);
        reject.reason = 28;
        reject.private_data_len = 4;
        memset(reject.private_data, 'r', 4);
        assert_int_equal(pair.server.simple(pair.passive, reject), 0);
        assert_int_equal(pair.server.simple(pair.passive, reject), EINVAL);
        expect_padded_data(pair.client.expect(RDMA_CM_EVENT_REJECTED, row.refused), row.length,
                           'r', 4);
        const uint32_t other = pair.client.resolved(7472);
        assert_int_equal(pair.client.connect(other), 0);
        pair.client.expect(RDMA_CM_EVENT_REJECTED, row.unknown);
    }
}

// siw_cm.c, siw_connect(): the call fails, and the ID keeps its state.
void siw_connects_in_the_call(void **) {
    Pair pair("siw");
    const uint32_t active = pair.client.resolved();
    assert_int_equal(pair.client.connect(active), ECONNREFUSED);
    pair.server.listener();
    pair.fabric.cut(1, 2, true);
    assert_int_equal(pair.client.connect(active), EHOSTUNREACH);
    pair.fabric.cut(1, 2, false);
    pair.client.expect_none();
    assert_int_equal(pair.client.connect(active), 0);
    pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
}

// cma_ib_handler(), IB_CM_REQ_ERROR
void request_over_cut_link_waits_or_is_unreachable(void **) {
    for (const bool is_joined : {false, true}) {
        Pair pair("rxe");
        pair.server.listener();
        const uint32_t active = pair.client.resolved();
        pair.fabric.cut(1, 2, true);
        assert_int_equal(pair.client.connect(active), 0);
        pair.fabric.advance(4 * SECOND);
        pair.client.expect_none();
        if (is_joined)
            pair.fabric.cut(2, 1, false);
        pair.fabric.advance(5 * SECOND);
        if (is_joined) {
            pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
            pair.client.expect_none();
        } else {
            pair.client.expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
            pair.fabric.cut(1, 2, false);
            pair.server.expect_none();
        }
    }
}

// addr.c, addr_resolve(): fails at once without a route, and after the time limit without a
// reply. A known neighbour needs no reply.
void address_without_reply_is_an_error(void **) {
    Pair pair("rxe");
    Process &client = pair.client;
    const uint32_t id = client.create();
    assert_int_equal(client.resolve(id, address("192.0.2.1", 1)), ENETUNREACH);
    assert_int_equal(client.simple<CmResolveRoute>(id), EINVAL);
    assert_int_equal(client.simple<CmResolveRoute>(id + 1000), ENOENT);
    assert_int_equal(client.resolve(id, address("fd77::1", 1)), EINVAL);
    assert_int_equal(client.resolve(id, address("10.77.0.99", 1)), 0);
    pair.fabric.advance(2 * SECOND - 1);
    client.expect_none();
    pair.fabric.advance(2 * SECOND);
    client.expect(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
    assert_int_equal(client.bind(id, address("10.77.0.2", 0)), EINVAL); // cma.c, addr_handler()
    assert_int_equal(client.simple<CmResolveRoute>(id), EINVAL);
    pair.fabric.cut(1, 2, true);
    assert_int_equal(client.resolve(id, address("10.77.0.1", 1)), 0);
    client.expect_none();
    pair.fabric.cut(1, 2, false);
    client.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    pair.fabric.cut(1, 2, true);
    client.resolved();
}

// cma.c, cma_check_port() and cma_use_port()
void ports_are_reserved(void **) {
    Pair pair("rxe");
    Process &server = pair.server;
    const uint32_t first = server.create();
    CmSetOption reuse{};
    reuse.level = RDMA_OPTION_ID;
    reuse.name = RDMA_OPTION_ID_REUSEADDR;
    reuse.length = sizeof(int);
    reuse.value = 1;
    assert_int_equal(server.bind(first, address("10.77.0.1", 80)), EACCES);
    assert_int_equal(server.bind(first, address("10.77.0.2", 80), true), EADDRNOTAVAIL);
    assert_int_equal(server.bind(first, address("10.77.0.1", 80), true), 0);
    assert_int_equal(server.bind(first, address("10.77.0.1", 81), true), EINVAL);
    const uint32_t second = server.create();
    assert_int_equal(server.bind(second, address("10.77.0.1", 80), true), EADDRINUSE);
    assert_int_equal(server.bind(second, address("0.0.0.0", 80), true), EADDRNOTAVAIL);
    assert_int_equal(server.simple(first, reuse), 0);
    assert_int_equal(server.simple(second, reuse), 0);
    assert_int_equal(server.bind(second, address("10.77.0.1", 80), true), 0);
    assert_int_equal(server.listen(second), EADDRINUSE);
    assert_int_equal(server.simple<CmDestroy>(first), 0);
    assert_int_equal(server.listen(second), 0);
    assert_int_equal(pair.client.bind(pair.client.create(), address("10.77.0.2", 80), true), 0);
}

void any_address_accepts_requests_of_both_families(void **) {
    for (const bool is_of_one_family : {false, true}) {
        Pair pair("rxe");
        const uint32_t id = pair.server.create();
        CmSetOption option{};
        option.level = RDMA_OPTION_ID;
        option.name = RDMA_OPTION_ID_AFONLY;
        option.length = sizeof(int);
        option.value = is_of_one_family;
        assert_int_equal(pair.server.simple(id, option), 0);
        assert_int_equal(pair.server.bind(id, address("::", 7471)), 0);
        assert_int_equal(pair.server.listen(id), 0);
        assert_int_equal(pair.client.connect(pair.client.resolved()), 0);
        if (is_of_one_family)
            pair.client.expect(RDMA_CM_EVENT_REJECTED, 8);
        else
            pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    }
}

// cma.c, cma_any_addr() and cma_match_net_dev(): an address of IPv4 has no requests of IPv6.
void any_address_of_ipv4_has_no_requests_of_ipv6(void **) {
    Pair pair("rxe");
    pair.server.listener("0.0.0.0");
    const uint32_t id = pair.client.create();
    assert_int_equal(pair.client.bind(id, address("fd77::2", 0)), 0);
    assert_int_equal(pair.client.resolve(id, address("fd77::1", 7471)), 0);
    pair.client.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    CmResolveRoute route{};
    route.timeout_ms = 2000;
    assert_int_equal(pair.client.simple(id, route), 0);
    pair.client.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_int_equal(pair.client.connect(id), 0);
    pair.client.expect(RDMA_CM_EVENT_REJECTED, 8);
    pair.server.expect_none();
}

// cma.c, cma_alloc_any_port(): ports of another port space are free.
void any_port_is_free_in_its_port_space(void **) {
    constexpr uint16_t FIRST = 32768, LAST = 60999,
                       FREE = 40000; // net.ipv4.ip_local_port_range
    Pair pair("rxe");
    Process &client = pair.client;
    for (unsigned port = FIRST; port <= LAST; port++)
        if (port != FREE)
            assert_int_equal(client.bind(client.create(1, RDMA_PS_UDP, IBV_QPT_UD),
                                         address("10.77.0.2", static_cast<uint16_t>(port))),
                             0);
    CmBind request{};
    request.address = address("10.77.0.2", 0);
    request.id = client.create(1, RDMA_PS_UDP, IBV_QPT_UD);
    assert_int_equal(client.must(request).source.v4.sin_port, htons(FREE));
    assert_int_equal(client.bind(client.create(1, RDMA_PS_UDP, IBV_QPT_UD), request.address),
                     EADDRNOTAVAIL);
    assert_int_equal(client.bind(client.create(), request.address), 0);
}

// cm.c, ib_send_cm_req(): a lost message is sent again after its timeout, 4.3 s.
void lost_message_is_repeated(void **) {
    constexpr uint64_t TIMEOUT = 4'294'967'296;
    Pair pair("rxe");
    pair.server.listener();
    const uint32_t active = pair.client.resolved();
    pair.fabric.lose_cm_message(2, 1);
    assert_int_equal(pair.client.connect(active), 0);
    pair.fabric.advance(TIMEOUT - 1);
    pair.server.expect_none();
    pair.fabric.advance(TIMEOUT);
    const uint32_t passive = pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
    pair.fabric.lose_cm_message(1, 1);
    CmReject reject{};
    reject.reason = 28;
    assert_int_equal(pair.server.simple(passive, reject), 0);
    assert_int_equal(pair.server.simple<CmDestroy>(passive), 0); // its rejection is still sent
    pair.client.expect_none();
    pair.fabric.advance(2 * TIMEOUT);
    pair.client.expect(RDMA_CM_EVENT_REJECTED, 28);
}

// ucma.c, ucma_accept(), and librdmacm/cma.c, rdma_set_option(): from rdma_accept() on, events
// have the ID of the program; the timeout is any that was set.
void values_of_the_program_are_kept(void **) {
    for (const int timeout : {0, 5, 20}) {
        Pair pair("rxe");
        CmSetOption option{};
        option.level = RDMA_OPTION_ID;
        option.name = RDMA_OPTION_ID_ACK_TIMEOUT;
        option.length = sizeof(uint8_t);
        option.value = timeout;
        pair.server.listener();
        pair.active = pair.client.resolved();
        assert_int_equal(pair.client.simple(pair.active, option), 0);
        assert_int_equal(pair.client.connect(pair.active), 0);
        pair.passive = pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
        assert_int_equal(pair.server.accept(pair.passive), 0);
        pair.client.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
        assert_int_equal(pair.client.simple<CmAccept>(pair.active), 0);
        TakeEvent request{};
        request.channel = pair.server.channel;
        assert_int_equal(pair.server.must(request).cookie, 2); // of Process::accept()
        CmInitQpAttr attr{};
        attr.id = pair.active;
        attr.state = IBV_QPS_RTS;
        assert_int_equal(pair.client.must(attr).attr.timeout, timeout);
        attr.state = IBV_QPS_RTR;
        const ibv_ah_attr path = pair.client.must(attr).attr.ah_attr;
        assert_int_equal(path.grh.sgid_index, 1); // that of IPv4
        assert_int_equal(path.grh.dgid.raw[10], 0xff);
        assert_int_equal(path.grh.dgid.raw[15], 1);
    }
}

// ucma.c, ucma_connect_event_handler() and ucma_get_event()
void requests_beyond_the_backlog_are_rejected(void **) {
    Pair pair("rxe");
    pair.server.listener("10.77.0.1", 7471, 1);
    assert_int_equal(pair.client.connect(pair.client.resolved()), 0);
    assert_int_equal(pair.client.connect(pair.client.resolved()), 0);
    pair.client.expect(RDMA_CM_EVENT_REJECTED, 28);
    pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_equal(pair.client.connect(pair.client.resolved()), 0);
    pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
}

// cm.c, cm_dreq_handler(): the peer replies by rdma_disconnect() or rdma_destroy_id().
void each_side_gets_one_disconnected_event(void **) {
    Pair pair("rxe");
    pair.connect();
    assert_int_equal(pair.client.simple<CmDisconnect>(pair.active), 0);
    pair.client.expect_none();
    pair.server.expect(RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(pair.server.simple<CmDisconnect>(pair.passive), 0);
    pair.client.expect(RDMA_CM_EVENT_DISCONNECTED);
    pair.server.expect_none();
    pair.fabric.advance(100 * SECOND);
    pair.client.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
    pair.server.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
    assert_int_equal(pair.client.simple<CmDisconnect>(pair.active), 0);
    pair.client.expect_none();
}

void disconnection_over_cut_link_is_timed_out(void **) {
    Pair pair("rxe");
    pair.connect();
    pair.fabric.cut(1, 2, true);
    assert_int_equal(pair.client.simple<CmDisconnect>(pair.active), 0);
    pair.fabric.advance(5 * SECOND);
    pair.client.expect(RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
    pair.fabric.cut(1, 2, false);
    pair.server.expect_none();
}

// cm.c, cm_destroy_id()
void dead_process_is_reported_to_its_peer(void **) {
    static const struct {
        bool is_established, server_ends;
        rdma_cm_event_type type;
        int status;
    } rows[] = {{false, true, RDMA_CM_EVENT_REJECTED, 28},
                {true, true, RDMA_CM_EVENT_DISCONNECTED, 0},
                {true, false, RDMA_CM_EVENT_DISCONNECTED, 0}};
    for (const auto &row : rows) {
        Pair pair("rxe");
        if (row.is_established)
            pair.connect();
        else
            pair.request();
        (row.server_ends ? pair.server : pair.client).end();
        (row.server_ends ? pair.client : pair.server).expect(row.type, row.status);
    }
    Pair pair("rxe"); // an ID reports no events before its request is accepted
    pair.request();
    pair.client.end();
    pair.server.expect_none();
    assert_int_equal(pair.server.accept(pair.passive), EINVAL);
}

void host_without_power_sends_nothing(void **) {
    Pair pair("rxe");
    pair.connect();
    pair.fabric.set_power(1, false);
    pair.server.end();
    pair.fabric.set_power(1, true);
    pair.client.expect_none();
    assert_int_equal(pair.client.simple<CmDisconnect>(pair.active), 0);
    pair.client.expect(RDMA_CM_EVENT_DISCONNECTED); // cm.c, cm_issue_drep()
}

// ucma.c, ucma_cleanup_ctx_events()
void pending_requests_are_rejected_with_their_listener(void **) {
    Pair pair("rxe");
    const uint32_t listener = pair.server.listener();
    assert_int_equal(pair.client.connect(pair.client.resolved()), 0);
    assert_int_equal(pair.server.simple<CmDestroy>(listener), 0);
    pair.client.expect(RDMA_CM_EVENT_REJECTED, 28);
    pair.server.expect_none();
}

// ucma.c, ucma_migrate_id()
void migrated_id_keeps_its_events(void **) {
    Pair pair("rxe");
    Process &client = pair.client;
    const uint32_t id = client.create(), stays = client.create();
    assert_int_equal(client.resolve(id, address("10.77.0.1", 1)), 0);
    assert_int_equal(client.resolve(stays, address("10.77.0.1", 1)), 0);
    CmMigrate request{};
    request.channel = client.must(CmCreateChannel{}).channel;
    assert_int_equal(client.simple(id, request), 0);
    assert_int_equal(client.expect(RDMA_CM_EVENT_ADDR_RESOLVED).id, stays);
    client.expect_none();
    client.channel = request.channel;
    assert_int_equal(client.expect(RDMA_CM_EVENT_ADDR_RESOLVED).id, id);
    request.id = id;
    assert_int_equal(client.must(request).events, 1);
}

// cma.c, rdma_join_multicast(), cma_iboe_set_mgid() and cma_set_mgid(); ucma.c,
// ucma_process_join()
void group_of_an_address_is_joined(void **) {
    static const struct {
        const char *device, *source, *group;
        unsigned port_space, qp_type, flags;
        int error;
        const char *gid;
        uint16_t lid;
    } rows[] = {
        {"rxe", "10.77.0.1", "239.1.2.3", RDMA_PS_UDP, IBV_QPT_UD, 0, 0, "::ffff:239.1.2.3", 0},
        {"rxe", "10.77.0.1", "239.1.2.3", RDMA_PS_UDP, IBV_QPT_UD, 1, 0, "::ffff:239.1.2.3", 0},
        {"rxe", "10.77.0.1", "239.1.2.3", RDMA_PS_UDP, IBV_QPT_UD, 2, EINVAL, "", 0},
        {"rxe", "10.77.0.1", "239.1.2.3", RDMA_PS_TCP, IBV_QPT_RC, 0, EINVAL, "", 0},
        {"rxe", "10.77.0.1", "0.0.0.0", RDMA_PS_UDP, IBV_QPT_UD, 0, EINVAL, "", 0},
        {"rxe", "fd77::1", "ff0e::1", RDMA_PS_UDP, IBV_QPT_UD, 0, 524, "", 0},
        {"rxe", "0.0.0.0", "239.1.2.3", RDMA_PS_UDP, IBV_QPT_UD, 0, EINVAL, "", 0}, // no device
        {"siw", "10.77.0.1", "239.1.2.3", RDMA_PS_UDP, IBV_QPT_UD, 0, ENOSYS, "", 0},
        {"mlx5-ib", "10.77.0.1", "239.1.2.3", RDMA_PS_UDP, IBV_QPT_UD, 0, 0,
         "ff12:4001:ffff::f01:203", 0xc000},
        {"mlx5-ib", "10.77.0.1", "239.1.2.3", RDMA_PS_IPOIB, IBV_QPT_UD, 0, 0,
         "ff12:401b:ffff::f01:203", 0xc000},
        {"mlx5-ib", "fd77::1", "ff0e::1:2:3:4", RDMA_PS_UDP, IBV_QPT_UD, 0, 0,
         "ff12:6001:ffff::1:2:3:4", 0xc000},
    };
    for (const auto &row : rows) {
        Network network(row.device);
        Process process(network, 1);
        CmJoin request{};
        request.id = process.create(1, row.port_space, row.qp_type);
        request.flags = row.flags;
        request.cookie = 7;
        request.address = address(row.group, 0);
        assert_int_equal(process.bind(request.id, address(row.source, 0)), 0);
        CmJoin::Reply joined{};
        if (process.call(request, joined) != row.error)
            fail_msg("%s: %s", row.device, row.group);
        if (row.error)
            continue;
        const CmEvent event = process.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
        ibv_gid gid;
        inet_pton(AF_INET6, row.gid, &gid);
        assert_memory_equal(&event.path.grh.dgid, &gid, sizeof(gid));
        assert_int_equal(event.path.dlid, row.lid);
        assert_int_equal(event.param.qp_num, 0xffffff);
        assert_int_equal(event.qkey, RDMA_UDP_QKEY);
        CmLeave leave{};
        leave.multicast = joined.multicast;
        assert_int_equal(process.must(leave).events, 1);
        assert_int_equal(process.call(leave), ENOENT);
        process.must(request); // an event that is not taken is removed
        process.must(request);
        process.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
        CmDestroy destroy{};
        assert_int_equal(process.simple(request.id, destroy), 0);
        process.expect_none();
    }
}

// addr.c, addr_resolve(): a multicast address has no neighbour that could reply.
void multicast_address_is_resolved_without_a_neighbour(void **) {
    Network network("rxe");
    Process process(network, 2);
    const uint32_t id = process.create(1, RDMA_PS_UDP, IBV_QPT_UD);
    assert_int_equal(process.resolve(id, address("239.1.2.3", 0)), 0);
    const CmEvent event = process.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    const CmAddress source = address("10.77.0.2", 0);
    assert_int_equal(event.route.source.v4.sin_addr.s_addr, source.v4.sin_addr.s_addr);
    CmJoin request{};
    request.id = id;
    request.address = address("239.1.2.3", 0);
    process.must(request);
    CmMigrate migrate{};
    migrate.channel = process.must(CmCreateChannel{}).channel;
    assert_int_equal(process.simple(id, migrate), 0);
    process.expect_none();
    process.channel = migrate.channel;
    process.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
}

// cm.c, cm_init_qp_rtr_attr() and cm_init_qp_rts_attr(); the timeout was measured on rxe
void attributes_of_qps_follow_the_messages(void **) {
    Pair pair("rxe");
    pair.connect();
    CmInitQpAttr request{};
    request.id = pair.active;
    request.state = IBV_QPS_RTS;
    const CmInitQpAttr::Reply active = pair.client.must(request);
    assert_int_equal(active.attr.retry_cnt, 3);
    assert_int_equal(active.attr.rnr_retry, 6);
    assert_int_equal(active.attr.timeout, 17);
    request.id = pair.passive;
    const CmInitQpAttr::Reply passive = pair.server.must(request);
    assert_int_equal(passive.attr.retry_cnt, 3);
    assert_int_equal(passive.attr.rnr_retry, 5);
    request.state = IBV_QPS_RTR;
    const CmInitQpAttr::Reply rtr = pair.server.must(request);
    assert_int_equal(rtr.attr.rq_psn, active.attr.sq_psn);
    assert_int_equal(rtr.attr.ah_attr.grh.dgid.raw[15], 2);
    request.state = IBV_QPS_SQD;
    assert_int_equal(pair.server.call(request), EINVAL);
}

// cma.c, cma_set_req_event_data(), and cm.c, cm_req_handler(): before rdma_accept(), the depths
// are those of the request, with exchanged roles.
void attributes_before_the_reply_are_those_of_the_request(void **) {
    Pair pair("rxe");
    pair.request();
    CmInitQpAttr request{};
    request.id = pair.passive;
    request.state = IBV_QPS_RTS;
    assert_int_equal(pair.server.must(request).attr.max_rd_atomic, 4);
    request.state = IBV_QPS_RTR;
    assert_int_equal(pair.server.must(request).attr.max_dest_rd_atomic, 2);
    request.id = pair.active;
    assert_int_equal(pair.client.call(request), EINVAL); // without a reply
}

void removed_device_is_reported_to_its_ids(void **) {
    Pair pair("rxe");
    pair.connect();
    pair.fabric.remove_device(1, 0);
    pair.server.expect(RDMA_CM_EVENT_DEVICE_REMOVAL); // for the listener and the connection
    pair.server.expect(RDMA_CM_EVENT_DEVICE_REMOVAL);
    pair.server.expect_none();
    assert_int_equal(pair.server.simple<CmDisconnect>(pair.passive), ENXIO); // ucma_get_ctx()
    assert_int_equal(pair.server.simple<CmDestroy>(pair.passive), 0);
}

// cm.c, cm_process_send_error(): the request of the client expires.
void request_to_removed_device_expires(void **) {
    Pair pair("rxe");
    pair.request();
    pair.fabric.remove_device(1, 0);
    pair.fabric.advance(60 * SECOND);
    pair.client.expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

void changed_address_is_reported_to_accepted_ids(void **) {
    Pair pair("rxe");
    pair.request();
    pair.fabric.change_address(1, 0);
    pair.server.expect(RDMA_CM_EVENT_ADDR_CHANGE); // only for the listener
    pair.server.expect_none();
    pair.client.expect_none();
    pair.fabric.change_address(2, 0);
    assert_int_equal(pair.client.expect(RDMA_CM_EVENT_ADDR_CHANGE).id, pair.active);
}

// iwcm.c: the connection needs the QPs of both sides, and the response needs no rdma_accept().
void iwarp_needs_the_qps_of_both_sides(void **) {
    Pair pair("siw");
    pair.request();
    assert_int_equal(pair.server.accept(pair.passive), 0);
    pair.client.expect(RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
}

void message_arrives_after_delay_of_link(void **) {
    Pair pair("rxe");
    pair.server.listener();
    const uint32_t active = pair.client.resolved();
    pair.fabric.set_delay(1, 2, SECOND);
    assert_int_equal(pair.client.connect(active), 0);
    pair.fabric.advance(SECOND - 1);
    pair.server.expect_none();
    pair.fabric.advance(SECOND);
    pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
}

} // namespace

int main() {
    static const CMUnitTest tests[] = {
        cmocka_unit_test(connection_delivers_events_to_both_sides),
        cmocka_unit_test(too_much_private_data_in_accept_rejects_the_request),
        cmocka_unit_test(rejection_has_the_status_of_its_transport),
        cmocka_unit_test(siw_connects_in_the_call),
        cmocka_unit_test(request_over_cut_link_waits_or_is_unreachable),
        cmocka_unit_test(address_without_reply_is_an_error),
        cmocka_unit_test(ports_are_reserved),
        cmocka_unit_test(any_address_accepts_requests_of_both_families),
        cmocka_unit_test(any_address_of_ipv4_has_no_requests_of_ipv6),
        cmocka_unit_test(any_port_is_free_in_its_port_space),
        cmocka_unit_test(lost_message_is_repeated),
        cmocka_unit_test(values_of_the_program_are_kept),
        cmocka_unit_test(requests_beyond_the_backlog_are_rejected),
        cmocka_unit_test(each_side_gets_one_disconnected_event),
        cmocka_unit_test(disconnection_over_cut_link_is_timed_out),
        cmocka_unit_test(dead_process_is_reported_to_its_peer),
        cmocka_unit_test(host_without_power_sends_nothing),
        cmocka_unit_test(pending_requests_are_rejected_with_their_listener),
        cmocka_unit_test(migrated_id_keeps_its_events),
        cmocka_unit_test(group_of_an_address_is_joined),
        cmocka_unit_test(multicast_address_is_resolved_without_a_neighbour),
        cmocka_unit_test(attributes_of_qps_follow_the_messages),
        cmocka_unit_test(attributes_before_the_reply_are_those_of_the_request),
        cmocka_unit_test(removed_device_is_reported_to_its_ids),
        cmocka_unit_test(request_to_removed_device_expires),
        cmocka_unit_test(changed_address_is_reported_to_accepted_ids),
        cmocka_unit_test(iwarp_needs_the_qps_of_both_sides),
        cmocka_unit_test(message_arrives_after_delay_of_link),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
