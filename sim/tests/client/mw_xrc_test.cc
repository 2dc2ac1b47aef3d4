// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// mw_xrc_test.cc -- memory windows and XRC, through libibverbs.

#include "pair.hh"

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <poll.h>

namespace {

using namespace sim;

// A window of side b over the first half of its memory.
struct Window {
    Pair &pair;
    ibv_mr *region;
    ibv_mw *mw;

    Window(Pair &of, ibv_mw_type type, unsigned access = ALL_ACCESS | IBV_ACCESS_MW_BIND)
        : pair(of) {
        pair.direct.use_host(2);
        region = ibv_reg_mr(pair.b.pd, pair.b.memory, BYTES, static_cast<int>(access));
        mw = ibv_alloc_mw(pair.b.pd, type);
        assert_non_null(region);
        assert_non_null(mw);
    }
    ~Window() {
        pair.direct.use_host(2);
        assert_int_equal(ibv_dealloc_mw(mw), 0);
        assert_int_equal(ibv_dereg_mr(region), 0);
    }
    ibv_wc_status bind(uint32_t key, uint64_t offset = 0, uint64_t length = BYTES / 2,
                       unsigned access = IBV_ACCESS_REMOTE_WRITE) {
        ibv_send_wr wr = {};
        wr.opcode = IBV_WR_BIND_MW;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.bind_mw.mw = mw;
        wr.bind_mw.rkey = key;
        wr.bind_mw.bind_info = {region, reinterpret_cast<uint64_t>(pair.b.memory) + offset,
                                length, access};
        return post(wr);
    }
    ibv_wc_status invalidate(uint32_t key) {
        ibv_send_wr wr = {};
        wr.opcode = IBV_WR_LOCAL_INV;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.invalidate_rkey = key;
        return post(wr);
    }
    ibv_wc_status post(ibv_send_wr &wr) {
        ibv_send_wr *bad;
        pair.direct.use_host(2);
        assert_int_equal(ibv_post_send(pair.b.qp, &wr, &bad), 0);
        const ibv_wc wc = pair.b.poll();
        assert_int_equal(wc.opcode, wc.status                     ? wc.opcode
                                    : wr.opcode == IBV_WR_BIND_MW ? IBV_WC_BIND_MW
                                                                  : IBV_WC_LOCAL_INV);
        return wc.status;
    }
    // A request of side a with the key, at an offset in the memory of side b.
    ibv_wc_status use(uint32_t key, uint64_t offset = 0,
                      ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE) {
        assert_int_equal(pair.post(opcode, 8,
                                   [&](ibv_send_wr &wr, ibv_sge &) {
                                       wr.wr.rdma.rkey = key;
                                       wr.wr.rdma.remote_addr =
                                           reinterpret_cast<uint64_t>(pair.b.memory) + offset;
                                   }),
                         0);
        return pair.a.poll().status;
    }
};

void window_of_type_1_permits_its_range_and_access_until_it_is_bound_again(void **) {
    const struct {
        uint64_t offset;
        ibv_wr_opcode opcode;
        ibv_wc_status status;
    } rows[] = {{BYTES / 2 - 8, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS},
                {BYTES / 2 - 7, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR},
                {0, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR}};
    for (const auto &row : rows) {
        Pair pair;
        Window window(pair, IBV_MW_TYPE_1);
        ibv_mw_bind bind = {};
        bind.send_flags = IBV_SEND_SIGNALED;
        bind.bind_info = {window.region, reinterpret_cast<uint64_t>(pair.b.memory), BYTES / 2,
                          IBV_ACCESS_REMOTE_WRITE};
        const uint32_t before = window.mw->rkey;
        assert_int_equal(ibv_bind_mw(pair.b.qp, window.mw, &bind), 0);
        assert_int_equal(pair.b.poll().status, IBV_WC_SUCCESS);
        assert_int_equal(window.mw->rkey, ibv_inc_rkey(before));
        assert_int_equal(ibv_dereg_mr(window.region), EINVAL); // the window uses it
        assert_int_equal(window.use(window.mw->rkey, row.offset, row.opcode), row.status);
    }
    Pair pair;
    Window window(pair, IBV_MW_TYPE_1);
    const uint32_t key = window.mw->rkey;
    assert_int_equal(window.bind(ibv_inc_rkey(key)), IBV_WC_SUCCESS);
    assert_int_equal(window.use(ibv_inc_rkey(key)), IBV_WC_SUCCESS);
    window.mw->rkey = ibv_inc_rkey(key);
    assert_int_equal(window.bind(key, 0, 0), IBV_WC_SUCCESS); // of no bytes
    window.mw->rkey = key;
    assert_int_equal(window.use(key), IBV_WC_REM_ACCESS_ERR);
}

void window_of_type_2_is_bound_by_one_queue_pair_until_it_is_invalidated(void **) {
    for (const bool by_message : {false, true}) {
        Pair pair;
        Window window(pair, IBV_MW_TYPE_2);
        const uint32_t key = ibv_inc_rkey(window.mw->rkey);
        assert_int_equal(window.bind(key), IBV_WC_SUCCESS);
        window.mw->rkey = key;
        assert_int_equal(window.use(key), IBV_WC_SUCCESS);
        if (by_message) {
            pair.receive(64);
            assert_int_equal(
                pair.post(IBV_WR_SEND_WITH_INV, 8,
                          [&](ibv_send_wr &wr, ibv_sge &) { wr.invalidate_rkey = key; }),
                0);
            pair.expect(IBV_WC_SUCCESS);
            const ibv_wc wc = pair.b.poll();
            assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV | IBV_WC_GRH); // of rxe
            assert_int_equal(wc.invalidated_rkey, key);
        } else {
            assert_int_equal(window.invalidate(key), IBV_WC_SUCCESS);
        }
        assert_int_equal(window.use(key), IBV_WC_REM_ACCESS_ERR);
    }
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c, qp_resp_from_reth()
void window_at_zero_has_offsets_as_addresses(void **) {
    Pair pair;
    Window window(pair, IBV_MW_TYPE_2);
    const uint32_t key = ibv_inc_rkey(window.mw->rkey);
    assert_int_equal(window.bind(key, 64, 64, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED),
                     IBV_WC_SUCCESS);
    window.mw->rkey = key;
    assert_int_equal(window.use(key, 8 - address_of(pair.b.memory)), IBV_WC_SUCCESS);
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(pair.b.memory[i], i / 8 == 9 ? 1 : 2);
}

void invalid_bind_or_invalidation_fails_its_queue_pair(void **) {
    const struct {
        const char *what;
        ibv_mw_type type;
        unsigned of_region;
        std::function<ibv_wc_status(Window &, uint32_t)> request;
        ibv_wc_status status;
    } rows[] = {
        {"a region without the access", IBV_MW_TYPE_2, ALL_ACCESS,
         [](Window &window, uint32_t key) { return window.bind(key); }, IBV_WC_MW_BIND_ERR},
        {"a range beyond the region", IBV_MW_TYPE_2, ALL_ACCESS | IBV_ACCESS_MW_BIND,
         [](Window &window, uint32_t key) { return window.bind(key, 1, BYTES); },
         IBV_WC_MW_BIND_ERR},
        {"writes to a region that is read-only", IBV_MW_TYPE_2, IBV_ACCESS_MW_BIND,
         [](Window &window, uint32_t key) { return window.bind(key); }, IBV_WC_MW_BIND_ERR},
        {"type 2 of no bytes", IBV_MW_TYPE_2, ALL_ACCESS | IBV_ACCESS_MW_BIND,
         [](Window &window, uint32_t key) { return window.bind(key, 0, 0); },
         IBV_WC_MW_BIND_ERR},
        {"type 1 that begins at zero", IBV_MW_TYPE_1, ALL_ACCESS | IBV_ACCESS_MW_BIND,
         [](Window &window, uint32_t key) {
             return window.bind(key, 0, 8, IBV_ACCESS_ZERO_BASED);
         },
         IBV_WC_MW_BIND_ERR},
        {"a window that is bound", IBV_MW_TYPE_2, ALL_ACCESS | IBV_ACCESS_MW_BIND,
         [](Window &window, uint32_t key) {
             assert_int_equal(window.bind(key), IBV_WC_SUCCESS);
             window.mw->rkey = key;
             return window.bind(ibv_inc_rkey(key));
         },
         IBV_WC_MW_BIND_ERR},
        {"an earlier key", IBV_MW_TYPE_1, ALL_ACCESS | IBV_ACCESS_MW_BIND,
         [](Window &window, uint32_t key) {
             assert_int_equal(window.bind(key), IBV_WC_SUCCESS);
             return window.bind(ibv_inc_rkey(key));
         },
         IBV_WC_MW_BIND_ERR},
        {"invalidation of a window that is not bound", IBV_MW_TYPE_2, ALL_ACCESS,
         [](Window &window, uint32_t) { return window.invalidate(window.mw->rkey); },
         IBV_WC_LOC_QP_OP_ERR},
        {"invalidation of a region", IBV_MW_TYPE_2, ALL_ACCESS,
         [](Window &window, uint32_t) { return window.invalidate(window.region->rkey); },
         IBV_WC_LOC_QP_OP_ERR},
    };
    for (const auto &row : rows) {
        print_message("%s\n", row.what);
        Pair pair;
        Window window(pair, row.type, row.of_region);
        assert_int_equal(row.request(window, ibv_inc_rkey(window.mw->rkey)), row.status);
        assert_int_equal(pair.b.state(), IBV_QPS_ERR);
    }
}

void message_that_invalidates_no_window_fails_both_sides(void **) {
    Pair pair;
    pair.receive(64);
    assert_int_equal(pair.post(IBV_WR_SEND_WITH_INV, 8), 0);
    pair.expect(IBV_WC_REM_INV_REQ_ERR);
    assert_int_equal(pair.b.poll().status, IBV_WC_REM_INV_REQ_ERR);
}

void device_without_windows_refuses_them(void **) {
    Direct direct(options_of("bnxt_re"));
    Side side(direct, 1, false, 0, 8);
    errno = 0;
    assert_null(ibv_alloc_mw(side.pd, IBV_MW_TYPE_1));
    assert_int_equal(errno, EOPNOTSUPP);
}

// Host 1 sends, and host 2 has an XRC domain with two SRQs, and another domain with one.
struct XrcPair {
    Direct direct{options_of("mlx5")};
    Side a{direct, 1, false, 0, 32, IBV_QPT_XRC_SEND}, b{direct, 2, false, 0, 32};
    ibv_xrcd *domain, *other_domain;
    ibv_srq *srq, *second, *of_other_domain;
    ibv_qp *receiver;

    XrcPair() {
        domain = open(-1, O_CREAT);
        other_domain = open(-1, O_CREAT);
        srq = create_srq(domain);
        second = create_srq(domain);
        of_other_domain = create_srq(other_domain);
        ibv_qp_init_attr_ex init = {};
        init.qp_type = IBV_QPT_XRC_RECV;
        init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
        init.xrcd = domain;
        receiver = ibv_create_qp_ex(b.context, &init);
        assert_non_null(receiver);
        ibv_qp_attr attr = {};
        attr.qp_access_flags = ALL_ACCESS;
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
        attr.min_rnr_timer = attr.timeout = 14;
        attr.rnr_retry = 7;
        assert_int_equal(connect_qp(receiver, attr, a.gid, a.qp->qp_num), 0);
        direct.use_host(1);
        assert_int_equal(connect_qp(a.qp, attr, b.gid, receiver->qp_num), 0);
    }
    ~XrcPair() {
        direct.use_host(2);
        assert_int_equal(ibv_destroy_qp(receiver), 0);
        for (ibv_srq *const one : {srq, second, of_other_domain})
            assert_int_equal(ibv_destroy_srq(one), 0);
        assert_int_equal(ibv_close_xrcd(domain), 0);
        assert_int_equal(ibv_close_xrcd(other_domain), 0);
    }
    XrcPair(const XrcPair &) = delete;
    XrcPair &operator=(const XrcPair &) = delete;

    ibv_xrcd *open(int fd, int flags, const Side *side = nullptr) {
        ibv_xrcd_init_attr attr = {};
        attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
        attr.fd = fd;
        attr.oflags = flags;
        direct.use_host(side ? side->host : 2);
        return ibv_open_xrcd(side ? side->context : b.context, &attr);
    }
    ibv_srq *create_srq(ibv_xrcd *xrcd) {
        ibv_srq_init_attr_ex attr = {};
        attr.attr = {16, 1, 0};
        attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                         IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        attr.srq_type = IBV_SRQT_XRC;
        attr.pd = b.pd;
        attr.xrcd = xrcd;
        attr.cq = b.cq;
        ibv_srq *const made = ibv_create_srq_ex(b.context, &attr);
        assert_non_null(made);
        return made;
    }
    void receive(ibv_srq *to, uint64_t wr_id) {
        ibv_sge sge = {reinterpret_cast<uint64_t>(b.memory), 64, b.mr->lkey};
        ibv_recv_wr wr = {}, *bad;
        wr.wr_id = wr_id;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        direct.use_host(2);
        assert_int_equal(ibv_post_srq_recv(to, &wr, &bad), 0);
    }
    // Host 1 sends to the SRQ of host 2, or writes with its number.
    void send(ibv_srq *to, uint32_t number_added = 0, ibv_wr_opcode opcode = IBV_WR_SEND) {
        ibv_sge sge = {reinterpret_cast<uint64_t>(a.memory), 8, a.mr->lkey};
        ibv_send_wr wr = {}, *bad;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = opcode;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(b.memory);
        wr.wr.rdma.rkey = b.mr->rkey;
        direct.use_host(2);
        assert_int_equal(ibv_get_srq_num(to, &wr.qp_type.xrc.remote_srqn), 0);
        wr.qp_type.xrc.remote_srqn += number_added;
        direct.use_host(1);
        assert_int_equal(ibv_post_send(a.qp, &wr, &bad), 0);
    }
};

void message_of_xrc_arrives_at_the_srq_that_it_names(void **) {
    XrcPair pair;
    pair.send(pair.second); // waits for a receive
    pair.receive(pair.srq, 1);
    assert_true(pair.b.is_empty());
    pair.receive(pair.second, 2);
    const ibv_wc wc = pair.b.poll();
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, 2);
    assert_int_equal(wc.qp_num, pair.receiver->qp_num);
    assert_int_equal(pair.a.poll().status, IBV_WC_SUCCESS);
    assert_int_equal(pair.b.memory[0], 1);
    pair.send(pair.srq);
    assert_int_equal(pair.b.poll().wr_id, 1);
    assert_int_equal(pair.a.poll().status, IBV_WC_SUCCESS);
    pair.b.memory[0] = 9;
    pair.send(pair.srq, 0, IBV_WR_RDMA_WRITE);
    assert_int_equal(pair.a.poll().status, IBV_WC_SUCCESS);
    assert_int_equal(pair.b.memory[0], 1);
}

void message_of_xrc_to_no_srq_of_the_domain_fails_both_sides(void **) {
    for (const bool is_unknown : {false, true}) {
        XrcPair pair;
        pair.receive(pair.of_other_domain, 1);
        pair.send(pair.of_other_domain, is_unknown ? 10'000 : 0);
        assert_int_equal(pair.a.poll().status, IBV_WC_REM_INV_REQ_ERR);
        assert_true(pair.b.is_empty());
        assert_int_equal(pair.a.state(), IBV_QPS_ERR);
        ibv_qp_attr attr;
        ibv_qp_init_attr init;
        pair.direct.use_host(2);
        assert_int_equal(ibv_query_qp(pair.receiver, &attr, IBV_QP_STATE, &init), 0);
        assert_int_equal(attr.qp_state, IBV_QPS_ERR);
    }
}

// Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_open_xrcd()
void domain_of_xrc_is_that_of_its_file(void **) {
    XrcPair pair;
    FILE *const file = tmpfile();
    const int fd = fileno(file);
    errno = 0;
    assert_null(pair.open(fd, 0));
    assert_int_equal(errno, EAGAIN);
    ibv_xrcd *const first = pair.open(fd, O_CREAT | O_EXCL), *const second = pair.open(fd, 0);
    assert_non_null(first);
    assert_non_null(second);
    assert_null(pair.open(fd, O_CREAT | O_EXCL));
    assert_int_equal(errno, EINVAL);
    assert_null(pair.open(1 << 20, O_CREAT));
    assert_int_equal(errno, EBADF);
    assert_int_equal(ibv_close_xrcd(pair.domain), EBUSY);
    assert_int_equal(ibv_close_xrcd(first), 0);
    assert_int_equal(ibv_close_xrcd(second), 0);
    // core/uverbs_cmd.c, ib_uverbs_open_xrcd(): each device has a table of its own.
    ibv_xrcd *const here = pair.open(fd, O_CREAT | O_EXCL), *const there = pair.open(
                                                                fd, O_CREAT | O_EXCL, &pair.a);
    assert_non_null(here);
    assert_non_null(there);
    assert_int_equal(ibv_close_xrcd(there), 0);
    pair.direct.use_host(2);
    assert_int_equal(ibv_close_xrcd(here), 0);
    fclose(file);
}

void queue_pair_of_xrc_has_no_other_queue(void **) {
    XrcPair pair;
    ibv_recv_wr receive = {}, *bad_receive;
    ibv_send_wr send = {}, *bad_send;
    pair.direct.use_host(2);
    assert_int_equal(ibv_post_recv(pair.receiver, &receive, &bad_receive), EINVAL);
    assert_int_equal(ibv_post_send(pair.receiver, &send, &bad_send), EINVAL);
    pair.direct.use_host(1);
    assert_int_equal(ibv_post_recv(pair.a.qp, &receive, &bad_receive), EINVAL);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(window_of_type_1_permits_its_range_and_access_until_it_is_bound_again),
        cmocka_unit_test(window_of_type_2_is_bound_by_one_queue_pair_until_it_is_invalidated),
        cmocka_unit_test(window_at_zero_has_offsets_as_addresses),
        cmocka_unit_test(invalid_bind_or_invalidation_fails_its_queue_pair),
        cmocka_unit_test(message_that_invalidates_no_window_fails_both_sides),
        cmocka_unit_test(device_without_windows_refuses_them),
        cmocka_unit_test(message_of_xrc_arrives_at_the_srq_that_it_names),
        cmocka_unit_test(message_of_xrc_to_no_srq_of_the_domain_fails_both_sides),
        cmocka_unit_test(domain_of_xrc_is_that_of_its_file),
        cmocka_unit_test(queue_pair_of_xrc_has_no_other_queue),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
