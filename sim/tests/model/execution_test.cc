// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// execution_test.cc -- the rules of requester, responder and completer, each by itself. The
// expected values are those of the InfiniBand Architecture Specification, volume 1 (release
// 1.7), and of Linux, drivers/infiniband; the comment of a test names the section or function.

#include "ranges.hh"

#include <utility>
#include <vector>

namespace {

using namespace sim;

constexpr uint64_t MS = 1'000'000;

int change(Side &side, int mask, const std::function<void(ibv_qp_attr &)> &set) {
    ibv_qp_attr attr = {};
    set(attr);
    side.direct.use_host(side.host);
    return ibv_modify_qp(side.qp, &attr, mask);
}

// ---- the requester -------------------------------------------------------------------------

// 9.4.4: data of a read is there when its response has arrived, not earlier.
void data_of_a_read_arrives_with_its_response(void **) {
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
        Pair pair;
        pair.direct.fabric().set_delay(1, 2, MS);
        assert_int_equal(pair.post(opcode, 8), 0);
        pair.direct.advance(MS); // the target executes it
        memset(pair.b.memory, 9, 8);
        pair.direct.advance(MS - 1);
        assert_int_equal(pair.a.memory[0], 1);
        pair.direct.advance(1);
        assert_int_equal(pair.a.memory[0], 2);
        pair.expect(IBV_WC_SUCCESS);
    }
}

// Requests that were posted at different times arrive at different times.
void each_request_arrives_after_the_delay(void **) {
    Pair pair;
    pair.direct.fabric().set_delay(1, 2, 10 * MS);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.advance(5 * MS);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, at(64)), 0);
    pair.direct.advance(5 * MS);
    assert_true(is_written(pair, 0));
    assert_false(is_written(pair, 64));
    pair.direct.advance(5 * MS);
    assert_true(is_written(pair, 64));
    assert_true(pair.a.is_empty());
    pair.direct.advance(5 * MS);
    pair.expect(IBV_WC_SUCCESS);
    assert_true(pair.a.is_empty());
    pair.direct.advance(5 * MS);
    pair.expect(IBV_WC_SUCCESS);
}

// Table 45, encoding for the RNR NAK timer field, in units of 10 us. Linux,
// drivers/infiniband/sw/rxe/rxe_comp.c, rnrnak_usec[].
void rnr_timer_has_the_time_of_its_encoding(void **) {
    static const uint32_t TIMES[] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                     16,    24,   32,   48,    64,    96,    128,   192,
                                     256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                     4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
    for (uint8_t encoded = 0; encoded < 32; encoded++) {
        Pair pair({.rnr_retry = 1});
        assert_int_equal(change(pair.b, IBV_QP_MIN_RNR_TIMER,
                                [&](ibv_qp_attr &attr) { attr.min_rnr_timer = encoded; }),
                         0);
        assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
        pair.direct.advance(TIMES[encoded] * 10'000ULL - 1);
        assert_true(pair.a.is_empty());
        pair.direct.advance(1);
        pair.expect(IBV_WC_RNR_RETRY_EXC_ERR);
    }
}

// 9.7.5.2.8: the counter is loaded again for each request, and 7 is without a limit.
void rnr_retries_are_those_of_one_request(void **) {
    for (const uint8_t retries : {uint8_t{1}, uint8_t{3}, uint8_t{6}}) {
        Pair pair({.rnr_retry = retries});
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
            pair.direct.advance(retries * 1'280'000 - 1);
            assert_true(pair.a.is_empty());
            pair.receive(64);
            pair.expect(IBV_WC_SUCCESS);
        }
        assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
        pair.direct.advance(retries * 1'280'000);
        pair.expect(IBV_WC_RNR_RETRY_EXC_ERR);
    }
}

// 9.7.5.2.8: a message and immediate data need a receive, also without other data.
void immediate_data_is_pending_until_a_receive(void **) {
    for (const ibv_wr_opcode opcode :
         {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM})
        for (const size_t length : {0U, 8U}) {
            Pair pair({.rnr_retry = 7});
            assert_int_equal(pair.post(opcode, length), 0);
            pair.direct.advance(SECOND);
            assert_true(pair.a.is_empty());
            assert_false(is_written(pair, 0));
            pair.receive(64);
            pair.expect(IBV_WC_SUCCESS);
            assert_int_equal(pair.b.poll().byte_len, length);
            assert_int_equal(is_written(pair, 0), length > 0);
        }
}

// 9.9.2.4.1 and 11.2.5.2: 4.096 us * 2^n for each attempt, 0 without a limit. Linux,
// drivers/infiniband/hw/irdma/verbs.c, irdma_modify_qp_roce(): does not read the timeout, for
// which 4.3 s are assumed; sw/rxe/rxe_comp.c, rxe_completer(): does not count 7 retries.
void lost_request_fails_after_all_attempts(void **) {
    static const struct {
        const char *device;
        uint8_t timeout, retry_cnt;
        uint64_t time; // 0: without a limit
    } rows[] = {
        {"rxe", 1, 0, 8'192},
        {"rxe", 1, 6, 7 * 8'192},
        {"rxe", 10, 2, 3 * 4'194'304},
        {"rxe", 14, 7, 0},
        {"mlx5", 14, 7, 8 * 67'108'864},
        {"rxe", 31, 0, 4'096ULL << 31},
        {"rxe", 0, 3, 0},
        {"mlx5", 8, 1, 2 * 1'048'576},
        {"irdma-roce", 1, 0, 4'294'967'296},
        {"irdma-roce", 0, 0, 4'294'967'296},
    };
    for (const auto &row : rows) {
        Pair pair({.device = row.device, .retry_cnt = row.retry_cnt, .timeout = row.timeout});
        pair.direct.fabric().cut(1, 2, true);
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
        if (row.time == 0) {
            pair.direct.advance(1'000'000 * SECOND);
            assert_true(pair.a.is_empty());
            pair.direct.fabric().cut(1, 2, false);
            pair.expect(IBV_WC_SUCCESS);
            continue;
        }
        pair.direct.advance(row.time - 1);
        assert_true(pair.a.is_empty());
        pair.direct.advance(1);
        pair.expect(IBV_WC_RETRY_EXC_ERR);
        pair.expect(IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(pair.a.state(), IBV_QPS_ERR);
        assert_int_equal(pair.b.state(), IBV_QPS_RTS);
    }
}

struct FirstIsLate : Scheduler {
    uint64_t late = 10 * MS;
    uint64_t delay(Delayed) override { return std::exchange(late, 0); }
};

void request_behind_a_late_one_waits_also_without_responses(void **) {
    FirstIsLate scheduler;
    Pair pair({.retry_cnt = 3, .scheduler = &scheduler});
    pair.direct.fabric().cut_one_way(2, 1, true);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 16), 0);
    assert_int_equal(pair.b.memory[0], 2);
    pair.direct.advance(10 * MS);
    assert_int_equal(pair.b.memory[0], 1);
    assert_int_equal(pair.b.memory[15], 1);
}

// 9.4.4 and 9.7.5.1.3: the target executes a repeated request once, but repeats a read.
void request_with_a_lost_response_is_executed_once(void **) {
    static const struct {
        ibv_wr_opcode opcode;
        char read; // of a.memory
    } rows[] = {{IBV_WR_RDMA_WRITE, 1}, {IBV_WR_RDMA_READ, 9}, {IBV_WR_SEND, 1}};
    for (const auto &row : rows) {
        Pair pair({.retry_cnt = 3});
        pair.receive(64);
        pair.direct.fabric().cut_one_way(2, 1, true);
        assert_int_equal(pair.post(row.opcode, 8), 0);
        assert_int_equal(pair.b.memory[0], row.opcode == IBV_WR_RDMA_READ ? 2 : 1);
        memset(pair.b.memory, 9, 8);
        pair.direct.advance(100 * MS);
        assert_true(pair.a.is_empty());
        pair.direct.fabric().cut_one_way(2, 1, false);
        pair.expect(IBV_WC_SUCCESS);
        assert_int_equal(pair.b.memory[0], 9);
        assert_int_equal(pair.a.memory[0], row.read);
        const bool receives = row.opcode == IBV_WR_SEND;
        pair.direct.use_host(2);
        assert_int_equal(pair.b.is_empty(), !receives);
    }
}

// A refused request fails the queue pair of the target, which answers no repetition.
void refusal_with_a_lost_response_is_no_success(void **) {
    Pair pair({.retry_cnt = 1});
    pair.direct.fabric().cut_one_way(2, 1, true);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8,
                               [](ibv_send_wr &wr, ibv_sge &) { wr.wr.rdma.rkey ^= 0x100; }),
                     0);
    pair.direct.advance(MS);
    pair.direct.fabric().cut_one_way(2, 1, false);
    assert_true(pair.a.is_empty());
    pair.direct.advance(1000 * MS);
    pair.expect(IBV_WC_RETRY_EXC_ERR);
}

// 10.8.3.1: a queue pair in the error state flushes the requests that are not completed. Linux
// 7.3, drivers/infiniband/sw/rxe/rxe_comp.c, flush_send_queue(): also those that the target has
// executed, whose response is still in the network.
void request_without_its_response_is_flushed(void **) {
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ})
        for (const uint64_t after : {MS, 2 * MS}) {
            const bool has_response = after == 2 * MS;
            Pair pair;
            pair.direct.fabric().set_delay(1, 2, MS);
            assert_int_equal(pair.post(opcode, 8), 0);
            pair.direct.advance(after);
            assert_true(is_written(pair, 0) == (opcode == IBV_WR_RDMA_WRITE));
            assert_int_equal(pair.a.modify(IBV_QPS_ERR, 0), 0);
            pair.expect(has_response ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
            assert_int_equal(pair.a.memory[0],
                             opcode == IBV_WR_RDMA_READ && has_response ? 2 : 1);
        }
}

void deleted_queue_pair_has_no_requests(void **) {
    Pair pair;
    pair.direct.fabric().set_delay(1, 2, 10 * MS);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = pair.a.cq;
    attr.cap = {8, 8, 2, 1, 64};
    attr.qp_type = IBV_QPT_RC;
    assert_int_equal(ibv_destroy_qp(pair.a.qp), 0);
    pair.a.qp = ibv_create_qp(pair.a.pd, &attr);
    pair.direct.advance(10 * MS);
    assert_false(is_written(pair, 0));
    assert_true(pair.a.is_empty());
}

// ---- the responder -------------------------------------------------------------------------

struct Operation {
    ibv_wr_opcode opcode;
    size_t offset, length;
    bool is_refused = false;
};

// PCI Express Base Specification, 2.4.1: a read does not pass earlier writes. Only bytes that
// were written become persistent, once, and a refused operation reads nothing. The write of an
// atomic operation follows its read. With SIM_FLUSH_ONLY, a flush is a read of up to 8 bytes,
// whose range is from its address to the end of the region.
void read_makes_what_was_written_persistent(void **) {
    static const struct {
        std::vector<Operation> operations;
        std::vector<Range> persistent;
        sim_platform platform = SIM_DIRECT_WRITE;
        bool is_volatile = false;
    } rows[] = {
#define WRITE(offset, length) {IBV_WR_RDMA_WRITE, offset, length}
#define READ(offset, length) \
    { IBV_WR_RDMA_READ, offset, length }
        {{WRITE(0, 8), WRITE(8, 8)}, {}},
        {{WRITE(0, 8), WRITE(8, 8), READ(64, 8)}, {{0, 16}}},
        {{WRITE(0, 8), WRITE(16, 8), READ(64, 8)}, {{0, 8}, {16, 8}}},
        {{WRITE(16, 8), WRITE(8, 8), READ(64, 8)}, {{16, 8}, {8, 8}}},
        {{WRITE(0, 8), WRITE(4, 8), READ(64, 8)}, {{0, 8}, {4, 8}}},
        {{WRITE(0, 8), READ(64, 1), READ(64, 8)}, {{0, 8}}},
        {{WRITE(0, 8), READ(64, 8), WRITE(8, 8), READ(64, 8)}, {{0, 8}, {8, 8}}},
        {{WRITE(0, 8), READ(64, 0)}, {}},
        {{WRITE(0, 8), {IBV_WR_RDMA_READ, 64, 8, true}}, {}},
        {{WRITE(0, 8), {IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 8, true}}, {}},
        {{{IBV_WR_RDMA_WRITE_WITH_IMM, 32, 8}, READ(64, 8)}, {{32, 8}}},
        {{{IBV_WR_SEND, 0, 24}, READ(64, 8)}, {{0, 24}}},
        {{WRITE(0, 8), {IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 8}}, {{0, 8}}},
        {{{IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 8}, READ(0, 8)}, {{64, 8}}},
        {{WRITE(0, 8), READ(64, 8)}, {}, SIM_CPU_FLUSH},
        {{WRITE(0, 8), READ(64, 8)}, {}, SIM_DIRECT_WRITE, true},
        {{WRITE(0, 8), READ(64, 8)}, {{64, BYTES - 64}}, SIM_FLUSH_ONLY},
        {{WRITE(0, 8), READ(0, 1)}, {{0, BYTES}}, SIM_FLUSH_ONLY},
        {{WRITE(0, 8), READ(0, 9)}, {}, SIM_FLUSH_ONLY},
#undef WRITE
#undef READ
    };
    for (const auto &row : rows) {
        Ranges recorded;
        recorded.is_volatile = row.is_volatile;
        Pair pair({.persistence = &recorded, .change_options = [&](Options &options) {
                       options.platform = row.platform;
                   }});
        recorded.begin = pair.b.memory;
        pair.receive(64);
        for (const Operation &each : row.operations) {
            const auto refuse = [&](ibv_send_wr &wr, ibv_sge &sge) {
                at(each.offset)(wr, sge);
                if (each.is_refused)
                    (wr.opcode == IBV_WR_RDMA_READ ? wr.wr.rdma.rkey : wr.wr.atomic.rkey) = 1;
            };
            assert_int_equal(pair.post(each.opcode, each.length, refuse), 0);
            pair.expect(each.is_refused ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
        }
        if (recorded.persistent != row.persistent)
            fail_msg("row %td: %zu ranges, the first of %zu", &row - rows,
                     recorded.persistent.size(),
                     recorded.persistent.empty() ? 0 : recorded.persistent[0].length);
    }
}

// 10.7.3.2: the data of an SGE follows that of the SGE before, in lists that differ in their
// sizes. The lengths exceed what the fabric copies at once.
void lists_of_differing_sizes_have_the_same_data(void **) {
    constexpr size_t LENGTH = 700'001;
    static const size_t FIRST[] = {1, 300'007, 262'144, 700'000};
    std::vector<unsigned char> from(LENGTH), to(LENGTH + 1);
    for (size_t i = 0; i < LENGTH; i++)
        from[i] = static_cast<unsigned char>(i * 2'654'435'761U >> 13);
    for (const size_t first : FIRST) {
        Pair pair;
        pair.direct.use_host(1);
        ibv_mr *const own = ibv_reg_mr(pair.a.pd, from.data(), LENGTH, ALL_ACCESS);
        pair.direct.use_host(2);
        ibv_mr *const remote = ibv_reg_mr(pair.b.pd, to.data(), LENGTH + 1, ALL_ACCESS);
        std::fill(to.begin(), to.end(), static_cast<unsigned char>(0));
        ibv_sge list[] = {
            {reinterpret_cast<uint64_t>(from.data()), static_cast<uint32_t>(first), own->lkey},
            {reinterpret_cast<uint64_t>(from.data()) + first,
             static_cast<uint32_t>(LENGTH - first), own->lkey}};
        const auto set = [&](ibv_send_wr &wr, ibv_sge &) {
            wr.sg_list = list;
            wr.num_sge = 2;
            wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(to.data());
            wr.wr.rdma.rkey = remote->rkey;
        };
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 0, set), 0);
        pair.expect(IBV_WC_SUCCESS);
        assert_memory_equal(to.data(), from.data(), LENGTH);
        assert_int_equal(to[LENGTH], 0);
        for (size_t i = 0; i < LENGTH; i++)
            to[i] = static_cast<unsigned char>(to[i] + 1);
        assert_int_equal(pair.post(IBV_WR_RDMA_READ, 0, set), 0);
        pair.expect(IBV_WC_SUCCESS);
        assert_memory_equal(to.data(), from.data(), LENGTH);
        for (size_t i = 0; i < LENGTH; i++)
            from[i] = static_cast<unsigned char>(from[i] - 1);
        pair.direct.use_host(1);
        assert_int_equal(ibv_dereg_mr(own), 0);
        pair.direct.use_host(2);
        assert_int_equal(ibv_dereg_mr(remote), 0);
    }
}

// 9.7.4.1.2 and table 64; 9.9.3, table 65: what is refused has a status, moves both queue pairs
// to the error state, changes no memory, and raises the event of C9-222.1 at the target. Linux,
// drivers/infiniband/sw/rxe/rxe_resp.c, check_op_valid(): an access that the queue pair does
// not permit is an invalid request.
void refused_request_has_no_effect(void **) {
    constexpr unsigned KEY = 1, RANGE = 2, ACCESS = 4, LOCAL = 8, ALIGNED = 16, RIGHT = 32;
    static const struct {
        ibv_wr_opcode opcode;
        unsigned wrong;
        ibv_wc_status status;
        bool fails_target, has_event;
    } rows[] = {
        {IBV_WR_RDMA_WRITE, KEY, IBV_WC_REM_ACCESS_ERR, true, true},
        {IBV_WR_RDMA_WRITE, RANGE, IBV_WC_REM_ACCESS_ERR, true, true},
        {IBV_WR_RDMA_WRITE, ACCESS, IBV_WC_REM_INV_REQ_ERR, true, false},
        {IBV_WR_RDMA_WRITE, RIGHT, IBV_WC_REM_ACCESS_ERR, true, true},
        {IBV_WR_RDMA_WRITE, LOCAL, IBV_WC_LOC_PROT_ERR, false, false},
        {IBV_WR_RDMA_READ, KEY, IBV_WC_REM_ACCESS_ERR, true, true},
        {IBV_WR_RDMA_READ, RANGE, IBV_WC_REM_ACCESS_ERR, true, true},
        {IBV_WR_RDMA_READ, ACCESS, IBV_WC_REM_INV_REQ_ERR, true, false},
        {IBV_WR_RDMA_READ, RIGHT, IBV_WC_REM_ACCESS_ERR, true, true},
        {IBV_WR_RDMA_READ, LOCAL, IBV_WC_LOC_PROT_ERR, false, false},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, KEY, IBV_WC_REM_ACCESS_ERR, true, true},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, RANGE, IBV_WC_REM_ACCESS_ERR, true, true},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, ACCESS, IBV_WC_REM_INV_REQ_ERR, true, false},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, RIGHT, IBV_WC_REM_ACCESS_ERR, true, true},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, ALIGNED, IBV_WC_REM_INV_REQ_ERR, true, false},
        {IBV_WR_SEND, LOCAL, IBV_WC_LOC_PROT_ERR, false, false},
    };
    for (const auto &row : rows) {
        Pair pair({.device = "mlx5"});
        char before[64];
        memcpy(before, pair.b.memory, sizeof(before));
        if (row.opcode == IBV_WR_SEND)
            pair.receive(64);
        if (row.wrong == ACCESS)
            assert_int_equal(change(pair.b, IBV_QP_ACCESS_FLAGS, [](ibv_qp_attr &) {}), 0);
        pair.direct.use_host(2);
        if (row.wrong == RIGHT)
            assert_int_equal(ibv_rereg_mr(pair.b.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                                          nullptr, 0, IBV_ACCESS_LOCAL_WRITE),
                             0);
        const auto spoil = [&](ibv_send_wr &wr, ibv_sge &sge) {
            const bool is_atomic = row.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
            auto &key = is_atomic ? wr.wr.atomic.rkey : wr.wr.rdma.rkey;
            auto &remote = is_atomic ? wr.wr.atomic.remote_addr : wr.wr.rdma.remote_addr;
            wr.wr.atomic.compare_add = is_atomic ? 1 : wr.wr.atomic.compare_add;
            key ^= row.wrong == KEY ? 0xff00 : 0;
            remote += row.wrong == RANGE ? BYTES - 7 + is_atomic * 7 : row.wrong == ALIGNED;
            sge.lkey ^= row.wrong == LOCAL ? 0xff00 : 0;
        };
        assert_int_equal(pair.post(row.opcode, 8, spoil), 0);
        pair.expect(row.status);
        assert_int_equal(pair.a.state(), IBV_QPS_ERR);
        assert_int_equal(pair.b.state(), row.fails_target ? IBV_QPS_ERR : IBV_QPS_RTS);
        assert_memory_equal(pair.b.memory, before, sizeof(before));
        assert_int_equal(pair.b.has_event(), row.has_event);
        if (row.has_event)
            assert_int_equal(pair.b.event().event_type, IBV_EVENT_QP_ACCESS_ERR);
        assert_int_equal(pair.a.memory[0], 1);
    }
}

// rxe_resp.c, rxe_resp_check_length(): the target expects its own MTU in all packets but the
// last one, and refuses other messages.
void messages_of_another_mtu_are_refused(void **) {
    static const struct {
        ibv_mtu mtu;
        ibv_wr_opcode opcode;
        size_t length;
        bool is_refused;
    } rows[] = {
        {IBV_MTU_4096, IBV_WR_RDMA_WRITE, 1024, false},
        {IBV_MTU_4096, IBV_WR_RDMA_WRITE, 1025, true},
        {IBV_MTU_256, IBV_WR_RDMA_WRITE, 256, false},
        {IBV_MTU_256, IBV_WR_RDMA_WRITE, 257, true},
        {IBV_MTU_1024, IBV_WR_RDMA_WRITE, 4096, false},
        {IBV_MTU_4096, IBV_WR_RDMA_WRITE_WITH_IMM, 1025, true},
        {IBV_MTU_4096, IBV_WR_SEND, 1024, false},
        {IBV_MTU_4096, IBV_WR_SEND, 1025, true},
    };
    for (const auto &row : rows) {
        Pair pair({.path_mtu = row.mtu});
        pair.receive(4096);
        assert_int_equal(pair.post(row.opcode, row.length), 0);
        pair.expect(row.is_refused ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
        assert_int_equal(pair.b.memory[0], row.is_refused ? 2 : 1);
        assert_int_equal(pair.b.state(), row.is_refused ? IBV_QPS_ERR : IBV_QPS_RTS);
        if (row.opcode == IBV_WR_SEND)
            assert_int_equal(pair.b.poll().status,
                             row.is_refused ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(data_of_a_read_arrives_with_its_response),
        cmocka_unit_test(each_request_arrives_after_the_delay),
        cmocka_unit_test(rnr_timer_has_the_time_of_its_encoding),
        cmocka_unit_test(rnr_retries_are_those_of_one_request),
        cmocka_unit_test(immediate_data_is_pending_until_a_receive),
        cmocka_unit_test(lost_request_fails_after_all_attempts),
        cmocka_unit_test(request_behind_a_late_one_waits_also_without_responses),
        cmocka_unit_test(request_with_a_lost_response_is_executed_once),
        cmocka_unit_test(refusal_with_a_lost_response_is_no_success),
        cmocka_unit_test(request_without_its_response_is_flushed),
        cmocka_unit_test(deleted_queue_pair_has_no_requests),
        cmocka_unit_test(read_makes_what_was_written_persistent),
        cmocka_unit_test(lists_of_differing_sizes_have_the_same_data),
        cmocka_unit_test(refused_request_has_no_effect),
        cmocka_unit_test(messages_of_another_mtu_are_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
