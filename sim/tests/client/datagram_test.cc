// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// datagram_test.cc -- datagrams, multicast groups and unreliable connections, through
// libibverbs.

#include "pair.hh"

#include <cerrno>
#include <functional>
#include <memory>
#include <poll.h>
#include <sys/mman.h>
#include <vector>

namespace {

using namespace sim;

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

// 9.8.3: the GRH names the GID that the address handle of the sender chose.
void header_of_a_datagram_has_the_address_of_its_sender(void **) {
    Direct direct(options_of("rxe"));
    Side a(direct, 1, false, 0, 32, IBV_QPT_UD), b(direct, 2, false, 0, 32, IBV_QPT_UD);
    activate_datagrams(a);
    activate_datagrams(b);
    for (uint8_t index = 0; index < 3; index++) {
        ibv_gid gid;
        ibv_grh header;
        direct.use_host(1);
        assert_int_equal(ibv_query_gid(a.context, 1, index, &gid), 0);
        receive_datagram(b);
        send_datagram(a, b.gid, b.qp->qp_num, 8, 0, index);
        assert_int_equal(b.poll().status, IBV_WC_SUCCESS);
        memcpy(&header, b.memory, sizeof(header));
        assert_memory_equal(&header.sgid, &gid, sizeof(gid));
        assert_memory_equal(&header.dgid, &b.gid, sizeof(gid));
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

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(unreliable_connection_loses_messages_without_an_error),
        cmocka_unit_test(unreliable_connection_completes_when_its_message_arrives),
        cmocka_unit_test(unreliable_connection_may_have_another_peer),
        cmocka_unit_test(datagram_longer_than_the_receive_fails_it_or_is_lost),
        cmocka_unit_test(header_of_a_datagram_has_the_address_of_its_sender),
        cmocka_unit_test(datagram_above_the_mtu_is_lost_without_an_error),
        cmocka_unit_test(datagram_to_a_group_arrives_at_each_attached_queue_pair),
        cmocka_unit_test(group_is_refused_as_by_the_kernel),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
