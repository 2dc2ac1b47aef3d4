// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// completion_test.cc -- receives, completions, events and the words of a write, each by
// itself. The sources of the expected values are those of execution_test.cc.

#include "ranges.hh"

#include <vector>

namespace {

using namespace sim;

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
    constexpr int MORE_THAN_ENTRIES = 70;
    for (const char *const device : {"mlx5", "rxe"})
        for (const bool is_reset : {true, false}) {
            const bool removes = strcmp(device, "mlx5") == 0;
            Pair pair({.device = device});
            for (int i = 0; is_reset && i < MORE_THAN_ENTRIES; i++) { // polled
                assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
                pair.expect(IBV_WC_SUCCESS);
            }
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

// Chosen words of each write of so many words become visible when a request orders them.
struct Chosen : Scheduler {
    unsigned words = 0, late = 0; // bit n of late: word n
    unsigned choose(Weakness weakness, unsigned options) override {
        return weakness == Weakness::WORD_ORDER && options == (1U << words) - 1 ? late : 0;
    }
};

// o9-20 and 9.5: only a later request of the same queue pair orders a word. What a program
// gives back (a region, a queue pair, itself) contains all words before.
void late_word_is_visible_when_its_memory_is_given_back(void **) {
    enum What { DEREGISTER, REREGISTER, DESTROY, RESET, KILL, KILL_ANOTHER, OTHER_QP, COUNT };
    for (unsigned what = 0; what < COUNT; what++) {
        Chosen scheduler;
        scheduler.words = 3;
        scheduler.late = 2;
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
    scheduler.words = scheduler.late = 1;
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
    struct Choice : Scheduler {
        unsigned chosen = 0, asked = 0;
        unsigned choose(Weakness weakness, unsigned options) override {
            if (weakness != Weakness::WORD_ORDER)
                return 0;
            asked = options;
            return chosen;
        }
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
        cmocka_unit_test(flush_has_a_range_or_a_region),
        cmocka_unit_test(atomic_operation_returns_the_word_before),
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
