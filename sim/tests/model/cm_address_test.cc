// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cm_address_test.cc -- addresses, ports, multicast groups and devices of the connection
// manager. The sources of the expected values are those of cm_test.cc.

#include "cm_network.hh"

namespace {

using namespace sim;

// addr.c, addr_resolve(): fails at once without a route, and after the time limit without a
// reply. A known neighbour needs no reply.
void address_without_reply_is_an_error(void **) {
    CmPair pair("rxe");
    Process &client = pair.client;
    const uint32_t id = client.create();
    for (const char *const other : {"192.0.2.1", "10.77.1.1"}) {
        assert_int_equal(client.resolve(id, address(other, 1)), ENETUNREACH);
        const uint32_t bound = client.create();
        assert_int_equal(client.bind(bound, address("10.77.0.2", 0)), 0);
        assert_int_equal(client.resolve(bound, address(other, 1)), ENETUNREACH);
    }
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
    CmPair pair("rxe");
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
    const uint32_t third =
        server.create(); // cma.c, rdma_listen(): the second one shares no more
    assert_int_equal(server.simple(third, reuse), 0);
    assert_int_equal(server.bind(third, address("10.77.0.1", 80), true), EADDRINUSE);
    assert_int_equal(server.bind(third, address("0.0.0.0", 80), true), EADDRNOTAVAIL);
    assert_int_equal(pair.client.bind(pair.client.create(), address("10.77.0.2", 80), true), 0);
}

int set_one_family(Process &process, uint32_t id, bool is_of_one_family) {
    CmSetOption option{};
    option.level = RDMA_OPTION_ID;
    option.name = RDMA_OPTION_ID_AFONLY;
    option.length = sizeof(int);
    option.value = is_of_one_family;
    return process.simple(id, option);
}

// cma.c, cma_check_port()
void port_of_one_family_is_free_for_the_other(void **) {
    for (const bool is_of_one_family : {false, true}) {
        CmPair pair("rxe");
        pair.server.listener("0.0.0.0");
        const uint32_t id = pair.server.create();
        assert_int_equal(set_one_family(pair.server, id, is_of_one_family), 0);
        assert_int_equal(pair.server.bind(id, address("::", 7471)),
                         is_of_one_family ? 0 : EADDRNOTAVAIL);
    }
}

void any_address_accepts_requests_of_both_families(void **) {
    for (const bool is_of_one_family : {false, true}) {
        CmPair pair("rxe");
        const uint32_t id = pair.server.create();
        assert_int_equal(set_one_family(pair.server, id, is_of_one_family), 0);
        assert_int_equal(pair.server.bind(id, address("::", 7471)), 0);
        assert_int_equal(pair.server.listen(id), 0);
        assert_int_equal(pair.client.connect(pair.client.resolved()), 0);
        if (is_of_one_family)
            pair.client.expect(RDMA_CM_EVENT_REJECTED, 8);
        else
            pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    }
}

// cma.c, cma_save_net_info()
void request_has_the_address_that_it_was_sent_to(void **) {
    CmPair pair("rxe");
    pair.server.listener("0.0.0.0");
    assert_int_equal(pair.client.connect(pair.client.resolved()), 0);
    const CmRoute route = pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).route;
    const CmAddress own = address("10.77.0.1", 7471), peer = address("10.77.0.2", 0);
    assert_int_equal(route.source.v4.sin_addr.s_addr, own.v4.sin_addr.s_addr);
    assert_int_equal(route.source.v4.sin_port, own.v4.sin_port);
    assert_int_equal(route.destination.v4.sin_addr.s_addr, peer.v4.sin_addr.s_addr);
}

// cma.c, cma_any_addr() and cma_match_net_dev(): an address of IPv4 has no requests of IPv6.
void any_address_of_ipv4_has_no_requests_of_ipv6(void **) {
    CmPair pair("rxe");
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
    CmPair pair("rxe");
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
    CmPair pair("rxe");
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

void removed_device_is_reported_to_its_ids(void **) {
    CmPair pair("rxe");
    pair.connect();
    pair.fabric.remove_device(1, 0);
    pair.server.expect(RDMA_CM_EVENT_DEVICE_REMOVAL); // for the listener and the connection
    pair.server.expect(RDMA_CM_EVENT_DEVICE_REMOVAL);
    pair.server.expect_none();
    assert_int_equal(pair.server.simple<CmDisconnect>(pair.passive), ENXIO); // ucma_get_ctx()
    assert_int_equal(pair.server.simple<CmDestroy>(pair.passive), 0);
}

// cma.c, addr_handler(): an ID gets its device with its address, and none with an error.
void removed_device_is_not_reported_to_an_id_without_address(void **) {
    CmPair pair("rxe");
    Process &client = pair.client;
    const uint32_t failed = client.create(), waiting = client.create();
    assert_int_equal(client.resolve(failed, address("10.77.0.99", 1)), 0);
    pair.fabric.advance(2 * SECOND);
    client.expect(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
    assert_int_equal(client.resolve(waiting, address("10.77.0.99", 1)), 0);
    pair.fabric.remove_device(2, 0);
    client.expect_none();
    pair.fabric.advance(4 * SECOND);
    assert_int_equal(client.expect(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT).id, waiting);
}

// cm.c, cm_process_send_error(): the request of the client expires.
void request_to_removed_device_expires(void **) {
    CmPair pair("rxe");
    pair.request();
    pair.fabric.remove_device(1, 0);
    pair.fabric.advance(60 * SECOND);
    pair.client.expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

void changed_address_is_reported_to_accepted_ids(void **) {
    CmPair pair("rxe");
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
    CmPair pair("siw");
    pair.request();
    assert_int_equal(pair.server.accept(pair.passive), 0);
    pair.client.expect(RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
}

} // namespace

int main() {
    static const CMUnitTest tests[] = {
        cmocka_unit_test(address_without_reply_is_an_error),
        cmocka_unit_test(ports_are_reserved),
        cmocka_unit_test(port_of_one_family_is_free_for_the_other),
        cmocka_unit_test(any_address_accepts_requests_of_both_families),
        cmocka_unit_test(request_has_the_address_that_it_was_sent_to),
        cmocka_unit_test(any_address_of_ipv4_has_no_requests_of_ipv6),
        cmocka_unit_test(any_port_is_free_in_its_port_space),
        cmocka_unit_test(group_of_an_address_is_joined),
        cmocka_unit_test(multicast_address_is_resolved_without_a_neighbour),
        cmocka_unit_test(attributes_of_qps_follow_the_messages),
        cmocka_unit_test(removed_device_is_reported_to_its_ids),
        cmocka_unit_test(removed_device_is_not_reported_to_an_id_without_address),
        cmocka_unit_test(request_to_removed_device_expires),
        cmocka_unit_test(changed_address_is_reported_to_accepted_ids),
        cmocka_unit_test(iwarp_needs_the_qps_of_both_sides),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
