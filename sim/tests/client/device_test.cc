// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// device_test.cc -- what devices refuse and report as their drivers do; limits and removal.

#include "pair.hh"

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <span>
#include <vector>

namespace {

using namespace sim;

// rdma-core 56, providers/mlx5/qp.c, _mlx5_post_send(), mlx4/qp.c, mlx4_post_send(),
// bnxt_re/verbs.c, bnxt_re_post_send(), hns/hns_roce_u_hw_v2.c, check_qp_send(),
// qedr/qelr_verbs.c, qelr_post_send(), and rxe/rxe.c, validate_send_wr() and rxe_post_send();
// Linux 7.3, drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_post_send()
void refused_send_has_the_error_number_of_its_provider(void **) {
    static const struct {
        const char *device;
        int many_sges, early;
        bool queues_early, keeps_bad_wr;
    } rows[] = {
        {"rxe", EINVAL, EINVAL, true, false}, {"mlx5", ENOMEM, ENOMEM, false, true},
        {"mlx4", ENOMEM, 0, true, true},      {"bnxt_re", ENOMEM, EINVAL, false, true},
        {"hns", EINVAL, EINVAL, false, true}, {"qedr", -EINVAL, -EINVAL, false, false},
    };
    for (const auto &row : rows) {
        Pair pair({.device = row.device});
        ibv_qp_attr attr;
        ibv_qp_init_attr init;
        assert_int_equal(ibv_query_qp(pair.a.qp, &attr, IBV_QP_CAP, &init), 0);
        std::vector<ibv_sge> list(init.cap.max_send_sge + 1, pair.sge(8));
        const auto use_list = [&](ibv_send_wr &wr, ibv_sge &) {
            wr.sg_list = list.data();
            wr.num_sge = static_cast<int>(list.size());
        };
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, use_list), row.many_sges);
        ibv_send_wr other, *bad = &other;
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, {}, &bad), 0);
        assert_ptr_equal(bad, row.keeps_bad_wr ? &other : nullptr);
        assert_int_equal(pair.a.modify(IBV_QPS_RESET, 0), 0);
        bad = &other;
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, {}, &bad), row.early);
        assert_int_equal(bad == nullptr || bad == &other, row.queues_early);
    }
}

void reset_queue_pair_loses_completions_and_is_reused_as_by_the_driver(void **) {
    static const struct {
        const char *device;
        bool removes, is_reused;
    } rows[] = {
        {"rxe", false, true}, {"qedr", false, true},   {"irdma-roce", false, false},
        {"mlx5", true, true}, {"mlx4-ib", true, true}, {"bnxt_re", true, true},
        {"hns", true, true},  {"ionic", true, true},   {"mana", true, true},
    };
    for (const auto &row : rows)
        for (const bool has_srq : {false, true}) {
            const Setup setup = {.device = row.device,
                                 .has_srq = has_srq && sim_find_profile(row.device)->has_srq};
            Pair pair(setup);
            pair.receive(8);
            assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
            for (Side *const side : {&pair.a, &pair.b}) {
                assert_int_equal(side->modify(IBV_QPS_RESET, 0), 0);
                assert_int_equal(side->is_empty(), row.removes);
            }
            const int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
            assert_int_equal(pair.a.modify(IBV_QPS_INIT, init), row.is_reused ? 0 : EINVAL);
            if (!row.is_reused)
                continue;
            assert_int_equal(pair.a.modify(IBV_QPS_RESET, 0), 0);
            Pair::connect(pair.a, pair.b, setup);
            Pair::connect(pair.b, pair.a, setup);
            while (!pair.a.is_empty() || !pair.b.is_empty())
                continue;
            pair.receive(8);
            assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
            pair.expect(IBV_WC_SUCCESS);
            assert_int_equal(pair.b.poll().wr_id, 22);
        }
}

// The drivers leave members of a failed completion undefined: sim/device/devices.tsv names the
// sources.
void failed_completion_is_that_of_the_driver(void **) {
    constexpr uint8_t OWN = 0x5a;
    constexpr uint32_t UNTOUCHED = 0x5a5a5a5a;
    static const struct {
        const char *device;
        bool is_receive;
        uint32_t opcode, byte_len;
    } rows[] = {
        {"rxe", false, 0, 0},
        {"rxe", true, 0, 0},
        {"siw", true, IBV_WC_RECV, 0},
        {"cxgb4", true, IBV_WC_RECV, 0},
        {"mlx5", false, UNTOUCHED, UNTOUCHED},
        {"mlx5", true, UNTOUCHED, UNTOUCHED},
        {"mlx4", false, UNTOUCHED, UNTOUCHED},
        {"ionic", false, 0, 0},
        {"hns", false, IBV_WC_RDMA_READ, 0},
        {"hns", true, IBV_WC_RECV, 0},
        {"irdma-roce", false, IBV_WC_RDMA_READ, 8},
        {"bnxt_re", false, IBV_WC_RDMA_READ, 0},
        {"qedr", false, IBV_WC_RDMA_READ, 8},
        {"qedr", true, UNTOUCHED, 0},
    };
    for (const auto &row : rows) {
        Pair pair({.device = row.device});
        if (row.is_receive) {
            pair.receive(8);
            assert_int_equal(pair.b.modify(IBV_QPS_ERR, 0), 0);
        } else {
            assert_int_equal(
                pair.post(IBV_WR_RDMA_READ, 8, [](auto &wr, auto &) { wr.wr.rdma.rkey = 0; }),
                0);
        }
        ibv_wc wc;
        memset(&wc, OWN, sizeof(wc));
        assert_int_equal(ibv_poll_cq(row.is_receive ? pair.b.cq : pair.a.cq, 1, &wc), 1);
        assert_int_equal(wc.wr_id, row.is_receive ? 22 : 11);
        assert_int_equal(wc.status,
                         row.is_receive ? IBV_WC_WR_FLUSH_ERR : IBV_WC_REM_ACCESS_ERR);
        assert_int_equal(wc.qp_num, row.is_receive ? pair.b.qp->qp_num : pair.a.qp->qp_num);
        if (wc.opcode != row.opcode)
            fail_msg("%s, %d: opcode %#x", row.device, row.is_receive, wc.opcode);
        assert_int_equal(wc.byte_len, row.byte_len);
    }
}

// Linux 7.3, include/rdma/ib_verbs.h, ib_check_mr_access(); mm/gup.c, check_vma_flags();
// drivers/infiniband/sw/rxe/rxe_odp.c, rxe_ib_advise_mr(); hw/mlx5/odp.c.
void file_on_fs_dax_is_refused_without_on_demand_paging(void **) {
    static const struct {
        const char *device;
        bool has_fs_dax;
        int access, error, advise_error; // with a region of another kind
    } rows[] = {
        {"rxe", true, 0, EOPNOTSUPP, 0},
        {"rxe", true, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE, 0, 0},
        {"rxe", true, IBV_ACCESS_ON_DEMAND, 0, EINVAL},
        {"rxe", false, 0, 0, EINVAL},
        {"rxe", false, 1 << 19, EINVAL, 0},
        {"mlx5", true, 0, EOPNOTSUPP, 0},
        {"mlx5", true, IBV_ACCESS_ON_DEMAND, 0, 0},
        {"mlx5", false, 0, 0, ENOENT},
        {"siw", true, 0, EOPNOTSUPP, 0},
        {"siw", true, IBV_ACCESS_ON_DEMAND, EOPNOTSUPP, 0},
        {"siw", false, 0, 0, EOPNOTSUPP},
        {"irdma-roce", true, 0, EOPNOTSUPP, 0},
        {"irdma-roce", false, 0, 0, EOPNOTSUPP},
    };
    for (const auto &row : rows) {
        Recorded recorded;
        Options options = options_of(row.device);
        options.has_fs_dax = row.has_fs_dax;
        Direct direct(options, &recorded);
        direct.use_host(1);
        static char memory[BYTES];
        ibv_device **const list = ibv_get_device_list(nullptr);
        ibv_context *const context = ibv_open_device(list[0]);
        ibv_free_device_list(list);
        ibv_pd *const pd = ibv_alloc_pd(context);
        errno = 0;
        ibv_mr *const mr = ibv_reg_mr(pd, memory, sizeof(memory), row.access);
        if ((mr ? 0 : errno) != row.error)
            fail_msg("%s, %d, %#x: %d", row.device, row.has_fs_dax, row.access, errno);
        ibv_sge sge = {reinterpret_cast<uint64_t>(memory), 64, mr ? mr->lkey : 0};
        if (mr) {
            assert_int_equal(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
                             row.advise_error);
            assert_int_equal(ibv_dereg_mr(mr), 0);
        }
        assert_int_equal(ibv_dealloc_pd(pd), 0);
        assert_int_equal(ibv_close_device(context), 0);
    }
}

// device/devices.tsv has the sources of these values.
void device_refuses_what_its_driver_lacks(void **) {
    constexpr unsigned SRQ = 1, SEND = 2, WRITE = 4, ATOMIC = 8, EXTENDED = 16, RESIZE = 32,
                       UD = 64, UC = 128;
    for (const sim_profile &profile : std::span(sim_profiles, sim_profile_count)) {
        Pair pair({.device = profile.name});
        const unsigned expected =
            (profile.has_srq ? SRQ : 0) | (profile.has_send_imm ? SEND : 0) |
            (profile.has_write_imm ? WRITE : 0) | (profile.attr.atomic_cap ? ATOMIC : 0) |
            (profile.has_qp_ex ? EXTENDED : 0) | (profile.has_resize_cq ? RESIZE : 0) |
            (profile.has_ud ? UD : 0) | (profile.has_uc ? UC : 0);
        const Side &a = pair.a;
        unsigned found = 0;
        ibv_srq_init_attr srq_attr = {};
        srq_attr.attr = {16, 1, 0};
        ibv_srq *const srq = ibv_create_srq(a.pd, &srq_attr);
        found |= srq ? SRQ : 0;
        assert_true(!srq || !ibv_destroy_srq(srq));
        const auto creates = [&](ibv_qp_type type, uint64_t send_ops, uint32_t max_inline) {
            ibv_qp_init_attr_ex attr = {};
            attr.send_cq = attr.recv_cq = a.cq;
            attr.cap = {1, 1, 1, 1, max_inline};
            attr.qp_type = type;
            attr.comp_mask = IBV_QP_INIT_ATTR_PD;
            if (send_ops)
                attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
            attr.pd = a.pd;
            attr.send_ops_flags = send_ops;
            ibv_qp *const qp = ibv_create_qp_ex(a.context, &attr);
            assert_true(!qp || !ibv_destroy_qp(qp));
            return qp != nullptr;
        };
        found |= creates(IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE, 0) ? EXTENDED : 0;
        found |= creates(IBV_QPT_UD, 0, 0) ? UD : 0;
        found |= creates(IBV_QPT_UC, 0, 0) ? UC : 0;
        assert_false(creates(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ, 0));
        assert_false(creates(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE, 0));
        found |= ibv_resize_cq(a.cq, 40) == 0 ? RESIZE : 0;
        const auto refused = [&](uint32_t opcode, uint32_t sges) {
            const ibv_qp_cap cap = {8, 8, 64, 1, 0};
            const sim_send send = {opcode, 0, sges, 8, 0, 0, 0};
            return sim_check_send(&profile, true, &cap, &send, 0);
        };
        found |= refused(IBV_WR_SEND_WITH_IMM, 1) ? 0 : SEND;
        found |= refused(IBV_WR_RDMA_WRITE_WITH_IMM, 1) ? 0 : WRITE;
        found |= refused(IBV_WR_ATOMIC_FETCH_AND_ADD, 1) ? 0 : ATOMIC;
        if (found != expected)
            fail_msg("%s: has %#x, not %#x", profile.name, found, expected);
        const auto read_sges = static_cast<uint32_t>(profile.attr.max_sge_rd);
        assert_false(refused(IBV_WR_RDMA_READ, read_sges));
        assert_int_equal(!refused(IBV_WR_RDMA_READ, read_sges + 1), profile.reads_first_sge);
        assert_true(creates(IBV_QPT_RC, 0, profile.max_inline));
        assert_int_equal(creates(IBV_QPT_RC, 0, profile.max_inline + 1),
                         profile.reduces_inline);
        assert_int_equal(!refused(SIM_WR_FLUSH, 0), profile.has_native_flush);
        assert_int_equal(!refused(SIM_WR_ATOMIC_WRITE, 0), profile.has_native_atomic_write);
        assert_int_equal(!sim_check_region(&profile, SIM_ACCESS_FLUSH_GLOBAL, 8, SIM_VOLATILE),
                         profile.has_native_flush);
        assert_int_equal(!sim_check_region(&profile, IBV_ACCESS_ON_DEMAND, 8, SIM_FS_DAX),
                         profile.has_odp);
        assert_int_equal(sim_check_region(&profile, 0, 8, SIM_FS_DAX), EOPNOTSUPP);
    }
}

void gid_table_is_refused_without_room_for_each_entry(void **) {
    Pair pair;
    ibv_gid_entry entries[4];
    assert_int_equal(ibv_query_gid_table(pair.a.context, entries, 3, 0), 3);
    assert_int_equal(entries[1].gid_index, 1);
    assert_int_equal(ibv_query_gid_table(pair.a.context, entries, 2, 0), -EINVAL);
    assert_int_equal(ibv_query_gid_table(pair.a.context, entries, 4, 1), -EOPNOTSUPP);
}

// Linux 6.1, drivers/infiniband/sw/siw/siw_verbs.c, siw_query_gid()
void gid_of_iwarp_is_the_link_address(void **) {
    const Pair pair({.device = "siw"});
    static const uint8_t address[16] = {0x00, 0x77, 0, 0, 1, 0}; // of sim0 of host1
    ibv_gid gid;
    assert_int_equal(ibv_query_gid(pair.a.context, 1, 0, &gid), 0);
    assert_memory_equal(gid.raw, address, sizeof(gid.raw));
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_modify_qp(); sw/siw/siw_verbs.c,
// siw_verbs_modify_qp(): only standard attributes.
void unknown_attribute_of_a_queue_pair_is_refused(void **) {
    for (const char *const device : {"rxe", "siw"}) {
        Pair pair({.device = device});
        for (const int mask : {IBV_QP_RATE_LIMIT + 0, 1 << 28})
            assert_int_equal(pair.a.modify(IBV_QPS_ERR, mask), EOPNOTSUPP);
    }
}

void command_descriptor_is_open(void **) {
    Pair pair;
    assert_true(fcntl(pair.a.context->cmd_fd, F_GETFD) >= 0);
    errno = 0;
    assert_null(ibv_import_device(pair.a.context->cmd_fd));
    assert_int_equal(errno, EOPNOTSUPP);
}

void removed_device_reports_a_fatal_event(void **) {
    Pair pair;
    pair.receive(64);
    pair.direct.fabric().remove_device(2, 0);
    assert_int_equal(pair.b.event().event_type, IBV_EVENT_DEVICE_FATAL);
    assert_int_equal(pair.b.poll().status, IBV_WC_WR_FLUSH_ERR);
    pair.direct.use_host(2);
    assert_null(ibv_alloc_pd(pair.b.context));
    assert_int_equal(errno, EIO);
    pair.direct.use_host(1);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.advance(SECOND);
    pair.expect(IBV_WC_RETRY_EXC_ERR);
}

void port_reports_its_state(void **) {
    Pair pair;
    ibv_port_attr attr;
    pair.direct.fabric().set_port(1, 0, false);
    assert_int_equal(pair.a.event().event_type, IBV_EVENT_PORT_ERR);
    assert_int_equal(ibv_query_port(pair.a.context, 1, &attr), 0);
    assert_int_equal(attr.state, IBV_PORT_DOWN);
    pair.direct.fabric().set_port(1, 0, true);
    const ibv_async_event event = pair.a.event();
    assert_int_equal(event.event_type, IBV_EVENT_PORT_ACTIVE);
    assert_int_equal(event.element.port_num, 1);
}

void destroyed_object_has_no_events(void **) {
    Pair pair;
    ibv_cq *const cq = ibv_create_cq(pair.a.context, 1, nullptr, nullptr, 0);
    pair.direct.fabric().raise_async(1, 0, IBV_EVENT_CQ_ERR);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_ptr_equal(pair.a.event().element.cq, pair.a.cq);
    assert_false(pair.a.has_event());
}

// Each device has its own objects. A destroyed one is not counted, nor one whose creation
// failed.
void object_beyond_the_limit_of_the_device_is_refused(void **) {
    for (const char *const name : {"rxe", "siw", "mlx5"}) {
        sim_profile profile = *sim_find_profile(name);
        constexpr int LIMIT = 5;
        for (int *const limit :
             {&profile.attr.max_pd, &profile.attr.max_mr, &profile.attr.max_cq,
              &profile.attr.max_srq, &profile.attr.max_qp, &profile.attr.max_ah,
              &profile.attr.max_mw})
            *limit = LIMIT;
        Options options;
        options.profile = &profile;
        Direct direct(options);
        Side side(direct, 1, false, 0, 8);
        Side other(direct, 2, false, 0, 8);
        ibv_srq_init_attr srq = {};
        srq.attr = {8, 1, 0};
        ibv_qp_init_attr qp = {};
        qp.qp_type = IBV_QPT_RC;
        qp.send_cq = qp.recv_cq = side.cq;
        qp.cap = {1, 1, 1, 1, 0};
        ibv_ah_attr ah = {};
        ah.is_global = ah.port_num = 1;
        ah.grh.dgid = side.gid;
        const struct {
            int before; // those of the side
            std::function<void *()> create;
            std::function<int(void *)> destroy;
            bool is_mr = false, is_offered = true;
        } kinds[] = {
            {1, [&] { return ibv_alloc_pd(side.context); },
             [](void *pd) { return ibv_dealloc_pd(static_cast<ibv_pd *>(pd)); }},
            {1, [&] { return ibv_reg_mr(side.pd, side.memory, BYTES, ALL_ACCESS); },
             [](void *mr) { return ibv_dereg_mr(static_cast<ibv_mr *>(mr)); }, true},
            {1, [&] { return ibv_create_cq(side.context, 1, nullptr, nullptr, 0); },
             [](void *cq) { return ibv_destroy_cq(static_cast<ibv_cq *>(cq)); }},
            {0, [&] { return ibv_create_srq(side.pd, &srq); },
             [](void *made) { return ibv_destroy_srq(static_cast<ibv_srq *>(made)); }},
            {1, [&] { return ibv_create_qp(side.pd, &qp); },
             [](void *made) { return ibv_destroy_qp(static_cast<ibv_qp *>(made)); }},
            {0, [&] { return ibv_create_ah(side.pd, &ah); },
             [](void *made) { return ibv_destroy_ah(static_cast<ibv_ah *>(made)); }, false,
             profile.has_ud},
            {0, [&] { return ibv_alloc_mw(side.pd, IBV_MW_TYPE_2); },
             [](void *mw) { return ibv_dealloc_mw(static_cast<ibv_mw *>(mw)); }, false,
             profile.has_windows},
        };
        direct.use_host(1);
        for (const auto &kind : kinds) {
            if (!kind.is_offered)
                continue;
            std::vector<void *> made;
            for (int i = kind.before; i < LIMIT; i++) {
                made.push_back(kind.create());
                assert_non_null(made.back());
            }
            for (int i = 0; i < 2; i++) {
                errno = 0;
                assert_null(kind.create());
                assert_int_equal(errno, kind.is_mr ? ENOMEM : profile.excess_error);
                assert_int_equal(kind.destroy(made.back()), 0);
                made.back() = kind.create();
                assert_non_null(made.back());
            }
            for (void *const each : made)
                assert_int_equal(kind.destroy(each), 0);
        }
        // A failed creation is not counted.
        for (int i = 0; i < LIMIT; i++)
            assert_null(ibv_reg_mr(side.pd, nullptr, BYTES, ALL_ACCESS));
        ibv_mr *const mr = ibv_reg_mr(side.pd, side.memory, BYTES, ALL_ACCESS);
        assert_non_null(mr);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
}

// A signal can end rdma-sim while it destroys many objects.
void end_of_many_objects_can_be_interrupted(void **) {
    constexpr unsigned OBJECTS = 4096;
    Direct direct(options_of("rxe"));
    direct.use_host(1);
    ibv_device **const list = ibv_get_device_list(nullptr);
    ibv_context *const context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ibv_pd *const pd = ibv_alloc_pd(context);
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_non_null(ibv_alloc_pd(context));
    unsigned steps = 0;
    direct.fabric().set_between_steps([&steps] { steps++; });
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(steps, 0);
    assert_int_equal(ibv_close_device(context), 0);
    assert_in_range(steps, OBJECTS / 512, OBJECTS);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(refused_send_has_the_error_number_of_its_provider),
        cmocka_unit_test(reset_queue_pair_loses_completions_and_is_reused_as_by_the_driver),
        cmocka_unit_test(failed_completion_is_that_of_the_driver),
        cmocka_unit_test(file_on_fs_dax_is_refused_without_on_demand_paging),
        cmocka_unit_test(device_refuses_what_its_driver_lacks),
        cmocka_unit_test(gid_table_is_refused_without_room_for_each_entry),
        cmocka_unit_test(gid_of_iwarp_is_the_link_address),
        cmocka_unit_test(unknown_attribute_of_a_queue_pair_is_refused),
        cmocka_unit_test(command_descriptor_is_open),
        cmocka_unit_test(removed_device_reports_a_fatal_event),
        cmocka_unit_test(port_reports_its_state),
        cmocka_unit_test(destroyed_object_has_no_events),
        cmocka_unit_test(end_of_many_objects_can_be_interrupted),
        cmocka_unit_test(object_beyond_the_limit_of_the_device_is_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
