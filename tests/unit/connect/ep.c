// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ep.c -- endpoints: listening, and incoming connection requests

#include "fixture.h"

#include <netdb.h>

#define WITH_QP                                                                  \
    "rdma_get_cm_event ibv_create_comp_channel ibv_create_cq ibv_req_notify_cq " \
    "rdma_create_qp_ex "

static void new_ep(void) {
    fixture_peer(&w);
    fixture_listen(&w);
}

static void add_request(const char *data, uint8_t len) {
    fake_cm_event(fixture_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, data, len);
}

// ---- rpma_ep_listen() ----------------------------------------------------------------------

// rpma_ep_listen() uses the defaults of rpma_ep_listen_with().
TEST_THAT(address_is_bound_before_listening) {
    for (int with = 0; with < 2; with++) {
        fixture_reset();
        fixture_peer(&w);
        if (with)
            MUST(rpma_ep_listen_with(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, NULL, &w.h.ep));
        else
            fixture_listen(&w);
        assert_string_equal(logged_line(RPMA_LOG_LEVEL_NOTICE, 0)->message,
                            "listening on 127.0.0.1:" FIXTURE_PORT);
        fixture_expect_name(FIXTURE_ADDRESS, FIXTURE_PORT, AI_PASSIVE);
        assert_true(fake_addr_is(fake_last("rdma_bind_addr")->resolve.addr, 0));
        assert_int_equal(fake_last("rdma_listen")->backlog, 0);
        assert_int_equal(fake_count("rdma_set_option"), 0);
        assert_int_equal(fake_ids_on(fixture_ep_fd(&w)), 1);
    }
}

TEST_THAT(listening_follows_its_configuration) {
    fixture_peer(&w);
    MUST(rpma_ep_cfg_new(&w.h.ep_cfg));
    MUST(rpma_ep_cfg_set_backlog(w.h.ep_cfg, 17));
    for (int only = 0; only < 2; only++)
        for (int address = 0; address < 2; address++) { // IPv4, IPv6
            fake_device()->addresses = 2;
            MUST(rpma_ep_cfg_set_ipv6_only(w.h.ep_cfg, only));
            if (address == 1)
                fake_fail("rdma_bind_addr", 1, EADDRNOTAVAIL);
            MUST(rpma_ep_listen_with(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, w.h.ep_cfg,
                                     &w.h.ep));
            assert_int_equal(fake_last("rdma_listen")->backlog, 17);
            const struct fake_call *option = fake_last("rdma_set_option");
            assert_int_equal(option != NULL, only && address);
            if (option) {
                assert_int_equal(option->option.name, RDMA_OPTION_ID_AFONLY);
                assert_int_equal(option->option.value, 1);
            }
            MUST(rpma_ep_shutdown(&w.h.ep));
        }
}

// ---- rpma_ep_next_conn_req() ---------------------------------------------------------------

// The call returns RPMA_E_NO_EVENT instead of waiting for another event; the next call returns
// the request.
TEST_THAT(address_change_keeps_the_endpoint) {
    for (int bare = 0; bare < 2; bare++) {
        fixture_reset();
        new_ep();
        fake_cm_event(fixture_ep_fd(&w), RDMA_CM_EVENT_ADDR_CHANGE, NULL, 0);
        add_request(NULL, 0);
        WATCH(w.h);
        if (bare)
            EXPECT_ERROR(rpma_ep_next_incoming(w.h.ep, &w.h.req), RPMA_E_NO_EVENT,
                         "RDMA_CM_EVENT_ADDR_CHANGE", "RDMA_CM_EVENT_ADDR_CHANGE",
                         .calls = "rdma_get_cm_event rdma_ack_cm_event",
                         .level = RPMA_LOG_LEVEL_INFO);
        else
            EXPECT_ERROR(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req), RPMA_E_NO_EVENT,
                         "RDMA_CM_EVENT_ADDR_CHANGE", "RDMA_CM_EVENT_ADDR_CHANGE",
                         .calls = "rdma_get_cm_event rdma_ack_cm_event",
                         .level = RPMA_LOG_LEVEL_INFO);
        if (bare)
            MUST(rpma_ep_next_incoming(w.h.ep, &w.h.req));
        else
            MUST(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req));
    }
}

// Shutting down an endpoint does not affect the requests that it has received.
TEST_THAT(request_outlives_the_endpoint) {
    const struct shape shape = {.incoming = true};
    for (int bare = 0; bare < 2; bare++) {
        fixture_reset();
        fake_profile()->transport = SIM_IWARP; // iWARP requests may have no data
        new_ep();
        add_request(NULL, 0);
        if (bare)
            MUST(rpma_ep_next_incoming(w.h.ep, &w.h.req));
        else
            MUST(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req));
        MUST(rpma_ep_shutdown(&w.h.ep));
        if (bare)
            MUST(rpma_conn_req_setup(w.h.req, NULL));
        fixture_connect(&w, &shape);
    }
}

// The original leaks resources of each rejected client. rpma_ep_next_incoming() creates no
// queues.
TEST_THAT(many_clients_can_be_rejected) {
    static char reason[] = "unknown client";
    const struct rpma_conn_private_data why = {reason, sizeof(reason)};
    new_ep();
    const unsigned descriptors = unit_descriptors();
    const size_t bytes = fake_bytes_held();
    for (int i = 0; i < 1000; i++) {
        const bool gives_reason = i % 3 == 2;
        add_request("hello", 5);
        if (i % 3 == 0) {
            MUST(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req));
            MUST(rpma_conn_req_delete(&w.h.req));
        } else {
            MUST(rpma_ep_next_incoming(w.h.ep, &w.h.req));
            MUST(rpma_conn_req_reject(&w.h.req, gives_reason ? &why : NULL));
            EXPECT_CALLS("rdma_reject rdma_destroy_id rdma_destroy_event_channel");
        }
        const struct fake_call *call = fake_last("rdma_reject");
        assert_int_equal(call->connect.param.private_data_len,
                         gives_reason ? sizeof(reason) : 0);
        if (gives_reason)
            assert_memory_equal(call->connect.data, reason, sizeof(reason));
    }
    assert_int_equal(fake_ids_on(fixture_ep_fd(&w)), 1); // only the listener
    assert_int_equal(unit_descriptors(), descriptors);
    assert_int_equal(fake_bytes_held(), bytes);
}

// ../properties/failure_lines.tsv has every rejected configuration. Without a rejection, the
// client would wait. A request without queues can be set up again with another configuration.
TEST_THAT(refused_configuration_rejects_the_client) {
    new_ep();
    MUST(rpma_conn_cfg_new(&w.h.cfg));
    MUST(rpma_conn_cfg_set_max_sge(w.h.cfg, FAKE_MAX_SGE + 1));
    for (int bare = 0; bare < 2; bare++) {
        add_request(NULL, 0);
        if (bare)
            MUST(rpma_ep_next_incoming(w.h.ep, &w.h.req));
        WATCH(w.h);
        EXPECT_ERROR_OF(bare ? "rpma_conn_req_setup" : "rpma_ep_next_conn_req",
                        bare ? rpma_conn_req_setup(w.h.req, w.h.cfg)
                             : rpma_ep_next_conn_req(w.h.ep, w.h.cfg, &w.h.req),
                        RPMA_E_INVAL, "max_sge of cfg",
                        "max_sge of cfg > max_sge of the device",
                        .logs = "max_sge of cfg is 33",
                        .calls = bare ? ""
                                      : "rdma_get_cm_event rdma_reject rdma_destroy_id "
                                        "rdma_ack_cm_event");
        assert_int_equal(fake_pending_on(fixture_ep_fd(&w)), 0);
    }
    MUST(rpma_conn_req_setup(w.h.req, NULL));
}
