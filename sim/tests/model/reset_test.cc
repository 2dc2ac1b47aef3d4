// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// reset_test.cc -- queue pairs that are reset and connected again. The sources of the expected
// values are those of objects_test.cc.

#include "../client/pair.hh"

namespace {

using namespace sim;

// Resets a queue pair, and connects it to the one with this number on the device with this GID.
void connect_again(Side &side, const ibv_gid &gid, uint32_t number, uint32_t psn = 7) {
    ibv_qp_attr attr = {};
    attr.qp_access_flags = ALL_ACCESS;
    attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
    attr.timeout = 14;
    attr.retry_cnt = 1;
    assert_int_equal(side.modify(IBV_QPS_RESET, 0), 0);
    assert_int_equal(connect_qp(side.qp, attr, gid, number, psn), 0);
}

// 9.7.2: a responder executes requests only from the PSN that it expects.
void peer_expects_the_psn(void **) {
    for (const uint32_t psn : {7U, 8U}) {
        Pair pair({.retry_cnt = 0});
        connect_again(pair.a, pair.b.gid, pair.b.qp->qp_num, psn);
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
        assert_int_equal(pair.b.memory[0], psn == 7 ? 1 : 2);
        pair.direct.advance(SECOND);
        pair.expect(psn == 7 ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
    }
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_recv.c, check_addr(): a packet comes from the
// address of the queue pair's path.
void peer_has_the_address_of_its_own_peer(void **) {
    Pair pair({.retry_cnt = 0});
    connect_again(pair.b, pair.b.gid, pair.a.qp->qp_num);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.advance(SECOND);
    pair.expect(IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(pair.b.memory[0], 2);
}

// 10.3.1, reset: the attempts of an earlier request do not shorten those of a later one.
void reset_queue_pair_counts_its_attempts_again(void **) {
    Pair pair({.retry_cnt = 1});
    pair.direct.fabric().cut(1, 2, true);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.advance(100'000'000);
    connect_again(pair.a, pair.b.gid, pair.b.qp->qp_num);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.advance(100'000'000);
    assert_true(pair.a.is_empty());
    pair.direct.advance(40'000'000);
    pair.expect(IBV_WC_RETRY_EXC_ERR);
}

// 10.3.1, reset: the receives that were posted before are removed.
void reset_queue_pair_has_no_receives(void **) {
    Pair pair;
    pair.receive(8);
    connect_again(pair.a, pair.b.gid, pair.b.qp->qp_num);
    connect_again(pair.b, pair.a.gid, pair.a.qp->qp_num);
    assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
    pair.expect(IBV_WC_RNR_RETRY_EXC_ERR);
}

// The entries of requests that were not polled are free again.
void reset_queue_pair_has_room_for_all_requests(void **) {
    for (const char *const device : {"rxe", "mlx5"}) {
        Pair pair({.device = device});
        for (const bool was_reset : {false, true}) {
            if (was_reset) {
                connect_again(pair.a, pair.b.gid, pair.b.qp->qp_num);
                connect_again(pair.b, pair.a.gid, pair.a.qp->qp_num);
            }
            for (int i = 0; i < 8; i++)
                assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
        }
    }
}

// A read orders the writes of its own connection: those before a reset are of another one.
void read_after_a_reset_makes_nothing_older_persistent(void **) {
    Recorded recorded;
    Pair pair({.persistence = &recorded});
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 100), 0);
    pair.expect(IBV_WC_SUCCESS);
    connect_again(pair.a, pair.b.gid, pair.b.qp->qp_num);
    assert_int_equal(pair.post(IBV_WR_RDMA_READ, 8), 0);
    pair.expect(IBV_WC_SUCCESS);
    assert_int_equal(recorded.persisted, 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(peer_expects_the_psn),
        cmocka_unit_test(peer_has_the_address_of_its_own_peer),
        cmocka_unit_test(reset_queue_pair_counts_its_attempts_again),
        cmocka_unit_test(reset_queue_pair_has_no_receives),
        cmocka_unit_test(reset_queue_pair_has_room_for_all_requests),
        cmocka_unit_test(read_after_a_reset_makes_nothing_older_persistent),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
