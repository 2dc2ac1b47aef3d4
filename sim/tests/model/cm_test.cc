// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cm_test.cc -- the connection manager of the fabric, without processes. The expected values
// are those of Linux, drivers/infiniband/core; the comment of a test names the function.

#include "cm_network.hh"

namespace {

using namespace sim;

void expect_padded_data(const CmEvent &event, uint8_t length, char filler, unsigned sent) {
    assert_int_equal(event.param.private_data_len, length);
    for (unsigned i = 0; i < length; i++)
        assert_int_equal(event.param.private_data[i], i < sent ? filler : 0);
}

// cma_set_req_event_data(), cma_set_rep_event_data(): an event has the whole field of private
// data, and the depths as the receiver sees them.
void connection_delivers_events_to_both_sides(void **) {
    CmPair pair("rxe");
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
    CmPair pair("rxe");
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
        CmPair pair(row.device);
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
    CmPair pair("siw");
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
        CmPair pair("rxe");
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

// cm.c, ib_send_cm_req(): a lost message is sent again after its timeout, 4.3 s.
void lost_message_is_repeated(void **) {
    constexpr uint64_t TIMEOUT = 4'294'967'296;
    CmPair pair("rxe");
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
        CmPair pair("rxe");
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
    CmPair pair("rxe");
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
    CmPair pair("rxe");
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

// cm.c, cm_dreq_handler(): a DREQ that was lost arrives, repeated, after the other side has
// disconnected as well.
void lost_disconnection_has_no_effect_after_that_of_the_peer(void **) {
    CmPair pair("rxe");
    pair.connect();
    pair.fabric.lose_cm_message(2, 1);
    assert_int_equal(pair.client.simple<CmDisconnect>(pair.active), 0);
    pair.server.expect_none();
    assert_int_equal(pair.server.simple<CmDisconnect>(pair.passive), 0);
    pair.client.expect(RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(pair.client.simple<CmDisconnect>(pair.active), 0);
    pair.server.expect(RDMA_CM_EVENT_DISCONNECTED);
    pair.fabric.advance(100 * SECOND);
    pair.client.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
    pair.server.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
    assert_int_equal(pair.server.simple<CmDisconnect>(pair.passive), 0);
    pair.fabric.advance(200 * SECOND);
    pair.client.expect_none();
    pair.server.expect_none(); // no second RDMA_CM_EVENT_TIMEWAIT_EXIT
}

// The time until the client or the server has an event. A schedule never waits for it while a
// program can run: it is no timer.
uint64_t deadline_of(CmPair &pair) {
    assert_true(pair.fabric.next_timer() == UINT64_MAX);
    const uint64_t deadline = pair.fabric.next_deadline(), time = deadline - pair.fabric.now();
    pair.fabric.advance(deadline - 1);
    pair.client.expect_none();
    pair.server.expect_none();
    pair.fabric.advance(deadline);
    return time;
}

// cma_ib_handler(), IB_CM_DREQ_ERROR, IB_CM_REQ_ERROR and IB_CM_REP_ERROR: 16 times 4.3 s, or
// 15 times 68.7 s after an MRA.
void message_to_live_peer_without_response_expires_after_retries(void **) {
    constexpr uint64_t TIMEOUT = 4'294'967'296, MRA = 68'719'476'736;
    for (const char *device : {"rxe", "irdma-iwarp"}) {
        CmPair pair(device);
        pair.request();
        const bool is_iwarp = strcmp(device, "rxe") != 0;
        assert_int_equal(deadline_of(pair), is_iwarp ? 60 * SECOND : TIMEOUT + 15 * MRA);
        pair.client.expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    }
    CmPair pair("rxe");
    pair.request();
    assert_int_equal(pair.server.accept(pair.passive), 0);
    pair.client.expect(RDMA_CM_EVENT_CONNECT_RESPONSE); // which it does not confirm
    assert_int_equal(deadline_of(pair), TIMEOUT + 15 * MRA);
    pair.server.expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);

    CmPair connected("rxe");
    connected.connect();
    assert_true(connected.fabric.next_deadline() == UINT64_MAX);
    assert_int_equal(connected.client.simple<CmDisconnect>(connected.active), 0);
    connected.server.expect(RDMA_CM_EVENT_DISCONNECTED); // to which it does not reply
    assert_int_equal(deadline_of(connected), 16 * TIMEOUT);
    connected.client.expect(RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
}

// Each response, and the end of the ID, ends the wait.
void response_ends_the_wait_of_a_connection(void **) {
    CmPair pair("rxe");
    pair.connect();
    assert_int_equal(pair.client.simple<CmDisconnect>(pair.active), 0);
    pair.server.expect(RDMA_CM_EVENT_DISCONNECTED);
    assert_true(pair.fabric.next_deadline() != UINT64_MAX);
    assert_int_equal(pair.server.simple<CmDisconnect>(pair.passive), 0);
    pair.client.expect(RDMA_CM_EVENT_DISCONNECTED);
    assert_true(pair.fabric.next_deadline() == UINT64_MAX);
    assert_int_equal(pair.client.connect(pair.client.resolved()), 0);
    assert_true(pair.fabric.next_deadline() != UINT64_MAX);
    pair.client.end();
    assert_true(pair.fabric.next_deadline() == UINT64_MAX);
}

void disconnection_over_cut_link_is_timed_out(void **) {
    CmPair pair("rxe");
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
        CmPair pair("rxe");
        if (row.is_established)
            pair.connect();
        else
            pair.request();
        (row.server_ends ? pair.server : pair.client).end();
        (row.server_ends ? pair.client : pair.server).expect(row.type, row.status);
    }
    CmPair pair("rxe"); // an ID reports no events before its request is accepted
    pair.request();
    pair.client.end();
    pair.server.expect_none();
    assert_int_equal(pair.server.accept(pair.passive), EINVAL);
}

// cm.c, cm_process_send_error(): no RTU follows, because the ID that would send it is gone.
void reply_to_a_destroyed_id_expires(void **) {
    CmPair pair("rxe");
    pair.request();
    pair.fabric.cut(1, 2, true);
    assert_int_equal(pair.server.accept(pair.passive), 0);
    pair.fabric.set_power(2, false);
    assert_int_equal(pair.client.simple<CmDestroy>(pair.active), 0);
    pair.fabric.set_power(2, true);
    pair.fabric.cut(1, 2, false); // the reply arrives
    pair.server.expect_none();
    pair.fabric.advance(60 * SECOND);
    pair.server.expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

void host_without_power_sends_nothing(void **) {
    CmPair pair("rxe");
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
    CmPair pair("rxe");
    const uint32_t listener = pair.server.listener();
    assert_int_equal(pair.client.connect(pair.client.resolved()), 0);
    assert_int_equal(pair.server.simple<CmDestroy>(listener), 0);
    pair.client.expect(RDMA_CM_EVENT_REJECTED, 28);
    pair.server.expect_none();
}

// ucma.c, ucma_migrate_id()
void migrated_id_keeps_its_events(void **) {
    CmPair pair("rxe");
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

// cma.c, cma_set_req_event_data(), and cm.c, cm_req_handler(): before rdma_accept(), the depths
// are those of the request, with exchanged roles.
void attributes_before_the_reply_are_those_of_the_request(void **) {
    CmPair pair("rxe");
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

void message_arrives_after_delay_of_link(void **) {
    CmPair pair("rxe");
    pair.server.listener();
    const uint32_t active = pair.client.resolved();
    pair.fabric.set_delay(1, 2, SECOND);
    assert_int_equal(pair.client.connect(active), 0);
    pair.fabric.advance(SECOND - 1);
    pair.server.expect_none();
    pair.fabric.advance(SECOND);
    pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
}

void message_does_not_overtake_an_earlier_one(void **) {
    CmPair pair("rxe");
    pair.server.listener();
    const uint32_t first = pair.client.resolved(), second = pair.client.resolved();
    pair.fabric.set_delay(1, 2, SECOND);
    assert_int_equal(pair.client.connect(first), 0);
    pair.fabric.set_delay(1, 2, 0);
    assert_int_equal(pair.client.connect(second), 0);
    pair.server.expect_none();
    pair.fabric.advance(SECOND);
    pair.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
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
        cmocka_unit_test(lost_message_is_repeated),
        cmocka_unit_test(values_of_the_program_are_kept),
        cmocka_unit_test(requests_beyond_the_backlog_are_rejected),
        cmocka_unit_test(each_side_gets_one_disconnected_event),
        cmocka_unit_test(lost_disconnection_has_no_effect_after_that_of_the_peer),
        cmocka_unit_test(message_to_live_peer_without_response_expires_after_retries),
        cmocka_unit_test(response_ends_the_wait_of_a_connection),
        cmocka_unit_test(disconnection_over_cut_link_is_timed_out),
        cmocka_unit_test(dead_process_is_reported_to_its_peer),
        cmocka_unit_test(reply_to_a_destroyed_id_expires),
        cmocka_unit_test(host_without_power_sends_nothing),
        cmocka_unit_test(pending_requests_are_rejected_with_their_listener),
        cmocka_unit_test(migrated_id_keeps_its_events),
        cmocka_unit_test(attributes_before_the_reply_are_those_of_the_request),
        cmocka_unit_test(message_arrives_after_delay_of_link),
        cmocka_unit_test(message_does_not_overtake_an_earlier_one),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
