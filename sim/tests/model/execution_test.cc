// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// execution_test.cc -- the rules of requester, responder and completer, each by itself. The
// expected values are those of the InfiniBand Architecture Specification, volume 1 (release
// 1.7), and of Linux, drivers/infiniband; the comment of a test names the section or function.

#include "../client/pair.hh"

#include <deque>
#include <memory>
#include <vector>

namespace {

using namespace sim;

constexpr uint64_t MS = 1'000'000;

// Each response has the next of these delays, or none.
struct Responses : Clock {
    std::deque<uint64_t> delays;
    uint64_t delay(Delayed what) override {
        if (what != Delayed::RESPONSE || delays.empty())
            return 0;
        const uint64_t next = delays.front();
        delays.pop_front();
        return next;
    }
};

const auto at = [](size_t offset, unsigned flags = 0) {
    return [offset, flags](ibv_send_wr &wr, ibv_sge &sge) {
        sge.addr += offset;
        (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? wr.wr.atomic.remote_addr
                                                  : wr.wr.rdma.remote_addr) += offset;
        wr.send_flags |= flags;
    };
};

bool is_written(const Pair &pair, size_t offset) {
    return pair.b.memory[offset] == 1;
}

int change(Side &side, int mask, const std::function<void(ibv_qp_attr &)> &set) {
    ibv_qp_attr attr = {};
    set(attr);
    side.direct.use_host(side.host);
    return ibv_modify_qp(side.qp, &attr, mask);
}

// ---- the requester -------------------------------------------------------------------------

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

// A deleted queue pair executes nothing, and another one that gets its number is not affected
// by the times of the former.
void deleted_queue_pair_has_no_requests(void **) {
    Pair pair({.change_options = [](Options &options) { options.reuses_qp_numbers = true; }});
    pair.direct.fabric().set_delay(1, 2, 10 * MS);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = pair.a.cq;
    attr.cap = {8, 8, 2, 1, 64};
    attr.qp_type = IBV_QPT_RC;
    const uint32_t number = pair.a.qp->qp_num;
    assert_int_equal(ibv_destroy_qp(pair.a.qp), 0);
    pair.a.qp = ibv_create_qp(pair.a.pd, &attr);
    assert_int_equal(pair.a.qp->qp_num, number);
    pair.direct.advance(10 * MS);
    assert_false(is_written(pair, 0));
    assert_true(pair.a.is_empty());
}

// ---- the responder -------------------------------------------------------------------------

struct Range {
    uint64_t offset, length;
    bool operator==(const Range &) const = default;
};

// Records what becomes persistent, and who wrote what, of all memory from an address on.
struct Ranges : Persistence {
    const char *begin = nullptr;
    bool is_volatile = false;
    std::vector<Range> persistent;
    std::vector<std::pair<Range, uint32_t>> writes;
    Range range_of(uint64_t address, size_t length) const {
        return {address - reinterpret_cast<uint64_t>(begin), length};
    }
    void registered(int, const Region &) override {}
    void deregistered(int, const Region &) override {}
    void written(int, uint64_t address, size_t length, uint32_t writer) override {
        writes.push_back({range_of(address, length), writer});
    }
    void persist(int, uint64_t address, size_t length, uint32_t writer) override {
        assert_int_not_equal(writer, 0);
        persistent.push_back(range_of(address, length));
    }
    bool is_persistent(int, uint64_t, size_t) override { return !is_volatile; }
};

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
        sim_level level = SIM_PLATFORM;
        bool has_direct_write = true, is_volatile = false;
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
        {{WRITE(0, 8), READ(64, 8)}, {}, SIM_PLATFORM, false},
        {{WRITE(0, 8), READ(64, 8)}, {}, SIM_PLATFORM, true, true},
        {{WRITE(0, 8), READ(64, 8)}, {{64, BYTES - 64}}, SIM_FLUSH_ONLY},
        {{WRITE(0, 8), READ(0, 1)}, {{0, BYTES}}, SIM_FLUSH_ONLY},
        {{WRITE(0, 8), READ(0, 9)}, {}, SIM_FLUSH_ONLY},
        {{WRITE(0, 8), READ(0, 8)}, {}, SIM_FLUSH_ONLY, false},
#undef WRITE
#undef READ
    };
    for (const auto &row : rows) {
        Ranges recorded;
        recorded.is_volatile = row.is_volatile;
        Pair pair({.persistence = &recorded, .change_options = [&](Options &options) {
                       options.level = row.level;
                       options.has_direct_write = row.has_direct_write;
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

// Annex A19: a flush has a range, or the whole region; only its persistent type makes data
// persistent, and it covers bytes whether or not they were written.
void flush_has_a_range_or_a_region(void **) {
    static const struct {
        uint8_t type, level;
        size_t offset, length;
        std::vector<Range> persistent;
    } rows[] = {{SIM_FLUSH_PERSISTENT, SIM_FLUSH_RANGE, 8, 40, {{8, 40}}},
                {SIM_FLUSH_PERSISTENT, SIM_FLUSH_REGION, 8, 40, {{0, BYTES}}},
                {SIM_FLUSH_PERSISTENT, SIM_FLUSH_REGION, 0, 0, {{0, BYTES}}},
                {SIM_FLUSH_GLOBAL, SIM_FLUSH_RANGE, 8, 40, {}},
                {SIM_FLUSH_GLOBAL, SIM_FLUSH_REGION, 0, 0, {}}};
    for (const auto &row : rows) {
        Ranges recorded;
        Pair pair({.send_ops = SIM_QP_EX_WITH_FLUSH, .persistence = &recorded});
        recorded.begin = pair.b.memory;
        pair.direct.use_host(2);
        ibv_mr *const mr = ibv_reg_mr_iova2(
            pair.b.pd, pair.b.memory, BYTES, reinterpret_cast<uint64_t>(pair.b.memory),
            static_cast<unsigned>(ALL_ACCESS) | SIM_ACCESS_FLUSH_PERSISTENT |
                SIM_ACCESS_FLUSH_GLOBAL);
        assert_non_null(mr);
        pair.direct.use_host(1);
        ibv_qp_ex *const qp = ibv_qp_to_qp_ex(pair.a.qp);
        ibv_wr_start(qp);
        qp->wr_id = 11;
        qp->wr_flags = IBV_SEND_SIGNALED;
        flush_of(qp)(qp, mr->rkey, reinterpret_cast<uint64_t>(pair.b.memory) + row.offset,
                     row.length, row.type, row.level);
        assert_int_equal(ibv_wr_complete(qp), 0);
        pair.expect(IBV_WC_SUCCESS);
        assert_true(recorded.persistent == row.persistent);
        pair.direct.use_host(2);
        assert_int_equal(ibv_dereg_mr(mr), 0);
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

// 9.4.5: the word before is returned; compare-and-swap writes only an equal word.
void atomic_operation_returns_the_word_before(void **) {
    static const struct {
        ibv_wr_opcode opcode;
        uint64_t before, compare_add, swap, after;
    } rows[] = {{IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 7, 99, 12},
                {IBV_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 2, 0, 1},
                {IBV_WR_ATOMIC_CMP_AND_SWP, 5, 5, 99, 99},
                {IBV_WR_ATOMIC_CMP_AND_SWP, 5, 6, 99, 5}};
    for (const auto &row : rows) {
        Pair pair;
        memcpy(pair.b.memory, &row.before, 8);
        assert_int_equal(pair.post(row.opcode, 8,
                                   [&](ibv_send_wr &wr, ibv_sge &) {
                                       wr.wr.atomic.compare_add = row.compare_add;
                                       wr.wr.atomic.swap = row.swap;
                                   }),
                         0);
        pair.expect(IBV_WC_SUCCESS);
        assert_memory_equal(pair.a.memory, &row.before, 8);
        assert_memory_equal(pair.b.memory, &row.after, 8);
        assert_int_equal(pair.b.memory[8], 2);
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

// 10.2.9.3 and 11.5.1.2, SRQ limit reached: once, if fewer receives than the limit are left.
void limit_of_an_srq_is_reported_once(void **) {
    for (const uint32_t limit : {0U, 1U, 2U, 3U}) {
        Pair pair({.has_srq = true});
        ibv_srq_attr attr = {};
        for (int i = 0; i < 4; i++)
            pair.receive(64);
        attr.srq_limit = limit;
        pair.direct.use_host(2);
        assert_int_equal(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_LIMIT), 0);
        for (uint32_t left = 4; left-- > 0;) {
            assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
            const bool is_reported = limit > 0 && left == limit - 1;
            assert_int_equal(pair.b.has_event(), is_reported);
            if (!is_reported)
                continue;
            const ibv_async_event event = pair.b.event();
            assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
            assert_ptr_equal(event.element.srq, pair.b.srq);
            assert_int_equal(ibv_query_srq(pair.b.srq, &attr), 0);
            assert_int_equal(attr.srq_limit, 0);
        }
    }
}

// 9.7.7.2.6 and 10.2.9: receives are taken in their order, of an SRQ by whoever is first.
void receives_are_taken_in_their_order(void **) {
    for (const bool has_srq : {false, true}) {
        Pair pair({.has_srq = has_srq});
        for (uint64_t i = 0; i < 3; i++) {
            ibv_sge sge = {reinterpret_cast<uint64_t>(pair.b.memory) + 64 * i, 64,
                           pair.b.mr->lkey};
            ibv_recv_wr wr = {}, *bad;
            wr.wr_id = 100 + i;
            wr.sg_list = &sge;
            wr.num_sge = 1;
            pair.direct.use_host(2);
            assert_int_equal(has_srq ? ibv_post_srq_recv(pair.b.srq, &wr, &bad)
                                     : ibv_post_recv(pair.b.qp, &wr, &bad),
                             0);
        }
        for (uint64_t i = 0; i < 3; i++) {
            assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
            assert_int_equal(pair.b.memory[64 * i], 1);
            assert_int_equal(pair.b.memory[64 * i + 8], 2);
            assert_int_equal(pair.b.poll().wr_id, 100 + i);
        }
    }
}

// ---- the completer -------------------------------------------------------------------------

// 11.4.2.1, tables 109 and 110. The target has the immediate data and the length of the
// message, the requester the opcode of its request.
void completion_is_that_of_its_request(void **) {
    static const struct {
        ibv_wr_opcode opcode;
        ibv_wc_opcode sent, received;
        bool has_receive, has_imm;
    } rows[] = {
        {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_RECV, false, false},
        {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, true, true},
        {IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, true, false},
        {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true, true},
        {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, IBV_WC_RECV, false, false},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, IBV_WC_RECV, false, false},
        {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, IBV_WC_RECV, false, false}};
    for (const auto &row : rows) {
        Pair pair;
        pair.receive(64);
        assert_int_equal(
            pair.post(row.opcode, 8,
                      [&](ibv_send_wr &wr, ibv_sge &) { wr.imm_data = htobe32(0x1234567); }),
            0);
        const ibv_wc sent = pair.a.poll();
        assert_int_equal(sent.status, IBV_WC_SUCCESS);
        assert_int_equal(sent.opcode, row.sent);
        assert_int_equal(sent.qp_num, pair.a.qp->qp_num);
        assert_int_equal(sent.wr_id, 11);
        if (!row.has_receive) {
            assert_true(pair.b.is_empty());
            continue;
        }
        const ibv_wc wc = pair.b.poll();
        assert_int_equal(wc.opcode, row.received);
        assert_int_equal(wc.byte_len, 8);
        assert_int_equal(wc.wr_id, 22);
        assert_int_equal(wc.qp_num, pair.b.qp->qp_num);
        assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, row.has_imm ? IBV_WC_WITH_IMM : 0);
        if (row.has_imm)
            assert_int_equal(wc.imm_data, htobe32(0x1234567));
    }
}

// 10.8.6 and 11.4.2.2: an armed queue has one event. One that is armed for solicited
// completions has it for a solicited message or an error, but not for sends.
void armed_queue_has_one_event(void **) {
    static const struct {
        int solicited_only;
        unsigned flags;
        ibv_wr_opcode opcode;
        bool fails, has_event;
    } rows[] = {{0, 0, IBV_WR_SEND, false, true},
                {0, IBV_SEND_SOLICITED, IBV_WR_SEND, false, true},
                {1, 0, IBV_WR_SEND, false, false},
                {1, IBV_SEND_SOLICITED, IBV_WR_SEND, false, true},
                {1, IBV_SEND_SOLICITED, IBV_WR_RDMA_WRITE_WITH_IMM, false, true},
                {1, 0, IBV_WR_RDMA_WRITE_WITH_IMM, false, false},
                {1, 0, IBV_WR_SEND, true, true}};
    for (const auto &row : rows) {
        Pair pair({.device = "mlx5"});
        pair.direct.use_host(1);
        assert_int_equal(ibv_req_notify_cq(pair.a.cq, 1), 0);
        pair.direct.use_host(2);
        assert_int_equal(ibv_req_notify_cq(pair.b.cq, row.solicited_only), 0);
        pair.receive(row.fails ? 4 : 64);
        pair.receive(64);
        const auto set = [&](ibv_send_wr &wr, ibv_sge &) { wr.send_flags |= row.flags; };
        assert_int_equal(pair.post(row.opcode, 8, set), 0);
        assert_int_equal(pair.post(row.opcode, 8, set), 0);
        const auto events = [](const Side &side) {
            int count = 0;
            ibv_cq *cq;
            void *context;
            side.direct.use_host(side.host);
            for (; ibv_get_cq_event(side.channel, &cq, &context) == 0; count++)
                ibv_ack_cq_events(cq, 1);
            return count;
        };
        assert_int_equal(events(pair.b), row.has_event);
        assert_int_equal(events(pair.a), row.fails);
    }
}

// 10.8.5.1: an unsignaled request has a completion only if it fails; requests after a failure
// are flushed, whether signaled or not, and complete in their order. Linux,
// drivers/infiniband/hw/irdma: the completion of a failure is that of the oldest request.
void unsignaled_request_completes_only_with_an_error(void **) {
    static const struct {
        const char *device;
        std::vector<std::pair<uint64_t, ibv_wc_status>> completions;
    } rows[] = {{"mlx5",
                 {{2, IBV_WC_SUCCESS},
                  {4, IBV_WC_REM_ACCESS_ERR},
                  {5, IBV_WC_WR_FLUSH_ERR},
                  {6, IBV_WC_WR_FLUSH_ERR}}},
                {"irdma-roce",
                 {{2, IBV_WC_SUCCESS},
                  {3, IBV_WC_REM_ACCESS_ERR},
                  {4, IBV_WC_WR_FLUSH_ERR},
                  {5, IBV_WC_WR_FLUSH_ERR},
                  {6, IBV_WC_WR_FLUSH_ERR}}}};
    for (const auto &row : rows) {
        Pair pair({.device = row.device});
        for (uint64_t i = 1; i <= 6; i++)
            assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8,
                                       [&](ibv_send_wr &wr, ibv_sge &) {
                                           wr.wr_id = i;
                                           wr.send_flags =
                                               i == 2 || i == 5 ? IBV_SEND_SIGNALED : 0;
                                           wr.wr.rdma.rkey ^= i == 4 ? 0xff00 : 0;
                                       }),
                             0);
        for (const auto &[id, status] : row.completions) {
            const ibv_wc wc = pair.a.poll();
            assert_int_equal(wc.wr_id, id);
            assert_int_equal(wc.status, status);
        }
        assert_true(pair.a.is_empty());
    }
}

// 10.2.10.1 and 11.5.3.1: a queue overrun fails the queue pairs whose sends or receives
// complete there. Linux, drivers/infiniband/sw/rxe/rxe_cq.c, rxe_cq_post(): only the completion
// is lost.
void overrun_fails_senders_and_receivers(void **) {
    for (const char *const device : {"mlx5", "rxe"}) {
        const bool is_fatal = strcmp(device, "mlx5") == 0;
        Pair pair({.device = device, .entries = 1});
        ibv_qp_init_attr attr = {};
        pair.direct.use_host(2);
        ibv_cq *const other = ibv_create_cq(pair.b.context, 8, nullptr, nullptr, 0);
        attr.send_cq = other;
        attr.recv_cq = pair.b.cq;
        attr.cap = {1, 1, 1, 1, 0};
        attr.qp_type = IBV_QPT_RC;
        ibv_qp *const receiver = ibv_create_qp(pair.b.pd, &attr);
        attr.send_cq = pair.b.cq;
        attr.recv_cq = other;
        ibv_qp *const sender = ibv_create_qp(pair.b.pd, &attr);
        attr.send_cq = other;
        ibv_qp *const neither = ibv_create_qp(pair.b.pd, &attr);
        for (int i = 0; i < 2; i++)
            pair.receive(64);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
        pair.direct.use_host(2);
        assert_int_equal(pair.b.event().event_type, IBV_EVENT_CQ_ERR);
        ibv_qp_attr got;
        for (ibv_qp *const qp : {receiver, sender, neither}) {
            assert_int_equal(ibv_query_qp(qp, &got, IBV_QP_STATE, &attr), 0);
            assert_int_equal(got.qp_state == IBV_QPS_ERR, is_fatal && qp != neither);
            assert_int_equal(ibv_destroy_qp(qp), 0);
        }
        assert_int_equal(ibv_destroy_cq(other), 0);
    }
}

// rdma-core, providers/mlx5/verbs.c, mlx5_modify_qp() and mlx5_destroy_qp(): remove the
// completions of the queue pair, and no others. The provider of rxe removes none.
void removed_completions_are_those_of_the_queue_pair(void **) {
    for (const char *const device : {"mlx5", "rxe"})
        for (const bool is_reset : {true, false}) {
            const bool removes = strcmp(device, "mlx5") == 0;
            Pair pair({.device = device});
            ibv_qp_init_attr init = {};
            init.send_cq = init.recv_cq = pair.a.cq;
            init.cap = {4, 4, 1, 1, 0};
            init.qp_type = IBV_QPT_RC;
            pair.direct.use_host(1);
            ibv_qp *const other = ibv_create_qp(pair.a.pd, &init);
            ibv_recv_wr wr = {}, *bad;
            ibv_qp_attr attr = {};
            attr.port_num = 1;
            attr.qp_state = IBV_QPS_INIT;
            assert_int_equal(ibv_modify_qp(other, &attr,
                                           IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
                                               IBV_QP_ACCESS_FLAGS),
                             0);
            wr.wr_id = 77;
            assert_int_equal(ibv_post_recv(other, &wr, &bad), 0);
            assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
            attr.qp_state = IBV_QPS_ERR;
            assert_int_equal(ibv_modify_qp(other, &attr, IBV_QP_STATE), 0); // flushes it
            assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
            if (is_reset) {
                assert_int_equal(pair.a.modify(IBV_QPS_RESET, 0), 0);
            } else {
                assert_int_equal(ibv_destroy_qp(pair.a.qp), 0);
                pair.a.qp = ibv_create_qp(pair.a.pd, &init);
            }
            if (!removes)
                pair.expect(IBV_WC_SUCCESS);
            const ibv_wc wc = pair.a.poll();
            assert_int_equal(wc.wr_id, 77);
            assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
            if (!removes)
                pair.expect(IBV_WC_SUCCESS);
            assert_true(pair.a.is_empty());
            assert_int_equal(ibv_destroy_qp(other), 0);
        }
}

// ---- words that become visible later -------------------------------------------------------

// Chosen words of each write become visible when a request orders them.
struct Chosen : Clock {
    std::vector<bool> words;
    std::vector<bool> late_words(Fabric &, size_t count) override {
        return count == words.size() ? words : std::vector<bool>{};
    }
    uint64_t word_delay() const override { return UINT64_MAX; }
};

// o9-20 and 9.5: only a later request of the same queue pair orders a word. What a program
// gives back (a region, a queue pair, itself) contains all words before.
void late_word_is_visible_when_its_memory_is_given_back(void **) {
    enum What { DEREGISTER, REREGISTER, DESTROY, RESET, KILL, KILL_ANOTHER, OTHER_QP, COUNT };
    for (unsigned what = 0; what < COUNT; what++) {
        Chosen scheduler;
        scheduler.words = {false, true, false};
        Pair pair({.device = "mlx5", .scheduler = &scheduler});
        Side c(pair.direct, 1, false, 0, 32), d(pair.direct, 2, false, 0, 32);
        Pair::connect(c, d, {});
        Pair::connect(d, c, {});
        constexpr int PID = 77;
        pair.direct.fabric().qps.at(pair.b.qp->qp_num)->pid = PID;
        const auto visible = [&] { return is_written(pair, 8 + 7); };
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 24), 0);
        assert_true(is_written(pair, 0) && is_written(pair, 16) && !visible());
        pair.direct.use_host(2);
        ibv_sge sge = {reinterpret_cast<uint64_t>(c.memory), 8, c.mr->lkey};
        ibv_send_wr wr = {}, *bad;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_RDMA_READ;
        wr.wr.rdma = {reinterpret_cast<uint64_t>(d.memory), d.mr->rkey};
        switch (what) {
        case DEREGISTER:
            assert_int_equal(ibv_dereg_mr(pair.b.mr), 0);
            pair.b.mr = ibv_reg_mr(pair.b.pd, pair.b.memory, BYTES, ALL_ACCESS);
            break;
        case REREGISTER:
            assert_int_equal(
                ibv_rereg_mr(pair.b.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), 0);
            break;
        case DESTROY: {
            assert_int_equal(ibv_destroy_qp(pair.b.qp), 0);
            ibv_qp_init_attr attr = {};
            attr.send_cq = attr.recv_cq = pair.b.cq;
            attr.cap = {1, 1, 1, 1, 0};
            attr.qp_type = IBV_QPT_RC;
            pair.b.qp = ibv_create_qp(pair.b.pd, &attr);
            break;
        }
        case RESET:
            assert_int_equal(pair.b.modify(IBV_QPS_RESET, 0), 0);
            break;
        case KILL:
            pair.direct.fabric().interrupt_writes(PID);
            break;
        case KILL_ANOTHER:
            pair.direct.fabric().interrupt_writes(PID + 1);
            break;
        default:
            pair.direct.use_host(1);
            assert_int_equal(ibv_post_send(c.qp, &wr, &bad), 0);
        }
        assert_int_equal(visible(), what != KILL_ANOTHER && what != OTHER_QP);
    }
}

// Late words of two queue pairs that follow each other are written as those of their writers,
// because a flush concerns the writes of its own queue pair.
void late_words_keep_their_writers(void **) {
    Ranges recorded;
    Chosen scheduler;
    scheduler.words = {true};
    Pair pair({.persistence = &recorded, .scheduler = &scheduler});
    Side c(pair.direct, 1, false, 0, 32), d(pair.direct, 2, false, 0, 32);
    Pair::connect(c, d, {});
    Pair::connect(d, c, {});
    pair.direct.use_host(2);
    ibv_mr *const shared = ibv_reg_mr(d.pd, pair.b.memory, BYTES, ALL_ACCESS);
    recorded.begin = pair.b.memory;
    ibv_sge sge = {reinterpret_cast<uint64_t>(c.memory), 8, c.mr->lkey};
    ibv_send_wr wr = {}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma = {reinterpret_cast<uint64_t>(pair.b.memory) + 8, shared->rkey};
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.use_host(1);
    assert_int_equal(ibv_post_send(c.qp, &wr, &bad), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, at(16)), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, at(24)), 0);
    assert_true(recorded.writes.empty());
    pair.direct.use_host(2);
    assert_int_equal(ibv_dereg_mr(shared), 0); // makes all words of the region visible
    const auto &writes = recorded.writes;
    assert_int_equal(writes.size(), 3); // the last two words follow each other
    uint64_t own = 0, other = 0;
    for (const auto &[range, writer] : writes)
        (range.offset == 8 ? other : own) |= 1ULL << writer;
    assert_int_equal(own & other, 0);
    assert_int_equal(own & (own - 1), 0);
}

// A write that begins or ends within a word has a word of its own for each part. A write of
// more than 8 words has 8 parts, of which the first and the last are single words.
void parts_of_a_write_are_words(void **) {
    struct Choice : Clock {
        unsigned chosen = 0, asked = 0;
        unsigned choose(Weakness weakness, unsigned options) override {
            if (weakness != Weakness::WORD_ORDER)
                return 0;
            asked = options;
            return chosen;
        }
        uint64_t word_delay() const override { return UINT64_MAX; }
    };
    static const struct {
        size_t offset, length;
        unsigned chosen, options;
        std::vector<Range> late;
    } rows[] = {
        {0, 8, 1, 1, {{0, 8}}},        {0, 16, 1, 3, {{0, 8}}},       {0, 16, 2, 3, {{8, 8}}},
        {0, 16, 3, 3, {{0, 16}}},      {5, 8, 1, 3, {{5, 3}}},        {5, 8, 2, 3, {{8, 5}}},
        {4, 2, 1, 1, {{4, 2}}},        {0, 64, 0x80, 255, {{56, 8}}}, {0, 80, 1, 255, {{0, 8}}},
        {0, 80, 0x80, 255, {{72, 8}}}, {0, 80, 0xff, 255, {{0, 80}}},
    };
    for (const auto &row : rows) {
        Choice scheduler;
        Pair pair({.scheduler = &scheduler});
        scheduler.chosen = row.chosen;
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, row.length, at(row.offset)), 0);
        assert_int_equal(scheduler.asked, row.options);
        for (size_t i = row.offset; i < row.offset + row.length; i++) {
            const Range &late = row.late[0];
            assert_int_equal(is_written(pair, i),
                             i < late.offset || i >= late.offset + late.length);
        }
        scheduler.chosen = 0;
        assert_int_equal(pair.post(IBV_WR_RDMA_READ, 8, at(2048)), 0);
        for (size_t i = row.offset; i < row.offset + row.length; i++)
            assert_true(is_written(pair, i));
        assert_false(is_written(pair, row.offset + row.length));
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(fenced_request_follows_all_earlier_reads),
        cmocka_unit_test(data_of_a_read_arrives_with_its_response),
        cmocka_unit_test(each_request_arrives_after_the_delay),
        cmocka_unit_test(rnr_timer_has_the_time_of_its_encoding),
        cmocka_unit_test(rnr_retries_are_those_of_one_request),
        cmocka_unit_test(immediate_data_is_pending_until_a_receive),
        cmocka_unit_test(lost_request_fails_after_all_attempts),
        cmocka_unit_test(request_with_a_lost_response_is_executed_once),
        cmocka_unit_test(deleted_queue_pair_has_no_requests),
        cmocka_unit_test(read_makes_what_was_written_persistent),
        cmocka_unit_test(flush_has_a_range_or_a_region),
        cmocka_unit_test(lists_of_differing_sizes_have_the_same_data),
        cmocka_unit_test(atomic_operation_returns_the_word_before),
        cmocka_unit_test(refused_request_has_no_effect),
        cmocka_unit_test(limit_of_an_srq_is_reported_once),
        cmocka_unit_test(receives_are_taken_in_their_order),
        cmocka_unit_test(completion_is_that_of_its_request),
        cmocka_unit_test(armed_queue_has_one_event),
        cmocka_unit_test(unsignaled_request_completes_only_with_an_error),
        cmocka_unit_test(overrun_fails_senders_and_receivers),
        cmocka_unit_test(removed_completions_are_those_of_the_queue_pair),
        cmocka_unit_test(late_word_is_visible_when_its_memory_is_given_back),
        cmocka_unit_test(late_words_keep_their_writers),
        cmocka_unit_test(parts_of_a_write_are_words),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
