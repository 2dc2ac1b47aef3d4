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

// Returns the sum of the 16-bit words of a header of IPv4, which is ~0 with the right checksum.
uint32_t checksum_of(const uint8_t *header) {
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2)
        sum += static_cast<uint32_t>(header[i] << 8 | header[i + 1]);
    return (sum & 0xffff) + (sum >> 16);
}

// 9.8.3: the GRH names the GID that the address handle of the sender chose. The header of IPv4
// and its place: ../conformance/datagram_rxe.tsv; rdma-core, libibverbs/verbs.c,
// set_ah_attr_by_ipv4() and set_ah_attr_by_ipv6(). sl: ../../device/devices.tsv.
void header_of_a_datagram_has_the_addresses_and_the_family_of_its_gids(void **) {
    static const struct {
        const char *device;
        uint8_t index, sl;
        bool is_ip4;
    } rows[] = {{"rxe", 0, 0, false},    {"rxe", 1, 0, true},        {"rxe", 2, 0, false},
                {"mlx5", 1, 10, true},   {"mlx5", 2, 9, false},      {"hns", 1, 2, true},
                {"bnxt_re", 1, 2, true}, {"irdma-roce", 1, 0, true}, {"mlx5-ib", 0, 0, false}};
    for (const auto &row : rows) {
        print_message("%s, GID %d\n", row.device, row.index);
        Direct direct(options_of(row.device));
        Side a(direct, 1, false, 0, 32, IBV_QPT_UD), b(direct, 2, false, 0, 32, IBV_QPT_UD);
        activate_datagrams(a);
        activate_datagrams(b);
        ibv_gid from, to;
        ibv_ah_attr reply;
        direct.use_host(1);
        assert_int_equal(ibv_query_gid(a.context, 1, row.index, &from), 0);
        direct.use_host(2);
        assert_int_equal(ibv_query_gid(b.context, 1, row.index, &to), 0);
        receive_datagram(b);
        send_datagram(a, to, b.qp->qp_num, 7, 0, row.index);
        ibv_wc wc = b.poll();
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.sl, row.sl);
        assert_int_equal(wc.slid, strcmp(row.device, "mlx5-ib") == 0 ? 17 : 0);
        const auto *const area = reinterpret_cast<const uint8_t *>(b.memory);
        auto *const header = reinterpret_cast<ibv_grh *>(b.memory);
        if (row.is_ip4) {
            const uint8_t zeros[20] = {}, addresses[] = {10, 77, 0, 1, 10, 77, 0, 2};
            assert_memory_equal(area, zeros, sizeof(zeros));
            assert_int_equal(area[20], 0x45);
            assert_int_equal(area[23], 20 + 8 + 12 + 8 + 8 + 4); // the length
            assert_int_equal(area[28], 64);                      // hops, which none requested
            assert_int_equal(area[29], 17);                      // UDP
            assert_memory_equal(area + 32, addresses, sizeof(addresses));
            assert_int_equal(checksum_of(area + 20), 0xffff);
        } else {
            assert_int_equal(area[0] >> 4, 6);
            assert_memory_equal(&header->sgid, &from, sizeof(from));
            assert_memory_equal(&header->dgid, &to, sizeof(to));
        }
        direct.use_host(2);
        assert_int_equal(ibv_init_ah_from_wc(b.context, 1, &wc, header, &reply), 0);
        assert_memory_equal(&reply.grh.dgid, &from, sizeof(from));
        assert_int_equal(reply.grh.sgid_index, row.index);
        memset(row.is_ip4 ? b.memory + 36 : reinterpret_cast<char *>(&header->dgid), 239, 1);
        assert_int_equal(ibv_init_ah_from_wc(b.context, 1, &wc, header, &reply), -1); // a group
    }
}

// Linux 7.3, drivers/infiniband/core/verbs.c, rdma_fill_sgid_attr(), and core/addr.c,
// rdma_resolve_ip(); ../conformance/datagram_rxe.tsv
void path_needs_a_source_of_the_family_of_its_destination(void **) {
    static const struct {
        const char *device;
        uint8_t source, destination;
        int error;
    } rows[] = {{"rxe", 1, 1, 0},
                {"rxe", 0, 2, 0},
                {"rxe", 0, 1, EINVAL},
                {"rxe", 1, 2, EINVAL},
                {"rxe", 3, 1, ENODATA},
                {"irdma-roce", 31, 1, ENODATA},
                {"irdma-roce", 32, 1, EINVAL},
                {"mlx5-ib", 1, 0, ENODATA}};
    for (const auto &row : rows) {
        Direct direct(options_of(row.device));
        Side a(direct, 1, false, 0, 32);
        ibv_qp_attr attr = {};
        attr.qp_state = IBV_QPS_RTR;
        attr.path_mtu = IBV_MTU_1024;
        attr.ah_attr.port_num = attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.sgid_index = row.source;
        assert_int_equal(ibv_query_gid(a.context, 1, row.destination, &attr.ah_attr.grh.dgid),
                         0);
        assert_int_equal(
            a.modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
        assert_int_equal(ibv_modify_qp(a.qp, &attr,
                                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                           IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                         row.error);
        errno = 0;
        ibv_ah *const made = ibv_create_ah(a.pd, &attr.ah_attr);
        assert_int_equal(errno, row.error);
        assert_int_equal(!made, row.error != 0);
        if (made)
            assert_int_equal(ibv_destroy_ah(made), 0);
    }
}

// 11.4.2.1: the area of the GRH is undefined, and the completion has the source's LID and SL.
void area_of_a_datagram_without_a_header_is_not_written(void **) {
    Direct direct(options_of("mlx5-ib"));
    Side a(direct, 1, false, 0, 32, IBV_QPT_UD), b(direct, 2, false, 0, 32, IBV_QPT_UD);
    activate_datagrams(a);
    activate_datagrams(b);
    ibv_port_attr port;
    direct.use_host(2);
    assert_int_equal(ibv_query_port(b.context, 1, &port), 0);
    ibv_ah_attr attr = {};
    attr.port_num = 1;
    attr.dlid = port.lid;
    attr.sl = 3;
    memset(b.memory, 0x5a, HEADER);
    receive_datagram(b);
    send_datagram(a, attr, b.qp->qp_num);
    const ibv_wc wc = b.poll();
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, HEADER + 8);
    assert_int_equal(wc.wc_flags & IBV_WC_GRH, 0);
    assert_int_equal(wc.sl, 3);
    for (int i = 0; i < HEADER; i++)
        assert_int_equal(b.memory[i], 0x5a);
    assert_int_equal(b.memory[HEADER], 1);
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c, RESPST_ERR_MALFORMED_WQE, of class A
void datagram_to_a_receive_with_an_unknown_key_fails_the_queue_pair(void **) {
    Direct direct(options_of("rxe"));
    Side a(direct, 1, false, 0, 32, IBV_QPT_UD), b(direct, 2, false, 0, 32, IBV_QPT_UD);
    activate_datagrams(a);
    activate_datagrams(b);
    b.mr->lkey ^= 0xff00;
    receive_datagram(b);
    b.mr->lkey ^= 0xff00;
    send_datagram(a, b.gid, b.qp->qp_num);
    const ibv_wc wc = b.poll();
    assert_int_equal(wc.status, IBV_WC_LOC_QP_OP_ERR);
    assert_int_equal(wc.src_qp, 0);
    assert_int_equal(b.state(), IBV_QPS_ERR);
    assert_int_equal(a.state(), IBV_QPS_RTS);
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
        cmocka_unit_test(header_of_a_datagram_has_the_addresses_and_the_family_of_its_gids),
        cmocka_unit_test(path_needs_a_source_of_the_family_of_its_destination),
        cmocka_unit_test(area_of_a_datagram_without_a_header_is_not_written),
        cmocka_unit_test(datagram_to_a_receive_with_an_unknown_key_fails_the_queue_pair),
        cmocka_unit_test(datagram_above_the_mtu_is_lost_without_an_error),
        cmocka_unit_test(datagram_to_a_group_arrives_at_each_attached_queue_pair),
        cmocka_unit_test(group_is_refused_as_by_the_kernel),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
