// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// verbs_test.cc -- libibverbs.so.1 on a fabric in the same process. The expected values are
// those of the InfiniBand Architecture Specification, volume 1, chapter 9, and of Linux,
// drivers/infiniband.

#include "pair.hh"

#include <cerrno>
#include <functional>
#include <poll.h>
#include <sys/mman.h>

namespace {

using namespace sim;

void inline_data_may_change_after_the_post(void **) {
    Pair pair({.rnr_retry = 7});
    char text[] = "inline";
    const auto set = [&](ibv_send_wr &wr, ibv_sge &sge) {
        wr.send_flags |= IBV_SEND_INLINE;
        sge = {reinterpret_cast<uint64_t>(text), sizeof(text), 0};
    };
    assert_int_equal(pair.post(IBV_WR_SEND, 0, set), 0); // waits for a receive
    memset(text, 0, sizeof(text));
    pair.receive(64);
    pair.expect(IBV_WC_SUCCESS);
    assert_string_equal(pair.b.memory, "inline");
}

struct Error {
    const char *what;
    ibv_wr_opcode opcode;
    size_t length;
    std::function<void(Pair &, ibv_send_wr &, ibv_sge &)> change;
    ibv_wc_status status;
    bool reaches_peer; // so that its QP also fails
};

// rxe and siw return other statuses: tests/conformance.
void errors_have_the_status_of_the_specification(void **) {
    const Error errors[] = {
        {"local key", IBV_WR_RDMA_WRITE, 8,
         [](Pair &, ibv_send_wr &, ibv_sge &sge) { sge.lkey ^= 0xff00; }, IBV_WC_LOC_PROT_ERR,
         false},
        {"unaligned atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, 8,
         [](Pair &, ibv_send_wr &wr, ibv_sge &) { wr.wr.atomic.remote_addr += 4; },
         IBV_WC_REM_INV_REQ_ERR, true},
        // Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c: check_rkey(), then atomic_reply()
        {"unaligned atomic, remote key", IBV_WR_ATOMIC_FETCH_AND_ADD, 8,
         [](Pair &, ibv_send_wr &wr, ibv_sge &) {
             wr.wr.atomic.remote_addr += 4;
             wr.wr.atomic.rkey ^= 0xff00;
         },
         IBV_WC_REM_ACCESS_ERR, true},
        {"receive too short", IBV_WR_SEND, 65,
         [](Pair &pair, ibv_send_wr &, ibv_sge &) { pair.receive(64); }, IBV_WC_REM_INV_REQ_ERR,
         true},
        {"key of the receive", IBV_WR_SEND, 8,
         [](Pair &pair, ibv_send_wr &, ibv_sge &) { pair.receive(64, 1); }, IBV_WC_REM_OP_ERR,
         true},
    };
    for (const Error &error : errors) {
        print_message("%s\n", error.what);
        Pair pair({.device = "mlx5"});
        const auto change = [&](ibv_send_wr &wr, ibv_sge &sge) { error.change(pair, wr, sge); };
        assert_int_equal(pair.post(error.opcode, error.length, change), 0);
        pair.expect(error.status);
        assert_int_equal(pair.a.state(), IBV_QPS_ERR);
        assert_int_equal(pair.b.state(), error.reaches_peer ? IBV_QPS_ERR : IBV_QPS_RTS);
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0); // flushed by the failed QP
        pair.expect(IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(pair.b.memory[0], 2);
    }
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c, check_resource()
void request_that_needs_a_read_resource_is_refused_without_one(void **) {
    static const struct {
        uint64_t builder;
        std::function<void(ibv_qp_ex *, uint32_t, uint64_t)> build;
        ibv_wc_status status;
    } rows[] = {
        {IBV_QP_EX_WITH_RDMA_WRITE, ibv_wr_rdma_write, IBV_WC_SUCCESS},
        {IBV_QP_EX_WITH_RDMA_READ, ibv_wr_rdma_read, IBV_WC_REM_INV_REQ_ERR},
        {IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
         [](auto *qp, auto key, auto at) { ibv_wr_atomic_fetch_add(qp, key, at, 1); },
         IBV_WC_REM_INV_REQ_ERR},
        {SIM_QP_EX_WITH_ATOMIC_WRITE,
         [](auto *qp, auto key, auto at) { ibv_wr_atomic_write(qp, key, at, "8 bytes"); },
         IBV_WC_REM_INV_REQ_ERR},
    };
    for (const auto &row : rows) {
        Pair pair({.send_ops = row.builder, .max_dest_rd_atomic = 0});
        ibv_qp_ex *const qp = ibv_qp_to_qp_ex(pair.a.qp);
        ibv_wr_start(qp);
        qp->wr_id = 11;
        qp->wr_flags = IBV_SEND_SIGNALED;
        row.build(qp, pair.b.mr->rkey, reinterpret_cast<uint64_t>(pair.b.memory));
        if (row.builder != SIM_QP_EX_WITH_ATOMIC_WRITE)
            ibv_wr_set_sge(qp, pair.a.mr->lkey, reinterpret_cast<uint64_t>(pair.a.memory), 8);
        assert_int_equal(ibv_wr_complete(qp), 0);
        pair.expect(row.status);
        assert_int_equal(pair.b.memory[0], row.status ? 2 : 1);
    }
}

// The members of a completion after a poll into memory that is full of 0x5a: rdma-core 65,
// providers/mlx5/cq.c, handle_responder(); bnxt_re/verbs.c, bnxt_re_fill_ud_cqe(); cxgb4/cq.c,
// c4iw_poll_cq_one(); rxe/rxe.c, rxe_poll_cq().
ibv_wc poll_into_filled(const Side &side) {
    ibv_wc wc;
    memset(&wc, 0x5a, sizeof(wc));
    assert_int_equal(ibv_poll_cq(side.cq, 1, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    return wc;
}

void expect_unwritten(const ibv_wc &wc, bool lacks_imm, bool lacks_qp, bool lacks_sl,
                      bool lacks_rest) {
    assert_int_equal(wc.imm_data == 0x5a5a5a5a, lacks_imm);
    assert_int_equal(wc.src_qp == 0x5a5a5a5a, lacks_qp);
    assert_int_equal(wc.sl == 0x5a, lacks_sl);
    assert_int_equal(wc.pkey_index == 0x5a5a, lacks_rest);
    assert_int_equal(wc.slid == 0x5a5a, lacks_rest);
    assert_int_equal(wc.dlid_path_bits == 0x5a, lacks_rest);
}

void driver_writes_only_some_members_of_a_completion(void **) {
    static const struct {
        const char *device;
        bool is_filled;                // of all completions
        bool lacks_source, lacks_rest; // of a receive
        bool datagram_lacks_sl, datagram_lacks_rest;
    } rows[] = {{"rxe", true, false, false, false, false},
                {"mlx5", false, false, false, false, false},
                {"bnxt_re", false, true, true, false, true},
                {"irdma-roce", false, true, true, true, true}};
    for (const auto &row : rows) {
        print_message("%s\n", row.device);
        const bool is_clean = !row.is_filled;
        {
            Pair pair({.device = row.device});
            pair.receive(64);
            assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
            expect_unwritten(poll_into_filled(pair.a), is_clean, is_clean, is_clean, is_clean);
            expect_unwritten(poll_into_filled(pair.b), is_clean, row.lacks_source,
                             row.lacks_source, row.lacks_rest);
            pair.receive(64);
            assert_int_equal(pair.post(IBV_WR_SEND_WITH_IMM, 8), 0);
            pair.a.poll();
            expect_unwritten(poll_into_filled(pair.b), false, row.lacks_source,
                             row.lacks_source, row.lacks_rest);
        }
        Direct direct(options_of(row.device));
        Side a(direct, 1, false, 0, 32, IBV_QPT_UD), b(direct, 2, false, 0, 32, IBV_QPT_UD);
        activate_datagrams(a);
        activate_datagrams(b);
        receive_datagram(b);
        send_datagram(a, b.gid, b.qp->qp_num);
        const ibv_wc wc = poll_into_filled(b);
        expect_unwritten(wc, is_clean, false, row.datagram_lacks_sl, row.datagram_lacks_rest);
        assert_int_equal(wc.src_qp, a.qp->qp_num);
    }
}

void overrun_cq_fails_its_queue_pairs(void **) {
    Pair pair({.device = "mlx5", .entries = 1});
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    const ibv_async_event event = pair.a.event();
    assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
    assert_ptr_equal(event.element.cq, pair.a.cq);
    assert_int_equal(pair.a.state(), IBV_QPS_ERR);
}

void send_is_pending_until_a_receive(void **) {
    Pair pair({.rnr_retry = 7});
    assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
    pair.direct.advance(3600 * SECOND);
    assert_true(pair.a.is_empty());
    pair.receive(64);
    pair.expect(IBV_WC_SUCCESS);
}

// The retries are 1.28 ms apart.
void send_without_a_receive_fails_after_its_retries(void **) {
    for (const uint8_t retries : {uint8_t{0}, uint8_t{2}}) {
        Pair pair({.rnr_retry = retries});
        assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
        if (retries != 0) {
            pair.direct.advance(2'500'000);
            assert_true(pair.a.is_empty());
            pair.direct.advance(100'000);
        }
        pair.expect(IBV_WC_RNR_RETRY_EXC_ERR);
    }
}

// 4.096 us * 2^14, twice: the first attempt and one retry.
void cut_link_fails_requests_after_the_timeout(void **) {
    Pair pair({.retry_cnt = 1});
    pair.direct.fabric().cut(1, 2, true);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.advance(134'000'000);
    assert_true(pair.a.is_empty());
    pair.direct.advance(1'000'000);
    pair.expect(IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(pair.b.memory[0], 2);
}

void lost_responses_do_not_stop_later_requests(void **) {
    Pair pair({.retry_cnt = 1});
    uint64_t count = 0;
    memcpy(pair.b.memory, &count, sizeof(count));
    const auto add = [](ibv_send_wr &wr, ibv_sge &) { wr.wr.atomic.compare_add = 1; };
    for (const bool heals : {true, false}) {
        const uint64_t before = count;
        pair.direct.fabric().cut_one_way(2, 1, true);
        for (int i = 0; i < 3; i++)
            assert_int_equal(pair.post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, add), 0);
        memcpy(&count, pair.b.memory, sizeof(count));
        assert_int_equal(count, before + 3);
        assert_true(pair.a.is_empty());
        pair.direct.advance(heals ? SECOND / 10 : SECOND);
        pair.direct.fabric().cut_one_way(2, 1, false);
        pair.expect(heals ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
        for (int i = 0; i < 2; i++)
            pair.expect(heals ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
        memcpy(&count, pair.b.memory, sizeof(count));
        assert_int_equal(count, before + 3); // each once
    }
}

void request_is_executed_if_its_link_returns_in_time(void **) {
    Pair pair({.retry_cnt = 1});
    pair.direct.fabric().cut(1, 2, true);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.advance(SECOND / 10);
    pair.direct.fabric().cut(1, 2, false);
    pair.expect(IBV_WC_SUCCESS);
}

void delay_applies_in_both_directions(void **) {
    Pair pair;
    pair.direct.fabric().set_delay(1, 2, 1'000'000);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_READ, 8), 0);
    pair.direct.advance(999'000);
    assert_int_equal(pair.b.memory[0], 2);
    pair.direct.advance(1'000);
    assert_int_equal(pair.b.memory[0], 1);
    assert_true(pair.a.is_empty());
    pair.direct.advance(1'000'000);
    pair.expect(IBV_WC_SUCCESS);
    pair.expect(IBV_WC_SUCCESS);
}

// `nth` as of Fabric::refuse_post(): of a list of four requests, `taken` are queued.
void expect_refusal(unsigned nth, size_t taken) {
    Pair pair;
    pair.direct.fabric().refuse_post(1, nth, EIO);
    ibv_sge sge = pair.sge(8);
    ibv_send_wr wr[4] = {}, *bad = nullptr;
    for (int i = 0; i < 4; i++) {
        wr[i].next = i < 3 ? &wr[i + 1] : nullptr;
        wr[i].sg_list = &sge;
        wr[i].num_sge = 1;
        wr[i].opcode = IBV_WR_RDMA_WRITE;
        wr[i].send_flags = IBV_SEND_SIGNALED;
        wr[i].wr.rdma.remote_addr = reinterpret_cast<uint64_t>(pair.b.memory);
        wr[i].wr.rdma.rkey = pair.b.mr->rkey;
    }
    assert_int_equal(ibv_post_send(pair.a.qp, wr, &bad), EIO);
    assert_ptr_equal(bad, taken < 4 ? &wr[taken] : nullptr);
    for (size_t i = 0; i < taken; i++)
        assert_int_equal(pair.a.poll().status, IBV_WC_SUCCESS);
    assert_true(pair.a.is_empty());
    assert_int_equal(ibv_post_send(pair.a.qp, &wr[3], &bad), 0);
}

void fault_refuses_the_nth_post(void **) {
    expect_refusal(1, 0);
    expect_refusal(3, 2);
}

void doorbell_fails_after_all_requests_are_queued(void **) {
    expect_refusal(0, 4);
}

// tests/drivers compares the number of entries. Posts until the queue is full; request number
// `signaled` has a completion.
int fill_queue(Pair &pair, int signaled = -1) {
    int count = 0;
    const auto set_flags = [&count, signaled](ibv_send_wr &wr, ibv_sge &) {
        wr.send_flags = count == signaled ? IBV_SEND_SIGNALED : 0;
    };
    while (count < 1000 && pair.post(IBV_WR_RDMA_WRITE, 8, set_flags) == 0)
        count++;
    return count;
}

void entry_of_an_executed_request_is_free_after_a_later_poll(void **) {
    ibv_wc wc;
    for (const char *const device : {"mlx5", "mlx4", "bnxt_re", "hns", "irdma-roce", "qedr"}) {
        Pair pair({.device = device, .entries = 64});
        const int most = fill_queue(pair, 2);
        assert_in_range(most, 3, 999);
        assert_int_equal(fill_queue(pair), 0);
        assert_int_equal(ibv_poll_cq(pair.a.cq, 1, &wc), 1);
        assert_int_equal(fill_queue(pair), 3);
        assert_int_equal(ibv_poll_cq(pair.a.cq, 1, &wc), 0);
        assert_int_equal(fill_queue(pair), 0);
    }
    Pair soft({.device = "rxe", .entries = 64});
    assert_int_equal(fill_queue(soft), 1000);
}

void transitions_need_their_attributes(void **) {
    Direct direct(options_of("rxe"));
    Side side(direct, 1, false, 0, 4);
    const int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    assert_int_equal(side.modify(IBV_QPS_RTS, 0), EINVAL);
    assert_int_equal(side.modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT), EINVAL);
    assert_int_equal(side.modify(IBV_QPS_INIT, init | IBV_QP_SQ_PSN), EINVAL);
    assert_int_equal(side.modify(IBV_QPS_INIT, init), 0);
    assert_int_equal(side.qp->state, IBV_QPS_INIT);
    assert_int_equal(side.modify(IBV_QPS_RTS, 0), EINVAL);
    assert_int_equal(side.modify(IBV_QPS_ERR, 0), 0);
    assert_int_equal(side.modify(IBV_QPS_RESET, 0), 0);
    assert_int_equal(side.state(), IBV_QPS_RESET);
}

void unmapped_memory_is_not_registered(void **) {
    Pair pair;
    void *const address =
        mmap(nullptr, 2 * BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_null(ibv_reg_mr(pair.a.pd, address, BYTES, int{IBV_ACCESS_LOCAL_WRITE}));
    assert_int_equal(errno, EFAULT);
    ibv_mr *const mr = ibv_reg_mr(pair.a.pd, address, BYTES, 0);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    munmap(static_cast<char *>(address) + BYTES, BYTES);
    assert_null(ibv_reg_mr(pair.a.pd, address, 2 * BYTES, 0));
    assert_int_equal(errno, EFAULT);
    assert_null(ibv_reg_mr(pair.a.pd, address, 0, 0));
    assert_int_equal(errno, EINVAL);
    munmap(address, BYTES);
}

// rdma-core 65, tests/test_mr.py: the keys stay valid.
void reregistered_region_keeps_its_keys(void **) {
    for (const char *const device : {"rxe", "siw", "bnxt_re", "cxgb4"}) {
        Pair pair({.device = device});
        errno = 0;
        assert_int_equal(
            ibv_rereg_mr(pair.a.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_CMD);
        assert_int_equal(errno, EOPNOTSUPP);
    }
    Pair pair({.device = "mlx5"});
    const uint32_t lkey = pair.b.mr->lkey, rkey = pair.b.mr->rkey;
    const auto rereg = [&](int flags, ibv_pd *pd, void *address, size_t length, int access) {
        pair.direct.use_host(2);
        const int result = ibv_rereg_mr(pair.b.mr, flags, pd, address, length, access);
        assert_int_equal(pair.b.mr->lkey, lkey);
        assert_int_equal(pair.b.mr->rkey, rkey);
        return result;
    };
    constexpr int ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
                  TRANSLATION = IBV_REREG_MR_CHANGE_TRANSLATION;
    static const struct {
        int flags, access, result;
    } refused[] = {{0, 0, IBV_REREG_MR_ERR_CMD},
                   {1 << 3, 0, IBV_REREG_MR_ERR_INPUT},
                   {TRANSLATION, 0, IBV_REREG_MR_ERR_INPUT},
                   {IBV_REREG_MR_CHANGE_PD, 1, IBV_REREG_MR_ERR_INPUT},
                   {ACCESS, IBV_ACCESS_REMOTE_WRITE, IBV_REREG_MR_ERR_CMD},
                   {ACCESS, 1 << 19, IBV_REREG_MR_ERR_CMD}};
    for (const auto &row : refused)
        assert_int_equal(rereg(row.flags, pair.b.pd, nullptr, 0, row.access), row.result);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0); // the region is unchanged
    pair.expect(IBV_WC_SUCCESS);
    // The second half of the memory, at its own address.
    assert_int_equal(rereg(TRANSLATION, nullptr, pair.b.memory + 64, 64, 0), 0);
    assert_ptr_equal(pair.b.mr->addr, pair.b.memory + 64);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8,
                               [&](auto &wr, auto &) { wr.wr.rdma.remote_addr += 64; }),
                     0);
    pair.expect(IBV_WC_SUCCESS);
    assert_int_equal(rereg(ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8,
                               [&](auto &wr, auto &) { wr.wr.rdma.remote_addr += 64; }),
                     0);
    pair.expect(IBV_WC_REM_ACCESS_ERR);
}

// With on-demand paging, the memory of a posted receive can be missing: the receive completes.
void receive_without_memory_completes(void **) {
    Pair pair;
    void *const memory =
        mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pair.direct.use_host(2);
    ibv_mr *const mr =
        ibv_reg_mr(pair.b.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    ibv_sge one = {reinterpret_cast<uint64_t>(memory), 64, mr->lkey};
    ibv_recv_wr wr = {}, *bad;
    wr.wr_id = 22;
    wr.sg_list = &one;
    wr.num_sge = 1;
    assert_int_equal(ibv_post_recv(pair.b.qp, &wr, &bad), 0);
    munmap(memory, BYTES);
    assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
    pair.expect(IBV_WC_REM_OP_ERR);
    const ibv_wc wc = pair.b.poll();
    assert_int_equal(wc.wr_id, 22);
    assert_int_equal(wc.status, IBV_WC_LOC_QP_OP_ERR);
    assert_int_equal(pair.b.state(), IBV_QPS_ERR);
    pair.direct.use_host(2);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

// The time of a missing receive and that of a missing response are independent.
void each_cause_of_a_wait_has_its_own_time(void **) {
    {
        Pair pair({.retry_cnt = 3, .rnr_retry = 6}); // 6 x 1.28 ms, 4 x 67 ms
        assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
        pair.direct.fabric().cut(1, 2, true);
        pair.direct.advance(200'000'000);
        assert_true(pair.a.is_empty());
        pair.direct.fabric().cut(1, 2, false);
        pair.direct.advance(1'000'000);
        assert_true(pair.a.is_empty());
        pair.receive(64);
        pair.expect(IBV_WC_SUCCESS);
    }
    Pair other({.retry_cnt = 3, .rnr_retry = 1});
    other.direct.fabric().cut(1, 2, true);
    assert_int_equal(other.post(IBV_WR_SEND, 8), 0);
    other.direct.advance(200'000'000);
    other.direct.fabric().cut(1, 2, false);
    assert_true(other.a.is_empty());
    other.direct.advance(1'000'000);
    assert_true(other.a.is_empty());
    other.direct.advance(500'000);
    other.expect(IBV_WC_RNR_RETRY_EXC_ERR);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(inline_data_may_change_after_the_post),
        cmocka_unit_test(errors_have_the_status_of_the_specification),
        cmocka_unit_test(request_that_needs_a_read_resource_is_refused_without_one),
        cmocka_unit_test(driver_writes_only_some_members_of_a_completion),
        cmocka_unit_test(overrun_cq_fails_its_queue_pairs),
        cmocka_unit_test(send_is_pending_until_a_receive),
        cmocka_unit_test(send_without_a_receive_fails_after_its_retries),
        cmocka_unit_test(cut_link_fails_requests_after_the_timeout),
        cmocka_unit_test(lost_responses_do_not_stop_later_requests),
        cmocka_unit_test(request_is_executed_if_its_link_returns_in_time),
        cmocka_unit_test(delay_applies_in_both_directions),
        cmocka_unit_test(fault_refuses_the_nth_post),
        cmocka_unit_test(doorbell_fails_after_all_requests_are_queued),
        cmocka_unit_test(entry_of_an_executed_request_is_free_after_a_later_poll),
        cmocka_unit_test(transitions_need_their_attributes),
        cmocka_unit_test(unmapped_memory_is_not_registered),
        cmocka_unit_test(reregistered_region_keeps_its_keys),
        cmocka_unit_test(receive_without_memory_completes),
        cmocka_unit_test(each_cause_of_a_wait_has_its_own_time),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
