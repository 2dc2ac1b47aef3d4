// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// page.cc -- the client of rpma_cpp(7) returns when the flush has completed, never before, and
// reports the failed call

// The lines of the page are first: they include the headers that they need.
#include "cpp_page.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

extern "C" {
#include "fixture.h"
#include "interrupt.h"
}

static std::array<std::byte, 64> memory;

// A client that is connected to a server with one region and direct write to PMem.
struct client {
    rpma::peer peer{fake_context(0)};
    rpma::mr_local src{peer, memory, RPMA_MR_USAGE_WRITE_SRC};
    rpma::conn conn;

    client() {
        rpma::mr_local target(peer, memory,
                              RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
        rpma::peer_cfg pcfg;
        const rpma::packed packed({target}, pcfg.set_direct_write_to_pmem(true));
        const std::span<const std::byte> data = packed;
        conn = rpma::conn_req(peer, FIXTURE_ADDRESS, FIXTURE_PORT).connect();
        fake_cm_event(conn.get_event_fd(), RDMA_CM_EVENT_ESTABLISHED, data.data(),
                      static_cast<uint8_t>(data.size()));
        if (conn.next_event() != RPMA_CONN_ESTABLISHED)
            std::abort();
    }
};

static ibv_cq *queue;

static void complete_last(enum ibv_wc_status status) {
    const unsigned last = fake_posted_count() - 1;
    const ibv_wc wc = {.wr_id = fake_posted(last)->wr_id, .status = status};
    fake_complete(queue, &wc);
}

static void complete_flush() {
    complete_last(IBV_WC_SUCCESS);
}

static void refuse() {
    complete_last(IBV_WC_REM_ACCESS_ERR);
}

static std::string thrown(const std::function<void()> &call) {
    try {
        call();
    } catch (const std::exception &error) {
        return error.what();
    }
    return "nothing";
}

static void function_of_the_page_returns_after_the_flush_has_completed(void **) {
    client all;
    queue = fake_qp(all.conn.get_qp_num())->send_cq;
    fake_forget();
    interrupt_wait(complete_flush);
    make_persistent(all.conn, all.src, 7);
    interrupt_done();
    assert_int_equal(fake_posted_count(), 2);
    assert_int_equal(fake_posted(0)->opcode, IBV_WR_RDMA_WRITE);
    assert_int_equal(fake_posted(0)->sge.length, 7);
    assert_int_equal(fake_posted(0)->remote_addr, reinterpret_cast<uintptr_t>(memory.data()));
    ibv_wc wc;
    assert_true(all.conn.get_cq().get_wc(wc) == rpma::status::no_completion);
}

static void function_of_the_page_reports_the_failure(void **) {
    client all;
    queue = fake_qp(all.conn.get_qp_num())->send_cq;
    const auto persist = [&] { make_persistent(all.conn, all.src, 7); };
    interrupt_wait(refuse);
    assert_string_equal(thrown(persist).c_str(), ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR));
    interrupt_done();
    for (const char *call : {"ibv_post_send", "ibv_get_cq_event"}) {
        fake_fail(call, 1, EIO);
        assert_non_null(std::strstr(thrown(persist).c_str(), call));
        fake_faults_off();
    }
}

static void function_of_the_page_reports_a_missing_server(void **) {
    rpma::peer peer(fake_context(0));
    fake_fail("rdma_connect", 1, ECONNREFUSED);
    assert_non_null(std::strstr(
        thrown([&] { (void)connect_to(peer, FIXTURE_ADDRESS, FIXTURE_PORT); }).c_str(),
        "Connection refused"));
    fake_fail("rdma_resolve_addr", 1, ENODEV);
    assert_int_equal(run(FIXTURE_ADDRESS, FIXTURE_PORT, memory), 1);
}

int main() {
    const struct CMUnitTest tests[] = {
        TEST(function_of_the_page_returns_after_the_flush_has_completed),
        TEST(function_of_the_page_reports_the_failure),
        TEST(function_of_the_page_reports_a_missing_server),
    };
    return UNIT_RUN("cpp-page", tests);
}
