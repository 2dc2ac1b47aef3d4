// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// verbs_test.cc -- libibverbs.so.1 on a fabric in the same process. The expected values are
// those of the InfiniBand Architecture Specification, volume 1, chapter 9, and of Linux,
// drivers/infiniband.

#include "../../server/pmem.hh"
#include "pair.hh"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <linux/netlink.h>
#include <memory>
#include <poll.h>
#include <random>
#include <rdma/rdma_netlink.h>
#include <set>
#include <span>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include <csetjmp>
#include <cstdarg>

#include <cmocka.h>
}

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

// Linux 7.3, drivers/infiniband/sw/rxe: rxe_req.c, next_opcode_uc(); rxe_resp.c,
// rxe_responder(), which drops the messages of UC that it cannot execute.
void unreliable_connection_loses_messages_without_an_error(void **) {
    const auto nothing = [](Pair &) {};
    const auto cut = [](Pair &pair) { pair.direct.fabric().cut(1, 2, true); };
    static const struct {
        const char *what;
        ibv_wr_opcode opcode;
        size_t length;
        std::function<void(Pair &)> prepare;
        ibv_wc_status status;
        bool arrives;
        std::function<void(ibv_send_wr &, ibv_sge &)> change;
        bool fails_peer;
    } rows[] = {
        {"write", IBV_WR_RDMA_WRITE, 8, nothing, IBV_WC_SUCCESS, true, {}, false},
        {"write of immediate data",
         IBV_WR_RDMA_WRITE_WITH_IMM,
         8,
         [](Pair &pair) { pair.receive(64); },
         IBV_WC_SUCCESS,
         true,
         {},
         false},
        {"send",
         IBV_WR_SEND,
         8,
         [](Pair &pair) { pair.receive(64); },
         IBV_WC_SUCCESS,
         true,
         {},
         false},
        {"write, cut link", IBV_WR_RDMA_WRITE, 8, cut, IBV_WC_SUCCESS, false, {}, false},
        {"send without a receive", IBV_WR_SEND, 8, nothing, IBV_WC_SUCCESS, false, {}, false},
        {"immediate data without a receive",
         IBV_WR_RDMA_WRITE_WITH_IMM,
         8,
         nothing,
         IBV_WC_SUCCESS,
         false,
         {},
         false},
        {"remote key", IBV_WR_RDMA_WRITE, 8, nothing, IBV_WC_SUCCESS, false,
         [](ibv_send_wr &wr, ibv_sge &) { wr.wr.rdma.rkey ^= 0xff00; }, false},
        {"receive too short",
         IBV_WR_SEND,
         65,
         [](Pair &pair) { pair.receive(64); },
         IBV_WC_SUCCESS,
         false,
         {},
         true},
        {"local key", IBV_WR_RDMA_WRITE, 8, nothing, IBV_WC_LOC_PROT_ERR, false,
         [](ibv_send_wr &, ibv_sge &sge) { sge.lkey ^= 0xff00; }, false},
        {"local key, cut link", IBV_WR_RDMA_WRITE, 8, cut, IBV_WC_LOC_PROT_ERR, false,
         [](ibv_send_wr &, ibv_sge &sge) { sge.lkey ^= 0xff00; }, false},
        {"read", IBV_WR_RDMA_READ, 8, nothing, IBV_WC_LOC_QP_OP_ERR, false, {}, false},
        {"atomic",
         IBV_WR_ATOMIC_FETCH_AND_ADD,
         8,
         nothing,
         IBV_WC_LOC_QP_OP_ERR,
         false,
         {},
         false},
    };
    for (const auto &row : rows) {
        print_message("%s\n", row.what);
        Pair pair({.device = "mlx5", .type = IBV_QPT_UC});
        row.prepare(pair);
        assert_int_equal(pair.post(row.opcode, row.length, row.change), 0);
        pair.expect(row.status);
        assert_int_equal(pair.b.memory[0], row.arrives ? 1 : 2);
        assert_int_equal(pair.a.state(), row.status ? IBV_QPS_ERR : IBV_QPS_RTS);
        assert_int_equal(pair.b.state(), row.fails_peer ? IBV_QPS_ERR : IBV_QPS_RTS);
    }
}

// The data arrives after the delay, and there is no response.
void unreliable_connection_completes_when_its_message_arrives(void **) {
    Pair pair({.type = IBV_QPT_UC});
    pair.direct.fabric().set_delay(1, 2, 1'000'000);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.advance(999'000);
    assert_true(pair.a.is_empty());
    assert_int_equal(pair.b.memory[0], 2);
    pair.direct.advance(1'000);
    pair.expect(IBV_WC_SUCCESS);
    assert_int_equal(pair.b.memory[0], 1);
}

// Packets of UC do not have the number of their queue pair.
void unreliable_connection_may_have_another_peer(void **) {
    Pair pair({.type = IBV_QPT_UC});
    ibv_qp_attr attr = {};
    attr.qp_access_flags = ALL_ACCESS;
    assert_int_equal(pair.b.modify(IBV_QPS_RESET, 0), 0);
    assert_int_equal(connect_qp(pair.b.qp, attr, pair.a.gid, 1), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.expect(IBV_WC_SUCCESS);
    assert_int_equal(pair.b.memory[0], 1);
}

constexpr int HEADER = 40; // a GRH

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
        attr.max_dest_rd_atomic = 1;
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

    ibv_xrcd *open(int fd, int flags) {
        ibv_xrcd_init_attr attr = {};
        attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
        attr.fd = fd;
        attr.oflags = flags;
        direct.use_host(2);
        return ibv_open_xrcd(b.context, &attr);
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

// A receive has room for a GRH. Linux since 2024, drivers/infiniband/sw/rxe/rxe_resp.c,
// rxe_resp_check_length().
void datagram_longer_than_the_receive_fails_it_or_is_lost(void **) {
    const struct {
        const char *device;
        bool has_srq;
        ibv_wc_status status; // SUCCESS: it is lost
    } rows[] = {{"rxe", false, IBV_WC_SUCCESS},
                {"rxe", true, IBV_WC_REM_INV_REQ_ERR},
                {"mlx5", false, IBV_WC_LOC_LEN_ERR}};
    for (const auto &row : rows) {
        Direct direct(options_of(row.device));
        Side a(direct, 1, false, 0, 32, IBV_QPT_UD),
            b(direct, 2, row.has_srq, 0, 32, IBV_QPT_UD);
        activate_datagrams(a);
        activate_datagrams(b);
        receive_datagram(b);
        send_datagram(a, b.gid, b.qp->qp_num, 64 - HEADER + 1);
        assert_int_equal(a.poll().status, IBV_WC_SUCCESS);
        if (row.status != IBV_WC_SUCCESS)
            assert_int_equal(b.poll().status, row.status);
        else
            assert_true(b.is_empty());
        if (row.status != IBV_WC_SUCCESS)
            receive_datagram(b); // otherwise the first one is still posted
        send_datagram(a, b.gid, b.qp->qp_num, 64 - HEADER);
        assert_int_equal(b.poll().status, IBV_WC_SUCCESS);
    }
}

// InfiniBand Architecture Specification, volume 1, C10-93.1.1
void datagram_above_the_mtu_is_lost_without_an_error(void **) {
    for (const bool is_strong : {false, true}) {
        Options options = options_of("rxe");
        options.strong[static_cast<size_t>(Weakness::DATAGRAM_MTU)] = is_strong;
        Direct direct(options);
        Side a(direct, 1, false, 0, 32, IBV_QPT_UD), b(direct, 2, false, 0, 32, IBV_QPT_UD);
        activate_datagrams(a);
        activate_datagrams(b);
        receive_datagram(b, BYTES);
        send_datagram(a, b.gid, b.qp->qp_num, 1025);
        assert_int_equal(a.poll().status, IBV_WC_SUCCESS);
        if (is_strong)
            assert_int_equal(b.poll().byte_len, HEADER + 1025);
        else
            assert_true(b.is_empty());
        if (is_strong)
            receive_datagram(b, BYTES);
        send_datagram(a, b.gid, b.qp->qp_num, 1024);
        assert_int_equal(b.poll().byte_len, HEADER + 1024);
    }
}

int attach(const Side &side, const ibv_gid &group) {
    side.direct.use_host(side.host);
    return ibv_attach_mcast(side.qp, &group, 0xc001);
}

int detach(const Side &side, const ibv_gid &group) {
    side.direct.use_host(side.host);
    return ibv_detach_mcast(side.qp, &group, 0xc001);
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_recv.c, rxe_rcv_mcast_pkt(), and core/uverbs_cmd.c,
// ib_uverbs_attach_mcast()
void datagram_to_a_group_arrives_at_each_attached_queue_pair(void **) {
    const ibv_gid group = {{0xff, 0x0e, 1}}, other = {{0xff, 0x0e, 2}};
    Options options = options_of("rxe");
    options.hosts = 3;
    Direct direct(options);
    Side a(direct, 1, false, 0, 32, IBV_QPT_UD), b(direct, 2, false, 0, 32, IBV_QPT_UD),
        c(direct, 3, false, 0, 32, IBV_QPT_UD), d(direct, 3, false, 0, 32, IBV_QPT_UD);
    for (Side *const side : {&a, &b, &c, &d})
        activate_datagrams(*side);
    for (Side *const side : {&a, &b, &c})
        assert_int_equal(attach(*side, group), 0);
    assert_int_equal(attach(b, group), 0); // again
    assert_int_equal(attach(d, other), 0);
    for (Side *const side : {&a, &b, &c, &d})
        receive_datagram(*side);
    send_datagram(a, group, 0xffffff);
    a.poll(); // of the receive
    assert_int_equal(a.poll().status, IBV_WC_SUCCESS);
    for (const Side *const side : {&b, &c}) {
        const ibv_wc wc = side->poll();
        assert_int_equal(wc.opcode, IBV_WC_RECV);
        assert_int_equal(wc.byte_len, HEADER + 8);
        assert_int_equal(wc.src_qp, a.qp->qp_num);
        assert_memory_equal(side->memory + 24, group.raw, sizeof(group));
        assert_int_equal(side->memory[HEADER], 1);
        assert_true(side->is_empty());
    }
    assert_true(d.is_empty());
    // Only members whose link is up, and only by the number of multicasts.
    for (Side *const side : {&a, &b, &c})
        receive_datagram(*side);
    direct.fabric().cut(1, 2, true);
    send_datagram(a, group, 0xffffff);
    assert_true(b.is_empty());
    assert_int_equal(c.poll().opcode, IBV_WC_RECV);
    receive_datagram(c);
    send_datagram(a, group, c.qp->qp_num);
    assert_true(c.is_empty());
    // A member is not destroyed.
    direct.use_host(c.host);
    assert_int_equal(ibv_destroy_qp(c.qp), EBUSY);
    for (Side *const side : {&a, &b, &c})
        assert_int_equal(detach(*side, group), 0);
    assert_int_equal(detach(c, group), EINVAL);
    assert_int_equal(detach(d, other), 0);
    send_datagram(a, group, 0xffffff);
    assert_true(c.is_empty());
}

// Linux 7.3, drivers/infiniband/core/verbs.c, ib_attach_mcast(); sw/rxe/rxe_mcast.c,
// __rxe_init_mca()
void group_is_refused_as_by_the_kernel(void **) {
    static const struct {
        const char *device;
        ibv_qp_type type;
        ibv_gid group;
        uint16_t lid;
        int error;
    } rows[] = {
        {"rxe", IBV_QPT_UD, {{0xff, 0x0e}}, 0, 0},
        {"rxe", IBV_QPT_UD, {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 1, 1}}, 0, 0},
        {"rxe",
         IBV_QPT_UD,
         {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 1, 1}},
         0,
         EINVAL},
        {"rxe", IBV_QPT_UD, {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 239, 1, 1, 1}}, 0, EINVAL},
        {"rxe", IBV_QPT_UD, {{0xfe, 0x80}}, 0, EINVAL},
        {"rxe", IBV_QPT_RC, {{0xff, 0x0e}}, 0, EINVAL},
        {"mlx5-ib", IBV_QPT_UD, {{0xff, 0x12}}, 0xc000, 0},
        {"mlx5-ib", IBV_QPT_UD, {{0xff, 0x12}}, 0xbfff, EINVAL},
        {"mlx5-ib", IBV_QPT_UD, {{0xff, 0x12}}, 0xffff, EINVAL},
        {"hns", IBV_QPT_UD, {{0xff, 0x0e}}, 0, EOPNOTSUPP},
    };
    for (const auto &row : rows) {
        Direct direct(options_of(row.device));
        const Side side(direct, 1, false, 0, 32, row.type);
        const int error = ibv_attach_mcast(side.qp, &row.group, row.lid);
        if (error != row.error)
            fail_msg("%s, %#x: %d, not %d", row.device, row.lid, error, row.error);
        assert_true(error || !ibv_detach_mcast(side.qp, &row.group, row.lid));
    }
    Direct direct(options_of("irdma-roce")); // at most 8 queue pairs of the device
    std::vector<std::unique_ptr<Side>> sides;
    for (unsigned i = 0; i < 9; i++) {
        sides.push_back(std::make_unique<Side>(direct, 1, false, 0, 32, IBV_QPT_UD));
        assert_int_equal(attach(*sides.back(), {{0xff}}), i < 8 ? 0 : ENOMEM);
    }
    const Side other(direct, 2, false, 0, 32, IBV_QPT_UD);
    assert_int_equal(attach(other, {{0xff}}), 0);
    assert_int_equal(detach(other, {{0xff}}), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(detach(*sides[i], {{0xff}}), 0);
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

// ---- counters and netlink ------------------------------------------------------------------

struct Counted {
    const char *name;
    uint64_t of_a, of_b;
    const char *group = "hw_counters";
};

void expect_counters(const Pair &pair, std::initializer_list<Counted> rows) {
    for (const Counted &row : rows) {
        print_message("%s\n", row.name);
        assert_int_equal(counter_of(pair.a, row.name, row.group), row.of_a);
        assert_int_equal(counter_of(pair.b, row.name, row.group), row.of_b);
    }
}

// Packets have 1024 bytes. Linux 6.1, drivers/infiniband/sw/rxe: rxe_req.c, init_req_packet()
// requests one acknowledgement for each message; a read has a response for each packet.
void packets_and_messages_are_counted_on_soft_roce(void **) {
    Pair pair;
    pair.receive(4096);
    assert_int_equal(pair.post(IBV_WR_SEND, 3000), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 1024), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_READ, 4096), 0);
    assert_int_equal(pair.post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8), 0);
    expect_counters(pair, {{"sent_pkts", 3 + 1 + 1 + 1, 1 + 1 + 4 + 1},
                           {"rcvd_pkts", 1 + 1 + 4 + 1, 3 + 1 + 1 + 1},
                           {"rdma_sends", 1, 0},
                           {"rdma_recvs", 0, 1},
                           {"rcvd_rnr_err", 0, 0},
                           {"completer_retry_err", 0, 0}});
    pair.direct.fabric().set_port(1, 0, false);
    pair.direct.fabric().set_port(1, 0, true);
    expect_counters(pair, {{"link_downed", 1, 0}});
}

// Words of 4 bytes: Linux, Documentation/ABI/stable/sysfs-class-infiniband, port_xmit_data. The
// headers of InfiniBand have 26 bytes in each packet, and RETH 16, AETH 4.
void words_of_packets_are_counted_on_infiniband(void **) {
    Pair pair({.device = "mlx5-ib"});
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 2048), 0);
    expect_counters(pair,
                    {{"port_xmit_packets", 2, 1, "counters"},
                     {"port_rcv_packets", 1, 2, "counters"},
                     {"port_xmit_data", (2048 + 2 * 26 + 16) / 4, (26 + 4) / 4, "counters"},
                     {"rx_write_requests", 0, 1},
                     {"rx_read_requests", 0, 0}});
}

// The retries of a missing receive are 1.28 ms apart, those of a missing response 67.1 ms.
void attempts_without_an_effect_are_counted(void **) {
    {
        Pair pair({.rnr_retry = 7});
        assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
        expect_counters(pair, {{"rcvd_rnr_err", 1, 0}, {"send_rnr_err", 0, 1}});
        pair.direct.advance(3 * 1'280'000);
        expect_counters(pair, {{"rcvd_rnr_err", 4, 0}, {"sent_pkts", 4, 4}});
        pair.receive(64);
        expect_counters(pair, {{"rcvd_rnr_err", 4, 0}, {"sent_pkts", 5, 5}});
    }
    {
        Pair pair({.rnr_retry = 2});
        assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
        pair.direct.advance(SECOND);
        expect_counters(pair, {{"rcvd_rnr_err", 3, 0}, {"retry_rnr_exceeded_err", 1, 0}});
    }
    Pair pair({.retry_cnt = 3});
    pair.direct.fabric().cut(1, 2, true);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.advance(150'000'000);
    expect_counters(pair, {{"completer_retry_err", 2, 0}, {"sent_pkts", 3, 0}});
    pair.direct.advance(SECOND);
    expect_counters(pair, {{"completer_retry_err", 3, 0},
                           {"sent_pkts", 4, 0},
                           {"rcvd_pkts", 0, 0},
                           {"retry_exceeded_err", 1, 0}});
}

// The names of the counters define the meaning.
void errors_are_counted_by_their_status_on_mlx5(void **) {
    Pair pair({.device = "mlx5"});
    const auto change = [](ibv_send_wr &wr, ibv_sge &) { wr.wr.rdma.rkey ^= 0xff00; };
    pair.receive(64);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, change), 0);
    pair.expect(IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    expect_counters(pair, {{"req_remote_access_errors", 1, 0},
                           {"resp_remote_access_errors", 0, 1},
                           {"req_cqe_error", 2, 0},
                           {"req_cqe_flush_error", 1, 0},
                           {"resp_cqe_flush_error", 0, 1},
                           {"out_of_buffer", 0, 0}});
}

// A request of NETLINK_RDMA with attributes of 4 bytes.
struct NetlinkRequest {
    std::vector<char> bytes = std::vector<char>(NLMSG_HDRLEN);
    std::vector<char> reply = std::vector<char>(MAX_MESSAGE);
    size_t length = 0;

    NetlinkRequest(unsigned operation, unsigned flags,
                   std::initializer_list<std::pair<unsigned, uint32_t>> attributes = {}) {
        for (const auto &[type, value] : attributes) {
            const nlattr head = {8, static_cast<uint16_t>(type)};
            bytes.insert(bytes.end(), reinterpret_cast<const char *>(&head),
                         reinterpret_cast<const char *>(&head + 1));
            bytes.insert(bytes.end(), reinterpret_cast<const char *>(&value),
                         reinterpret_cast<const char *>(&value + 1));
        }
        nlmsghdr head = {};
        head.nlmsg_len = static_cast<uint32_t>(bytes.size());
        head.nlmsg_type = static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, operation));
        head.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
        memcpy(bytes.data(), &head, sizeof(head));
    }
    int call(unsigned host, bool is_admin = false) {
        Netlink request = {};
        request.host = host;
        request.is_admin = is_admin;
        rdma_sim_message message{&request,
                                 sizeof(request),
                                 bytes.data(),
                                 bytes.size(),
                                 reply.data(),
                                 reply.size(),
                                 0,
                                 -1};
        const int error = rdma_sim_call(&message);
        length = error ? 0 : message.length - sizeof(Netlink::Reply);
        return error;
    }
    // Returns the number of messages. Each one, and each attribute of it, is complete.
    unsigned messages() const {
        unsigned count = 0;
        size_t at = sizeof(Netlink::Reply);
        for (nlmsghdr head; at < sizeof(Netlink::Reply) + length; at += head.nlmsg_len) {
            memcpy(&head, reply.data() + at, sizeof(head));
            assert_in_range(head.nlmsg_len, sizeof(head), sizeof(Netlink::Reply) + length - at);
            check_attributes(at + sizeof(head), head.nlmsg_len - sizeof(head));
            count++;
        }
        return count;
    }
    void check_attributes(size_t at, size_t size) const {
        const size_t end = at + size;
        for (nlattr head; at < end; at += NLA_ALIGN(head.nla_len)) {
            memcpy(&head, reply.data() + at, sizeof(head));
            assert_in_range(head.nla_len, sizeof(head), end - at);
        }
        assert_int_equal(at, end);
    }
};

void netlink_refuses_what_the_kernel_refuses(void **) {
    Pair pair;
    constexpr auto INDEX = RDMA_NLDEV_ATTR_DEV_INDEX, PORT = RDMA_NLDEV_ATTR_PORT_INDEX;
    const struct {
        const char *what;
        NetlinkRequest request;
        int error;
        bool is_admin = false;
    } rows[] = {
        {"a device", {RDMA_NLDEV_CMD_GET, 0, {{INDEX, 0}}}, 0},
        {"all devices", {RDMA_NLDEV_CMD_GET, NLM_F_DUMP}, 0},
        {"no device", {RDMA_NLDEV_CMD_GET, 0}, EINVAL},
        {"another device", {RDMA_NLDEV_CMD_GET, 0, {{INDEX, 1}}}, EINVAL},
        {"a port", {RDMA_NLDEV_CMD_PORT_GET, 0, {{INDEX, 0}, {PORT, 1}}}, 0},
        {"another port", {RDMA_NLDEV_CMD_PORT_GET, 0, {{INDEX, 0}, {PORT, 2}}}, EINVAL},
        {"a dump that does not exist", {RDMA_NLDEV_CMD_SYS_GET, NLM_F_DUMP}, EINVAL},
        {"an unknown command", {99, 0}, EINVAL},
        {"a QP without a port",
         {RDMA_NLDEV_CMD_RES_QP_GET, 0, {{INDEX, 0}, {RDMA_NLDEV_ATTR_RES_LQPN, 17}}},
         EINVAL},
        {"a QP",
         {RDMA_NLDEV_CMD_RES_QP_GET,
          0,
          {{INDEX, 0}, {PORT, 1}, {RDMA_NLDEV_ATTR_RES_LQPN, pair.a.qp->qp_num}}},
         0},
        {"the QP of another host",
         {RDMA_NLDEV_CMD_RES_QP_GET,
          0,
          {{INDEX, 0}, {PORT, 1}, {RDMA_NLDEV_ATTR_RES_LQPN, pair.b.qp->qp_num}}},
         ENOENT},
        {"statistics", {RDMA_NLDEV_CMD_STAT_GET, 0, {{INDEX, 0}, {PORT, 1}}}, 0},
        {"an attribute that strict commands do not know",
         {RDMA_NLDEV_CMD_STAT_GET, 0, {{INDEX, 0}, {PORT, 1}, {999, 0}}},
         EINVAL},
        {"an attribute that others ignore", {RDMA_NLDEV_CMD_GET, 0, {{INDEX, 0}, {999, 0}}}, 0},
        {"a change without the privilege", {RDMA_NLDEV_CMD_SET, 0, {{INDEX, 0}}}, EPERM},
        {"a change", {RDMA_NLDEV_CMD_SET, 0, {{INDEX, 0}}}, EOPNOTSUPP, true},
    };
    for (auto row : rows) {
        print_message("%s\n", row.what);
        assert_int_equal(row.request.call(1, row.is_admin), row.error);
        assert_int_equal(row.request.messages(), row.error == 0);
    }
    NetlinkRequest too_long(RDMA_NLDEV_CMD_GET, 0, {{INDEX, 0}});
    too_long.bytes[NLMSG_HDRLEN] = 12; // nla_len exceeds the message
    assert_int_equal(too_long.call(1), EINVAL);
    uint32_t text;
    memcpy(&text, "uver", sizeof(text)); // without a final zero
    NetlinkRequest not_ended(RDMA_NLDEV_CMD_GET_CHARDEV, 0,
                             {{RDMA_NLDEV_ATTR_CHARDEV_TYPE, text}});
    assert_int_equal(not_ended.call(1), EINVAL);
}

// Each message of a dump has room for some of the QPs.
void many_objects_are_listed_in_parts_by_netlink(void **) {
    Pair pair;
    std::vector<ibv_qp *> made;
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = pair.a.cq;
    attr.cap = {1, 1, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    for (unsigned i = 0; i < 2000; i++)
        made.push_back(ibv_create_qp(pair.a.pd, &attr));
    NetlinkRequest request(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP,
                           {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}});
    unsigned parts = 0;
    std::vector<uint32_t> found;
    Netlink asked = {};
    asked.host = 1;
    do {
        rdma_sim_message message{&asked,
                                 sizeof(asked),
                                 request.bytes.data(),
                                 request.bytes.size(),
                                 request.reply.data(),
                                 request.reply.size(),
                                 0,
                                 -1};
        assert_int_equal(rdma_sim_call(&message), 0);
        request.length = message.length - sizeof(Netlink::Reply);
        assert_true(request.messages() > 1);
        for (size_t at = 0; at + 8 <= message.length; at += 4) {
            nlattr head;
            uint32_t number;
            memcpy(&head, request.reply.data() + at, sizeof(head));
            memcpy(&number, request.reply.data() + at + 4, sizeof(number));
            if (head.nla_len == 8 && head.nla_type == RDMA_NLDEV_ATTR_RES_LQPN)
                found.push_back(number);
        }
        memcpy(&asked.start, request.reply.data(), sizeof(asked.start));
        parts++;
    } while (asked.start != 0);
    assert_true(parts > 1);
    assert_int_equal(found.size(), made.size() + 2); // and that of the pair, and of ib_core
    for (ibv_qp *const qp : made) {
        assert_int_equal(std::count(found.begin(), found.end(), qp->qp_num), 1);
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
}

// Random bytes after a valid header.
void malformed_netlink_requests_are_refused(void **) {
    Pair pair;
    std::mt19937 generator(1);
    for (unsigned i = 0; i < 50'000; i++) {
        NetlinkRequest request(generator() % 32, generator() % 2 ? NLM_F_DUMP : 0,
                               {{RDMA_NLDEV_ATTR_DEV_INDEX, generator() % 2},
                                {generator() % (RDMA_NLDEV_ATTR_MAX + 2), generator()}});
        for (unsigned change = 0; change < 3; change++)
            if (generator() % 2)
                request.bytes[16 + generator() % (request.bytes.size() - 16)] =
                    static_cast<char>(generator());
        if (generator() % 4 == 0) // nlmsg_len is larger
            request.bytes.resize(generator() % request.bytes.size());
        const int error = request.call(1, generator() % 2);
        assert_true(error >= 0);
        (void)request.messages();
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

// Of each write of three words, the second word becomes visible later.
struct SecondIsLate : Clock {
    std::vector<bool> late_words(Fabric &, size_t count) override {
        return count == 3 ? std::vector<bool>{false, true, false} : std::vector<bool>{};
    }
};

// The words of side b that side a has overwritten: bit n for word n.
unsigned overwritten(const Pair &pair) {
    unsigned words = 0;
    for (unsigned word = 0; word < 3; word++)
        words |= (pair.b.memory[8 * word + 7] == 1 ? 1U : 0U) << word;
    return words;
}

void late_word_is_visible_after_a_request_that_orders_it(void **) {
    const struct {
        ibv_wr_opcode opcode;
        size_t length;
        bool orders;
    } rows[] = {{IBV_WR_RDMA_READ, 0, false},          {IBV_WR_RDMA_READ, 1, true},
                {IBV_WR_RDMA_WRITE, 8, false},         {IBV_WR_RDMA_WRITE, 9, true}, // the word
                {IBV_WR_RDMA_WRITE_WITH_IMM, 0, true}, {IBV_WR_SEND, 0, true},
                {IBV_WR_ATOMIC_FETCH_AND_ADD, 8, true}};
    for (const auto &row : rows) {
        SecondIsLate scheduler;
        Pair pair({.scheduler = &scheduler});
        pair.receive(64);
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 24), 0);
        pair.expect(IBV_WC_SUCCESS);
        assert_int_equal(overwritten(pair), 5);
        assert_int_equal(pair.post(row.opcode, row.length), 0);
        assert_int_equal(overwritten(pair) >> 1 & 1, row.orders);
        pair.direct.advance(100'000'000);
        assert_int_equal(overwritten(pair) >> 1 & 1, 1);
    }
}

void interrupted_write_arrives_in_part(void **) {
    SecondIsLate scheduler;
    Pair pair({.scheduler = &scheduler});
    pair.direct.fabric().set_delay(1, 2, 1'000'000);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 24), 0);
    assert_int_equal(overwritten(pair), 0);
    pair.direct.fabric().interrupt_writes(pair.direct.fabric().qps.begin()->second->pid);
    assert_int_equal(overwritten(pair), 2);
}

// Two writers change a word after its last persistent value, 1.
void power_failure_leaves_any_value_since_the_persistent_one(void **) {
    char path[] = "/tmp/rdma-sim-verbs-XXXXXX";
    const int fd = mkstemp(path);
    assert_int_equal(ftruncate(fd, 8), 0);
    auto *const word =
        static_cast<uint64_t *>(mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    std::set<uint64_t> found;
    for (unsigned seed = 0; seed < 64; seed++) {
        std::mt19937_64 generator(seed);
        std::string error;
        *word = 0;
        const auto file = PmemFile::open(path, error);
        assert_non_null(file.get());
        file->keep_history();
        for (const auto &[value, writer] : {std::pair{1U, 5U}, {2U, 6U}, {3U, 5U}}) {
            *word = value;
            file->record(0, 8, writer);
            if (value == 1)
                file->persist(0, 8, writer);
        }
        file->persist(0, 8, 7); // of a third writer
        file->lose_power(seed == 0 ? nullptr : &generator);
        assert_true(seed > 0 || *word == 1);
        found.insert(*word);
    }
    assert_true((found == std::set<uint64_t>{1, 2, 3}));
    munmap(word, 8);
    close(fd);
    unlink(path);
}

// A write of a device is persistent after a read of the same queue pair.
void read_makes_earlier_writes_persistent(void **) {
    Recorded recorded;
    Pair pair({.persistence = &recorded});
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 100), 0);
    assert_int_equal(recorded.persisted, 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_READ, 0), 0); // need not reach the memory
    assert_int_equal(recorded.persisted, 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_READ, 8), 0);
    assert_int_equal(recorded.persisted, 100);
    assert_int_equal(pair.post(IBV_WR_RDMA_READ, 8), 0);
    assert_int_equal(recorded.persisted, 100);
}

void registration_is_stored_by_its_key_until_its_end(void **) {
    Recorded recorded;
    {
        Pair pair({.device = "mlx5", .persistence = &recorded});
        pair.direct.use_host(1);
        const auto length_of = [&](const ibv_mr *mr) { return recorded.regions.at(mr->rkey); };
        const size_t regions = recorded.regions.size();
        char memory[64];
        ibv_mr *const mr = ibv_reg_mr(pair.a.pd, memory, 64, ALL_ACCESS);
        ibv_mr *const other = ibv_reg_mr(pair.a.pd, memory, 32, ALL_ACCESS);
        assert_int_equal(length_of(mr), 64);
        assert_int_equal(length_of(other), 32);
        assert_int_equal(
            ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory, 16, 0), 0);
        assert_int_equal(length_of(mr), 16);
        assert_int_equal(recorded.regions.size(), regions + 2);
        assert_int_equal(ibv_dereg_mr(other), 0);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        ibv_mr *const on_demand =
            ibv_reg_mr(pair.a.pd, memory, 64, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
        assert_int_equal(recorded.regions.size(), regions);
        assert_int_equal(ibv_dereg_mr(on_demand), 0);
    }
    assert_true(recorded.regions.empty());
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c, process_flush() and check_rkey().
void native_flush_makes_its_range_persistent(void **) {
    static const struct {
        bool has_access;
        size_t length;
        ibv_wc_status status;
        uint64_t persisted;
    } rows[] = {{true, 64, IBV_WC_SUCCESS, 64},
                {true, 0, IBV_WC_SUCCESS, 0},
                {false, 64, IBV_WC_REM_ACCESS_ERR, 0},
                {false, 0, IBV_WC_REM_ACCESS_ERR, 0}};
    for (const auto &row : rows) {
        Recorded recorded;
        Pair pair({.send_ops = SIM_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE,
                   .persistence = &recorded});
        pair.direct.use_host(2);
        const unsigned flushes = row.has_access ? SIM_ACCESS_FLUSH_PERSISTENT : 0;
        ibv_mr *const mr =
            ibv_reg_mr_iova2(pair.b.pd, pair.b.memory, BYTES,
                             reinterpret_cast<uint64_t>(pair.b.memory), ALL_ACCESS | flushes);
        assert_non_null(mr);
        pair.direct.use_host(1);
        ibv_qp_ex *const qp = ibv_qp_to_qp_ex(pair.a.qp);
        ibv_wr_start(qp);
        ibv_wr_rdma_write(qp, mr->rkey, reinterpret_cast<uint64_t>(pair.b.memory));
        ibv_wr_set_sge(qp, pair.a.mr->lkey, reinterpret_cast<uint64_t>(pair.a.memory), 100);
        qp->wr_id = 11;
        qp->wr_flags = IBV_SEND_SIGNALED;
        flush_of(qp)(qp, mr->rkey, reinterpret_cast<uint64_t>(pair.b.memory), row.length,
                     SIM_FLUSH_PERSISTENT, SIM_FLUSH_RANGE);
        assert_int_equal(ibv_wr_complete(qp), 0);
        pair.expect(row.status);
        assert_int_equal(recorded.persisted, row.persisted);
        pair.direct.use_host(2);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
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
        cmocka_unit_test(inline_data_may_change_after_the_post),
        cmocka_unit_test(errors_have_the_status_of_the_specification),
        cmocka_unit_test(request_that_needs_a_read_resource_is_refused_without_one),
        cmocka_unit_test(data_of_builder_is_inline_by_flag_on_rxe),
        cmocka_unit_test(unreliable_connection_loses_messages_without_an_error),
        cmocka_unit_test(unreliable_connection_completes_when_its_message_arrives),
        cmocka_unit_test(unreliable_connection_may_have_another_peer),
        cmocka_unit_test(datagram_longer_than_the_receive_fails_it_or_is_lost),
        cmocka_unit_test(datagram_above_the_mtu_is_lost_without_an_error),
        cmocka_unit_test(datagram_to_a_group_arrives_at_each_attached_queue_pair),
        cmocka_unit_test(group_is_refused_as_by_the_kernel),
        cmocka_unit_test(overrun_cq_fails_its_queue_pairs),
        cmocka_unit_test(send_is_pending_until_a_receive),
        cmocka_unit_test(send_without_a_receive_fails_after_its_retries),
        cmocka_unit_test(cut_link_fails_requests_after_the_timeout),
        cmocka_unit_test(lost_responses_do_not_stop_later_requests),
        cmocka_unit_test(request_is_executed_if_its_link_returns_in_time),
        cmocka_unit_test(delay_applies_in_both_directions),
        cmocka_unit_test(fault_refuses_the_nth_post),
        cmocka_unit_test(doorbell_fails_after_all_requests_are_queued),
        cmocka_unit_test(refused_send_has_the_error_number_of_its_provider),
        cmocka_unit_test(entry_of_an_executed_request_is_free_after_a_later_poll),
        cmocka_unit_test(transitions_need_their_attributes),
        cmocka_unit_test(reset_queue_pair_loses_completions_and_is_reused_as_by_the_driver),
        cmocka_unit_test(unmapped_memory_is_not_registered),
        cmocka_unit_test(list_of_an_extended_queue_pair_is_posted_once),
        cmocka_unit_test(extended_cq_returns_each_completion),
        cmocka_unit_test(extended_cq_is_refused_as_by_the_driver),
        cmocka_unit_test(failed_completion_is_that_of_the_driver),
        cmocka_unit_test(reregistered_region_keeps_its_keys),
        cmocka_unit_test(file_on_fs_dax_is_refused_without_on_demand_paging),
        cmocka_unit_test(device_refuses_what_its_driver_lacks),
        cmocka_unit_test(receive_without_memory_completes),
        cmocka_unit_test(each_cause_of_a_wait_has_its_own_time),
        cmocka_unit_test(packets_and_messages_are_counted_on_soft_roce),
        cmocka_unit_test(words_of_packets_are_counted_on_infiniband),
        cmocka_unit_test(attempts_without_an_effect_are_counted),
        cmocka_unit_test(errors_are_counted_by_their_status_on_mlx5),
        cmocka_unit_test(netlink_refuses_what_the_kernel_refuses),
        cmocka_unit_test(many_objects_are_listed_in_parts_by_netlink),
        cmocka_unit_test(malformed_netlink_requests_are_refused),
        cmocka_unit_test(gid_table_is_refused_without_room_for_each_entry),
        cmocka_unit_test(gid_of_iwarp_is_the_link_address),
        cmocka_unit_test(unknown_attribute_of_a_queue_pair_is_refused),
        cmocka_unit_test(command_descriptor_is_open),
        cmocka_unit_test(late_word_is_visible_after_a_request_that_orders_it),
        cmocka_unit_test(interrupted_write_arrives_in_part),
        cmocka_unit_test(power_failure_leaves_any_value_since_the_persistent_one),
        cmocka_unit_test(read_makes_earlier_writes_persistent),
        cmocka_unit_test(native_flush_makes_its_range_persistent),
        cmocka_unit_test(window_of_type_1_permits_its_range_and_access_until_it_is_bound_again),
        cmocka_unit_test(window_of_type_2_is_bound_by_one_queue_pair_until_it_is_invalidated),
        cmocka_unit_test(invalid_bind_or_invalidation_fails_its_queue_pair),
        cmocka_unit_test(message_that_invalidates_no_window_fails_both_sides),
        cmocka_unit_test(device_without_windows_refuses_them),
        cmocka_unit_test(message_of_xrc_arrives_at_the_srq_that_it_names),
        cmocka_unit_test(message_of_xrc_to_no_srq_of_the_domain_fails_both_sides),
        cmocka_unit_test(domain_of_xrc_is_that_of_its_file),
        cmocka_unit_test(queue_pair_of_xrc_has_no_other_queue),
        cmocka_unit_test(registration_is_stored_by_its_key_until_its_end),
        cmocka_unit_test(removed_device_reports_a_fatal_event),
        cmocka_unit_test(port_reports_its_state),
        cmocka_unit_test(destroyed_object_has_no_events),
        cmocka_unit_test(end_of_many_objects_can_be_interrupted),
        cmocka_unit_test(object_beyond_the_limit_of_the_device_is_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
