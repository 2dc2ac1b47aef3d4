// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// objects_test.cc -- rules of the objects of a device, each by itself. The expected values are
// those of the InfiniBand Architecture Specification, volume 1 (release 1.7), and of Linux,
// drivers/infiniband; the comment of a test names the section or function.

#include "../../direct/test.hh"
#include "../../model/faults.hh"
#include "../../model/qp_state.hh"
#include "../client/pair.hh"

#include <cerrno>

namespace {

using namespace sim;

// 10.2.10.2: a resized queue keeps its completions in their order, and has room for them.
void resized_queue_keeps_its_completions(void **) {
    Pair pair({.entries = 8});
    for (uint64_t id = 1; id <= 5; id++) {
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8,
                                   [id](ibv_send_wr &wr, ibv_sge &) { wr.wr_id = id; }),
                         0);
        if (id <= 2)
            assert_int_equal(pair.a.poll().wr_id, id);
    }
    pair.direct.use_host(1);
    assert_int_equal(ibv_resize_cq(pair.a.cq, 2), EINVAL);
    assert_int_equal(ibv_resize_cq(pair.a.cq, 3), 0);
    for (uint64_t id = 3; id <= 5; id++)
        assert_int_equal(pair.a.poll().wr_id, id);
    for (uint64_t id = 6; id <= 8; id++)
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8,
                                   [id](ibv_send_wr &wr, ibv_sge &) { wr.wr_id = id; }),
                         0);
    for (uint64_t id = 6; id <= 8; id++)
        assert_int_equal(pair.a.poll().wr_id, id);
    assert_true(pair.a.is_empty());
}

// 9.9.2.4.1: the first request without a response fails, and the others are flushed. A program
// that fails the queue pair itself flushes all.
void only_the_first_lost_request_has_a_retry_error(void **) {
    for (const bool have_retries_ended : {true, false}) {
        Pair pair;
        pair.direct.fabric().cut(1, 2, true);
        for (int i = 0; i < 3; i++)
            assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
        if (have_retries_ended)
            pair.direct.advance(SECOND); // 2 * 67.1 ms
        else
            assert_int_equal(pair.a.modify(IBV_QPS_ERR, 0), 0);
        pair.expect(have_retries_ended ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
        for (int i = 0; i < 2; i++)
            pair.expect(IBV_WC_WR_FLUSH_ERR);
        assert_true(pair.a.is_empty());
    }
}

// 10.2: all objects of a queue pair belong to one context. core/uverbs_cmd.c, create_qp():
// finds handles of its own context only.
void queue_pair_has_objects_of_one_context(void **) {
    Pair pair;
    pair.direct.use_host(1);
    ibv_device **const list = ibv_get_device_list(nullptr);
    ibv_context *const context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ibv_cq *const cq = ibv_create_cq(context, 8, nullptr, nullptr, 0);
    ibv_qp_init_attr attr = {};
    attr.cap = {1, 1, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    for (const bool is_sender : {false, true}) {
        attr.send_cq = is_sender ? cq : pair.a.cq;
        attr.recv_cq = is_sender ? pair.a.cq : cq;
        assert_null(ibv_create_qp(pair.a.pd, &attr));
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_close_device(context), 0);
}

// 9.8.3, Q_Key: the high bit selects that of the sender's queue pair; another one is dropped.
void datagram_arrives_with_the_key_of_its_receiver(void **) {
    static const struct {
        uint32_t sender, receiver, sent;
        bool arrives;
    } rows[] = {{5, 5, 5, true},          {5, 5, 6, false},          {6, 5, 5, true},
                {5, 5, 0x80000000, true}, {6, 5, 0x80000000, false}, {5, 5, 0x80000006, true}};
    for (const auto &row : rows) {
        Pair pair;
        Side sender(pair.direct, 1, false, 0, 8, IBV_QPT_UD),
            receiver(pair.direct, 2, false, 0, 8, IBV_QPT_UD);
        for (Side *const side : {&sender, &receiver}) {
            activate_datagrams(*side);
            ibv_qp_attr attr = {};
            attr.qkey = side == &sender ? row.sender : row.receiver;
            side->direct.use_host(side->host);
            assert_int_equal(ibv_modify_qp(side->qp, &attr, IBV_QP_QKEY), 0);
        }
        receive_datagram(receiver);
        send_datagram(sender, receiver.gid, receiver.qp->qp_num, 8, row.sent);
        assert_int_equal(receiver.is_empty(), !row.arrives);
    }
}

// uverbs_cmd.c, ib_uverbs_rereg_mr(): the region uses its new domain, and not the old one.
void reregistered_region_uses_one_domain(void **) {
    Pair pair({.device = "mlx5"});
    pair.direct.use_host(1);
    ibv_pd *const first = ibv_alloc_pd(pair.a.context);
    ibv_pd *const second = ibv_alloc_pd(pair.a.context);
    char memory[64];
    ibv_mr *const mr = ibv_reg_mr(first, memory, sizeof(memory), ALL_ACCESS);
    assert_int_equal(ibv_dealloc_pd(first), EBUSY);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, second, nullptr, 0, 0), 0);
    assert_int_equal(ibv_dealloc_pd(second), EBUSY);
    assert_int_equal(ibv_dealloc_pd(first), 0);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), 0);
    assert_int_equal(ibv_dealloc_pd(second), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(second), 0);
}

// hw/mlx5/odp.c, get_prefetchable_mr() and mlx5_ib_advise_mr_prefetch().
void advice_is_for_regions_of_the_domain(void **) {
    constexpr int DEMAND = IBV_ACCESS_ON_DEMAND;
    static const struct {
        int access;
        bool is_of_other;
        ibv_advise_mr_advice advice;
        uint32_t length;
        int error;
    } rows[] = {
        {DEMAND | IBV_ACCESS_LOCAL_WRITE, false, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 64, 0},
        {DEMAND, false, IBV_ADVISE_MR_ADVICE_PREFETCH, 64, 0},
        {DEMAND, false, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 64, EPERM},
        {DEMAND, true, IBV_ADVISE_MR_ADVICE_PREFETCH, 64, EPERM},
        {DEMAND, false, IBV_ADVISE_MR_ADVICE_PREFETCH, 65, EFAULT},
        {IBV_ACCESS_LOCAL_WRITE, false, IBV_ADVISE_MR_ADVICE_PREFETCH, 64, ENOENT},
    };
    Pair pair({.device = "mlx5"});
    pair.direct.use_host(1);
    ibv_pd *const other = ibv_alloc_pd(pair.a.context);
    for (const auto &row : rows) {
        ibv_mr *const mr =
            ibv_reg_mr(row.is_of_other ? other : pair.a.pd, pair.a.memory, 64, row.access);
        ibv_sge sge = {address_of(pair.a.memory), row.length, mr->lkey};
        assert_int_equal(ibv_advise_mr(pair.a.pd, row.advice, 0, &sge, 1), row.error);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    assert_int_equal(ibv_dealloc_pd(other), 0);
}

// sw/rxe/rxe_verbs.c, rxe_dereg_mr(): a region with windows stays; another one can end.
void window_is_bound_until_its_own_region_ends(void **) {
    Pair pair;
    pair.direct.use_host(2);
    ibv_mr *const region =
        ibv_reg_mr(pair.b.pd, pair.b.memory, BYTES, ALL_ACCESS | IBV_ACCESS_MW_BIND);
    ibv_mr *const other =
        ibv_reg_mr(pair.b.pd, pair.b.memory, BYTES, ALL_ACCESS | IBV_ACCESS_MW_BIND);
    ibv_mw *const window = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_1);
    ibv_mw_bind bind = {};
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_info = {region, address_of(pair.b.memory), 64, IBV_ACCESS_REMOTE_WRITE};
    assert_int_equal(ibv_bind_mw(pair.b.qp, window, &bind), 0);
    assert_int_equal(pair.b.poll().status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_dereg_mr(region), EINVAL);
    assert_int_equal(ibv_dereg_mr(other), 0);
    assert_int_equal(
        pair.post(IBV_WR_RDMA_WRITE, 8,
                  [&](ibv_send_wr &wr, ibv_sge &) { wr.wr.rdma.rkey = window->rkey; }),
        0);
    pair.expect(IBV_WC_SUCCESS);
    pair.direct.use_host(2);
    assert_int_equal(ibv_dealloc_mw(window), 0);
    assert_int_equal(ibv_dereg_mr(region), 0);
}

// 10.6.7.2.4 and sw/rxe/rxe_mw.c, rxe_lookup_mw(): requests of the queue pair that bound a
// window of type 2 use it, and no others.
void window_of_type_2_is_that_of_its_queue_pair(void **) {
    for (const bool is_other : {false, true}) {
        Pair pair;
        Side c(pair.direct, 1, false, 0, 8);
        ibv_qp_init_attr init = {};
        init.cap = {4, 4, 1, 1, 0};
        init.qp_type = IBV_QPT_RC;
        init.send_cq = init.recv_cq = pair.b.cq;
        pair.direct.use_host(2);
        ibv_qp *const second = ibv_create_qp(pair.b.pd, &init); // of the same domain
        ibv_qp_attr attr = {};
        attr.qp_access_flags = ALL_ACCESS;
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
        attr.timeout = 14;
        assert_int_equal(connect_qp(second, attr, c.gid, c.qp->qp_num), 0);
        pair.direct.use_host(1);
        assert_int_equal(connect_qp(c.qp, attr, pair.b.gid, second->qp_num), 0);
        pair.direct.use_host(2);
        ibv_mr *const region =
            ibv_reg_mr(pair.b.pd, pair.b.memory, BYTES, ALL_ACCESS | IBV_ACCESS_MW_BIND);
        ibv_mw *const window = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_2);
        ibv_send_wr bind = {}, *bad;
        bind.opcode = IBV_WR_BIND_MW;
        bind.send_flags = IBV_SEND_SIGNALED;
        bind.bind_mw.mw = window;
        bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
        bind.bind_mw.bind_info = {region, address_of(pair.b.memory), 64,
                                  IBV_ACCESS_REMOTE_WRITE};
        assert_int_equal(ibv_post_send(is_other ? second : pair.b.qp, &bind, &bad), 0);
        assert_int_equal(pair.b.poll().status, IBV_WC_SUCCESS);
        assert_int_equal(
            pair.post(IBV_WR_RDMA_WRITE, 8,
                      [&](ibv_send_wr &wr, ibv_sge &) { wr.wr.rdma.rkey = bind.bind_mw.rkey; }),
            0);
        pair.expect(is_other ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
        pair.direct.use_host(2);
        assert_int_equal(ibv_dealloc_mw(window), 0);
        assert_int_equal(ibv_dereg_mr(region), 0);
        assert_int_equal(ibv_destroy_qp(second), 0);
    }
}

// 10.2.9.2 and 10.2.9.6; hw/mlx5: an SRQ has no more receives than max_wr. Receives whose
// completions a reset removes are free again.
void srq_has_the_receives_that_were_not_freed(void **) {
    Pair pair({.device = "mlx5", .has_srq = true});
    ibv_sge sge = {address_of(pair.b.memory), 64, pair.b.mr->lkey};
    ibv_recv_wr wr = {}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    const auto post_until_full = [&] {
        unsigned count = 0;
        pair.direct.use_host(2);
        while (ibv_post_srq_recv(pair.b.srq, &wr, &bad) == 0)
            count++;
        return count;
    };
    assert_int_equal(post_until_full(), 31); // mlx5_create_srq(): 16 + 1, as a power of 2, - 1
    for (int i = 0; i < 3; i++)
        assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
    assert_int_equal(post_until_full(), 0);
    (void)pair.b.poll();
    assert_int_equal(post_until_full(), 1);
    assert_int_equal(pair.b.modify(IBV_QPS_RESET, 0), 0);
    assert_int_equal(post_until_full(), 2);
    assert_true(pair.b.is_empty());
    assert_false(pair.b.has_event());
}

// 11.6.3.2, last WQE reached: of a queue pair with an SRQ.
void failed_queue_pair_takes_no_receive_of_its_srq(void **) {
    for (const bool has_srq : {true, false}) {
        Pair pair({.has_srq = has_srq});
        assert_int_equal(pair.b.modify(IBV_QPS_ERR, 0), 0);
        assert_int_equal(pair.b.has_event(), has_srq);
        if (!has_srq)
            continue;
        const ibv_async_event event = pair.b.event();
        assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
        assert_ptr_equal(event.element.qp, pair.b.qp);
    }
}

// rdma-core, providers/irdma/uverbs.c and bnxt_re/verbs.c: the completion of a failure is that
// of the oldest unsignaled request; irdma reports the length of the request, bnxt_re none.
void failed_completion_of_the_oldest_has_its_length(void **) {
    static const struct {
        const char *device;
        uint32_t length;
    } rows[] = {{"irdma-roce", 16}, {"bnxt_re", 0}};
    for (const auto &row : rows) {
        Pair pair({.device = row.device,
                   .change_options = [](Options &options) { options.strong.set(); }});
        for (const bool fails : {false, true})
            assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 16,
                                       [fails](ibv_send_wr &wr, ibv_sge &) {
                                           wr.wr_id = fails;
                                           wr.send_flags = 0;
                                           wr.wr.rdma.rkey ^= fails ? 0xff00 : 0;
                                       }),
                             0);
        const ibv_wc wc = pair.a.poll();
        assert_int_equal(wc.wr_id, 0);
        assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
        assert_int_equal(wc.byte_len, row.length);
    }
}

// sw/siw/siw_cm.c, siw_cep_close(): the end of one side ends the connection of the other.
void deleted_queue_pair_of_iwarp_fails_its_peer(void **) {
    Pair pair({.device = "siw"});
    Fabric &fabric = pair.direct.fabric();
    fabric.connect_iwarp(*fabric.qps.at(pair.a.qp->qp_num), *fabric.qps.at(pair.b.qp->qp_num));
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.expect(IBV_WC_SUCCESS);
    pair.direct.use_host(2);
    assert_int_equal(ibv_destroy_qp(pair.b.qp), 0);
    assert_int_equal(pair.a.state(), IBV_QPS_ERR);
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = pair.b.cq;
    attr.cap = {1, 1, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    pair.direct.use_host(2);
    pair.b.qp = ibv_create_qp(pair.b.pd, &attr);
}

// Returns how many writes the send queue holds.
unsigned room_of(Pair &pair) {
    unsigned posted = 0;
    while (pair.post(IBV_WR_RDMA_WRITE, 8) == 0)
        posted++;
    for (unsigned i = 0; i < posted; i++)
        pair.expect(IBV_WC_SUCCESS);
    assert_true(pair.a.is_empty());
    return posted;
}

// rdma-core, providers/rxe/rxe.c, wr_complete(): posts all built requests, or none.
void built_list_with_an_error_posts_nothing(void **) {
    const unsigned room = [] {
        Pair unused({.device = "mlx5"});
        return room_of(unused);
    }();
    Pair pair({.device = "mlx5", .send_ops = IBV_QP_EX_WITH_RDMA_WRITE});
    ibv_qp_ex *const qp = ibv_qp_to_qp_ex(pair.a.qp);
    pair.direct.use_host(1);
    ibv_wr_start(qp);
    for (const size_t sges : {1U, 1U, 8U}) {
        ibv_sge list[8];
        for (ibv_sge &sge : list)
            sge = pair.sge(1);
        qp->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(qp, pair.b.mr->rkey, address_of(pair.b.memory));
        ibv_wr_set_sge_list(qp, sges, list);
    }
    assert_int_not_equal(ibv_wr_complete(qp), 0);
    assert_int_equal(pair.b.memory[0], 2);
    assert_true(pair.a.is_empty());
    assert_int_equal(room_of(pair), room);
}

// ibv_query_device(3): each kind of object has a limit of its own. The limits include those of
// the side itself.
void limit_of_each_kind_is_its_own(void **) {
    sim_profile device = *sim_find_profile("mlx5");
    device.attr.max_pd = 3;
    device.attr.max_mr = 4;
    device.attr.max_cq = 5;
    device.attr.max_srq = 6;
    device.attr.max_qp = 7;
    device.attr.max_ah = 8;
    device.attr.max_mw = 9;
    Direct direct([&] {
        Options options = options_of("mlx5");
        options.profile = &device;
        return options;
    }());
    Side side(direct, 1, true, 0, 8);
    ibv_srq_init_attr srq = {};
    srq.attr = {1, 1, 0};
    ibv_qp_init_attr qp = {};
    qp.send_cq = qp.recv_cq = side.cq;
    qp.cap = {1, 1, 1, 1, 0};
    qp.qp_type = IBV_QPT_RC;
    ibv_ah_attr path = {};
    path.port_num = 1;
    path.is_global = 1;
    const auto count = [](int created_before, const auto &create, auto destroy) {
        std::vector<decltype(create())> made;
        while (auto *const object = create())
            made.push_back(object);
        assert_int_not_equal(errno, 0);
        for (auto *const object : made)
            assert_int_equal(destroy(object), 0);
        return created_before + static_cast<int>(made.size());
    };
    assert_int_equal(count(
                         1, [&] { return ibv_alloc_pd(side.context); }, ibv_dealloc_pd),
                     3);
    assert_int_equal(
        count(
            1, [&] { return ibv_reg_mr(side.pd, side.memory, 8, ALL_ACCESS); }, ibv_dereg_mr),
        4);
    assert_int_equal(count(
                         1, [&] { return ibv_create_cq(side.context, 1, nullptr, nullptr, 0); },
                         ibv_destroy_cq),
                     5);
    assert_int_equal(count(
                         1, [&] { return ibv_create_srq(side.pd, &srq); }, ibv_destroy_srq),
                     6);
    assert_int_equal(count(
                         1, [&] { return ibv_create_qp(side.pd, &qp); }, ibv_destroy_qp),
                     7);
    assert_int_equal(count(
                         0, [&] { return ibv_create_ah(side.pd, &path); }, ibv_destroy_ah),
                     8);
    assert_int_equal(
        count(
            0, [&] { return ibv_alloc_mw(side.pd, IBV_MW_TYPE_1); }, ibv_dealloc_mw),
        9);
}

// rdma-core 56, providers/mlx5/buf.c, mlx5_alloc_buf(): a child of fork() posts to a copy of
// the queue, of the same size, which the device does not read.
void post_of_a_child_is_not_executed(void **) {
    unsigned accepted[2] = {};
    for (const bool is_child : {false, true}) {
        Pair pair({.device = "mlx5"});
        if (is_child)
            pair.direct.fabric().qps.at(pair.a.qp->qp_num)->pid = 77;
        const auto unsignaled = [](ibv_send_wr &wr, ibv_sge &) { wr.send_flags = 0; };
        while (pair.post(IBV_WR_RDMA_WRITE, 8, unsignaled) == 0)
            accepted[is_child]++;
        assert_int_equal(pair.b.memory[0] == 1, !is_child);
    }
    assert_int_not_equal(accepted[0], 0);
    assert_int_equal(accepted[1], accepted[0]);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(resized_queue_keeps_its_completions),
        cmocka_unit_test(only_the_first_lost_request_has_a_retry_error),
        cmocka_unit_test(queue_pair_has_objects_of_one_context),
        cmocka_unit_test(datagram_arrives_with_the_key_of_its_receiver),
        cmocka_unit_test(reregistered_region_uses_one_domain),
        cmocka_unit_test(advice_is_for_regions_of_the_domain),
        cmocka_unit_test(window_is_bound_until_its_own_region_ends),
        cmocka_unit_test(window_of_type_2_is_that_of_its_queue_pair),
        cmocka_unit_test(srq_has_the_receives_that_were_not_freed),
        cmocka_unit_test(failed_queue_pair_takes_no_receive_of_its_srq),
        cmocka_unit_test(failed_completion_of_the_oldest_has_its_length),
        cmocka_unit_test(deleted_queue_pair_of_iwarp_fails_its_peer),
        cmocka_unit_test(built_list_with_an_error_posts_nothing),
        cmocka_unit_test(limit_of_each_kind_is_its_own),
        cmocka_unit_test(post_of_a_child_is_not_executed),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
