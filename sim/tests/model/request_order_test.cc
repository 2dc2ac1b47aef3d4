// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// request_order_test.cc -- the order in which a target executes the requests of a queue pair.
// The sources of the expected values are those of execution_test.cc.

#include "ranges.hh"

#include <deque>
#include <vector>

namespace {

using namespace sim;

constexpr uint64_t MS = 1'000'000;

// Each response has the next of these delays, or none.
struct Responses : Scheduler {
    std::deque<uint64_t> delays;
    uint64_t delay(Delayed what) override {
        if (what != Delayed::RESPONSE || delays.empty())
            return 0;
        const uint64_t next = delays.front();
        delays.pop_front();
        return next;
    }
};

// 10.8.3.3, table 79: a fence waits for all earlier reads and atomic operations, whichever ends
// last, and for nothing else. The responses of the first two requests take 5 ms and 1 ms.
void fenced_request_follows_all_earlier_reads(void **) {
    static const struct {
        ibv_wr_opcode first, second;
        unsigned flags;
        uint64_t executed; // in ms
    } rows[] = {
        {IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_SEND_FENCE, 5},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ, IBV_SEND_FENCE, 5},
        {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_FENCE, 5},
        {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_SEND_FENCE, 1},
        {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_SEND_FENCE, 0},
        {IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, 0, 0},
    };
    for (const auto &row : rows) {
        Responses scheduler;
        scheduler.delays = {5 * MS, MS};
        Pair pair({.scheduler = &scheduler});
        assert_int_equal(pair.post(row.first, 8), 0);
        assert_int_equal(pair.post(row.second, 8, at(16)), 0);
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, at(64, row.flags)), 0);
        for (uint64_t ms = 0; ms < row.executed; ms++) {
            assert_false(is_written(pair, 64));
            pair.direct.advance(MS);
        }
        assert_true(is_written(pair, 64));
        pair.direct.advance(5 * MS);
        for (int i = 0; i < 3; i++)
            pair.expect(IBV_WC_SUCCESS);
    }
}

struct Passes : Scheduler {
    unsigned choose(Weakness weakness, unsigned) override {
        return weakness == Weakness::FENCE;
    }
};

// Table 79: what may be executed before the reads and atomic operations in front of it, if the
// schedule chooses so. The last request changes the bytes that the first one returns.
void request_without_a_fence_is_executed_before_reads(void **) {
    constexpr auto READ = IBV_WR_RDMA_READ, WRITE = IBV_WR_RDMA_WRITE,
                   ADD = IBV_WR_ATOMIC_FETCH_AND_ADD;
    static const struct {
        ibv_wr_opcode first, second, last;
        unsigned flags;
        bool passes;
    } rows[] = {
        {READ, READ, WRITE, 0, true},  {READ, READ, WRITE, IBV_SEND_FENCE, false},
        {ADD, READ, WRITE, 0, true},   {READ, ADD, WRITE, 0, true},
        {READ, READ, ADD, 0, true},    {READ, READ, ADD, IBV_SEND_FENCE, false},
        {ADD, READ, ADD, 0, false},    {READ, READ, READ, 0, false},
        {READ, WRITE, WRITE, 0, true},
    };
    for (const auto &row : rows) {
        Passes scheduler;
        Pair pair({.scheduler = &scheduler});
        pair.direct.fabric().set_delay(1, 2, MS);
        const auto change = [&](ibv_send_wr &wr, ibv_sge &sge) {
            sge.addr += 64;
            wr.send_flags |= row.flags;
            if (row.last == ADD)
                wr.wr.atomic.compare_add = 1;
        };
        assert_int_equal(pair.post(row.first, 8), 0);
        assert_int_equal(pair.post(row.second, 8, at(128)), 0);
        assert_int_equal(pair.post(row.last, 8, change), 0);
        pair.direct.advance(5 * MS);
        assert_int_equal(pair.a.memory[0] != 2, row.passes);
        for (int i = 0; i < 3; i++)
            pair.expect(IBV_WC_SUCCESS);
    }
}

// Table 79: a read follows an earlier read. With SIM_FLUSH_ONLY each one makes the rest of the
// region persistent.
void read_does_not_pass_a_read(void **) {
    Passes scheduler;
    Ranges recorded;
    Pair pair({.persistence = &recorded,
               .scheduler = &scheduler,
               .change_options = [](Options &options) { options.platform = SIM_FLUSH_ONLY; }});
    recorded.begin = pair.b.memory;
    pair.direct.fabric().set_delay(1, 2, MS);
    assert_int_equal(pair.post(IBV_WR_RDMA_READ, 8), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_READ, 8, at(128)), 0);
    pair.direct.advance(5 * MS);
    assert_true(recorded.persistent == (std::vector<Range>{{0, BYTES}, {128, BYTES - 128}}));
    for (int i = 0; i < 2; i++)
        pair.expect(IBV_WC_SUCCESS);
}

// 10.8.3.3 and 10.2.3.1: the queue pair of a failed request executes no later one, also before
// the failure is complete.
void request_behind_a_failed_one_is_not_executed(void **) {
    Pair pair({.device = "mlx5"});
    pair.direct.fabric().set_delay(1, 2, 10 * MS);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8,
                               [](ibv_send_wr &, ibv_sge &sge) { sge.lkey ^= 0xff00; }),
                     0);
    pair.direct.advance(5 * MS);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, at(64)), 0);
    pair.direct.advance(10 * MS); // the second one would arrive
    assert_true(pair.a.is_empty());
    pair.direct.advance(10 * MS);
    pair.expect(IBV_WC_LOC_PROT_ERR);
    pair.expect(IBV_WC_WR_FLUSH_ERR);
    assert_false(is_written(pair, 64));
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_req.c, check_init_depth(): it waits for ever, and so
// do later requests. hw/mlx5/qp.c: the device keeps its own value.
void read_without_depth_is_never_sent_on_rxe(void **) {
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD})
        for (const char *const device : {"rxe", "mlx5"}) {
            const bool is_sent = std::string_view(device) == "mlx5";
            Pair pair({.device = device, .max_rd_atomic = 0});
            assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
            pair.expect(IBV_WC_SUCCESS);
            assert_int_equal(pair.post(opcode, 8, at(16)), 0);
            assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, at(64)), 0);
            pair.direct.advance(1'000'000 * MS);
            assert_true(is_written(pair, 64) == is_sent);
            assert_true(pair.a.is_empty() != is_sent);
        }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(fenced_request_follows_all_earlier_reads),
        cmocka_unit_test(request_without_a_fence_is_executed_before_reads),
        cmocka_unit_test(read_does_not_pass_a_read),
        cmocka_unit_test(request_behind_a_failed_one_is_not_executed),
        cmocka_unit_test(read_without_depth_is_never_sent_on_rxe),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
