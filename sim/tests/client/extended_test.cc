// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// extended_test.cc -- extended queue pairs and completion queues.

#include "pair.hh"

#include <cerrno>

namespace {

using namespace sim;

// rdma-core 65, providers/rxe/rxe.c, wr_set_sge_list() and wr_set_inline_data(); Linux 7.3,
// drivers/infiniband/sw/rxe/rxe_req.c, finish_packet(). The SGE is 16 bytes long.
void data_of_builder_is_inline_by_flag_on_rxe(void **) {
    static const struct {
        const char *device;
        bool sets_data;
        unsigned flag;
        ibv_wc_status status;
        int first; // byte that arrives
    } rows[] = {
        {"rxe", true, IBV_SEND_INLINE, IBV_WC_SUCCESS, 1},
        {"rxe", true, 0, IBV_WC_WR_FLUSH_ERR, 2},
        {"rxe", false, 0, IBV_WC_SUCCESS, 1},
        {"rxe", false, IBV_SEND_INLINE, IBV_WC_SUCCESS, 16},
        {"mlx5", true, 0, IBV_WC_SUCCESS, 1},
        {"mlx5", false, IBV_SEND_INLINE, IBV_WC_SUCCESS, 1},
    };
    for (const auto &row : rows) {
        Pair pair({.device = row.device, .send_ops = IBV_QP_EX_WITH_RDMA_WRITE});
        ibv_qp_ex *const qp = ibv_qp_to_qp_ex(pair.a.qp);
        ibv_wr_start(qp);
        qp->wr_id = 11;
        qp->wr_flags = IBV_SEND_SIGNALED | row.flag;
        ibv_wr_rdma_write(qp, pair.b.mr->rkey, reinterpret_cast<uint64_t>(pair.b.memory));
        if (row.sets_data)
            ibv_wr_set_inline_data(qp, pair.a.memory, 40);
        else // the address of the SGE, then its length
            ibv_wr_set_sge(qp, pair.a.mr->lkey, reinterpret_cast<uint64_t>(pair.a.memory), 16);
        assert_int_equal(ibv_wr_complete(qp), 0);
        pair.expect(row.status);
        assert_int_equal(pair.b.memory[row.first == 16 ? 8 : 0], row.first);
    }
}

// mlx5 and rxe have extended queue pairs; siw does not (rdma-core 56, providers/siw/siw.c).
void list_of_an_extended_queue_pair_is_posted_once(void **) {
    Pair pair({.send_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ});
    ibv_qp_ex *const qp = ibv_qp_to_qp_ex(pair.a.qp);
    assert_non_null(qp);
    assert_null(qp->wr_send);
    ibv_wr_start(qp);
    qp->wr_id = 1;
    qp->wr_flags = 0;
    ibv_wr_rdma_write(qp, pair.b.mr->rkey, reinterpret_cast<uint64_t>(pair.b.memory));
    ibv_wr_set_sge(qp, pair.a.mr->lkey, reinterpret_cast<uint64_t>(pair.a.memory), 8);
    qp->wr_id = 11;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(qp, pair.b.mr->rkey, reinterpret_cast<uint64_t>(pair.b.memory));
    ibv_wr_set_sge(qp, pair.a.mr->lkey, reinterpret_cast<uint64_t>(pair.a.memory) + 64, 16);
    assert_int_equal(ibv_wr_complete(qp), 0);
    pair.expect(IBV_WC_SUCCESS);
    assert_true(pair.a.is_empty());
    assert_int_equal(pair.a.memory[64], 1);
    assert_int_equal(pair.a.memory[72], 2);
}

void extended_cq_returns_each_completion(void **) {
    Pair pair;
    ibv_cq_init_attr_ex attr = {};
    attr.cqe = 4;
    attr.wc_flags = IBV_WC_EX_WITH_QP_NUM;
    ibv_cq_ex *const cq = ibv_create_cq_ex(pair.a.context, &attr);
    ibv_poll_cq_attr poll = {};
    assert_int_equal(ibv_start_poll(cq, &poll), ENOENT);
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
    init.cap = {1, 1, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    ibv_qp *const qp = ibv_create_qp(pair.a.pd, &init);
    ibv_qp_attr error = {};
    error.qp_state = IBV_QPS_ERR;
    assert_int_equal(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
    ibv_recv_wr wr = {}, *bad;
    wr.wr_id = 33;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
    assert_int_equal(ibv_start_poll(cq, &poll), 0);
    assert_int_equal(cq->wr_id, 33);
    assert_int_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
    assert_int_equal(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

// rdma-core 65 and Linux: rules.c, sim_check_cq_ex(), names the sources.
void extended_cq_is_refused_as_by_the_driver(void **) {
    constexpr uint32_t FLAGS = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    static const struct {
        const char *device;
        uint64_t wc_flags;
        uint32_t comp_mask, flags;
        int error;
    } rows[] = {
        {"rxe", IBV_WC_STANDARD_FLAGS, 0, 0, 0},
        {"rxe", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0, 0, EOPNOTSUPP},
        {"rxe", IBV_WC_EX_WITH_TM_INFO, 0, 0, EOPNOTSUPP},
        {"rxe", 1ULL << 40, 0, 0, EOPNOTSUPP},
        {"rxe", 0, 1 << 2, 0, EOPNOTSUPP},
        {"rxe", 0, FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, EOPNOTSUPP},
        {"rxe", 0, FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED, 0},
        {"siw", 0, 0, 0, EOPNOTSUPP},
        {"cxgb4", 0, 0, 0, EOPNOTSUPP},
        {"bnxt_re", 0, 0, 0, EOPNOTSUPP},
        {"mlx5", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, FLAGS,
         IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, 0},
        {"mlx5", 0, FLAGS, 1 << 5, EINVAL},
        {"mlx5", 0, 1 << 5, 0, EINVAL},
        {"mlx5", IBV_WC_EX_WITH_TM_INFO, 0, 0, EOPNOTSUPP}, // the fabric has no tag matching
        {"mlx4", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0, 0, 0},
        {"mlx4", IBV_WC_EX_WITH_CVLAN, 0, 0, EOPNOTSUPP},
        {"mlx4", 0, FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, EOPNOTSUPP},
        {"irdma-roce", IBV_WC_EX_WITH_DLID_PATH_BITS, 0, 0, EOPNOTSUPP},
        {"hns", IBV_WC_EX_WITH_CVLAN, 0, 0, 0},
        {"ionic", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 1 << 5, 0, 0},
    };
    for (const auto &row : rows) {
        Pair pair({.device = row.device});
        ibv_cq_init_attr_ex attr = {};
        attr.cqe = 4;
        attr.wc_flags = row.wc_flags;
        attr.comp_mask = row.comp_mask;
        attr.flags = row.flags;
        errno = 0;
        ibv_cq_ex *const cq = ibv_create_cq_ex(pair.a.context, &attr);
        if ((cq ? 0 : errno) != row.error)
            fail_msg("%s: wc_flags %#lx, mask %#x, flags %#x: %d", row.device,
                     static_cast<long>(row.wc_flags), row.comp_mask, row.flags, cq ? 0 : errno);
        if (!cq)
            continue;
        assert_int_equal(!cq->read_completion_ts,
                         !(row.wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP));
        assert_int_equal(!cq->read_cvlan, !(row.wc_flags & IBV_WC_EX_WITH_CVLAN));
        assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(data_of_builder_is_inline_by_flag_on_rxe),
        cmocka_unit_test(list_of_an_extended_queue_pair_is_posted_once),
        cmocka_unit_test(extended_cq_returns_each_completion),
        cmocka_unit_test(extended_cq_is_refused_as_by_the_driver),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
