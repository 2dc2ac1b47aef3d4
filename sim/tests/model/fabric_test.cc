// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// fabric_test.cc -- rules of links, hosts, faults, weaknesses, timers and counters, each by
// itself. The sources of the expected values are those of objects_test.cc.

#include "../../direct/test.hh"
#include "../../model/faults.hh"
#include "../../model/qp_state.hh"
#include "../client/pair.hh"

#include <cerrno>

namespace {

using namespace sim;

// Two more queue pairs, which are connected and use the memory of a pair.
struct Others {
    Side c, d;
    ibv_mr *shared; // the memory of pair.b
    explicit Others(Pair &pair, const Setup &setup = {})
        : c(pair.direct, 1, false, 0, 32), d(pair.direct, 2, false, 0, 32) {
        Pair::connect(c, d, setup);
        Pair::connect(d, c, setup);
        pair.direct.use_host(2);
        shared = ibv_reg_mr(d.pd, pair.b.memory, BYTES, ALL_ACCESS);
    }
    ~Others() {
        d.direct.use_host(2);
        assert_int_equal(ibv_dereg_mr(shared), 0);
    }
    Others(const Others &) = delete;
    Others &operator=(const Others &) = delete;
    void post(ibv_wr_opcode opcode, size_t offset, uint32_t length) {
        ibv_sge sge = {address_of(c.memory), length, c.mr->lkey};
        ibv_send_wr wr = {}, *bad;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = opcode;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.rdma = {address_of(shared->addr) + offset, shared->rkey};
        c.direct.use_host(1);
        assert_int_equal(ibv_post_send(c.qp, &wr, &bad), 0);
    }
};

// ---- words ---------------------------------------------------------------------------------

// Of each write of three words, the second word becomes visible later.
struct SecondIsLate : Scheduler {
    unsigned choose(Weakness weakness, unsigned options) override {
        return weakness == Weakness::WORD_ORDER && options == 7 ? 2 : 0;
    }
};

// o9-20: writes of a queue pair to one word keep their order.
void late_word_is_visible_after_its_delay(void **) {
    SecondIsLate scheduler;
    Pair pair({.scheduler = &scheduler});
    const auto write = [&](size_t offset, size_t length) {
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, length,
                                   [&](ibv_send_wr &wr, ibv_sge &sge) {
                                       wr.wr.rdma.remote_addr += offset;
                                       sge.addr += offset;
                                   }),
                         0);
    };
    write(0, 24);
    pair.direct.advance(50'000'000);
    write(64, 24);
    pair.direct.advance(50'000'000);
    assert_int_equal(pair.b.memory[8], 1);
    assert_int_equal(pair.b.memory[72], 2);
    pair.direct.advance(50'000'000);
    assert_int_equal(pair.b.memory[72], 1);
    for (const size_t offset : {12U, 4U}) { // within, and before the late word
        write(0, 24);
        memset(pair.a.memory, 5, BYTES);
        write(offset, 8);
        pair.direct.advance(SECOND);
        for (size_t i = 0; i < 8; i++)
            assert_int_equal(pair.b.memory[offset + i], 5);
        memset(pair.a.memory, 1, BYTES);
    }
}

// The second of three words is late.
struct TearsReads : Scheduler {
    unsigned choose(Weakness weakness, unsigned options) override {
        return weakness == Weakness::TORN_READ && options == 6 ? 2 : 0;
    }
};

void torn_read_has_words_of_two_moments(void **) {
    TearsReads scheduler;
    Pair pair({.scheduler = &scheduler});
    const auto expect = [&](int first, int second) {
        assert_int_equal(pair.a.memory[7], first);
        assert_int_equal(pair.a.memory[8], second);
        assert_int_equal(pair.a.memory[15], second);
        assert_int_equal(pair.a.memory[16], first);
    };
    const auto read = [&](size_t length) {
        assert_int_equal(pair.post(IBV_WR_RDMA_READ, length), 0);
    };
    const auto fill = [&](int value) { memset(pair.b.memory, value, BYTES); };
    fill(3);
    read(24);
    expect(1, 1);
    fill(4);
    pair.direct.advance(100'000'000);
    expect(3, 4);
    read(24); // until the next request
    fill(5);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    fill(6);
    pair.direct.advance(100'000'000);
    expect(4, 5);
    read(16); // of two words
    assert_int_equal(pair.a.memory[8], 6);
    read(24); // until the end of the region
    fill(7);
    pair.direct.use_host(2);
    assert_int_equal(ibv_dereg_mr(pair.b.mr), 0);
    pair.b.mr = ibv_reg_mr(pair.b.pd, pair.b.memory, BYTES, ALL_ACCESS);
    fill(8);
    pair.direct.advance(100'000'000);
    expect(6, 7);
}

void torn_read_without_unfenced_requests_is_complete_before_the_next_request(void **) {
    TearsReads scheduler;
    Pair pair({.scheduler = &scheduler, .change_options = [](Options &options) {
                   options.strong.set(static_cast<size_t>(Weakness::FENCE));
               }});
    memset(pair.b.memory, 3, BYTES);
    assert_int_equal(pair.post(IBV_WR_RDMA_READ, 24), 0);
    assert_int_equal(pair.a.memory[0], 1);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    assert_int_equal(pair.a.memory[0], 3);
    assert_int_equal(pair.b.memory[0], 3);
}

// ---- links and faults ----------------------------------------------------------------------

// A link has one delay for both directions, whichever host is named first.
void delay_is_that_of_the_link(void **) {
    for (const bool is_reversed : {false, true}) {
        Pair pair;
        pair.direct.fabric().set_delay(is_reversed ? 2 : 1, is_reversed ? 1 : 2, 1000);
        assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
        assert_int_equal(pair.b.memory[0], 2);
        pair.direct.advance(1000);
        assert_int_equal(pair.b.memory[0], 1);
        assert_true(pair.a.is_empty());
        pair.direct.advance(1000);
        pair.expect(IBV_WC_SUCCESS);
    }
}

// A host without power, a port that is down, and a cut link carry nothing in either direction.
void interrupted_link_carries_nothing(void **) {
    for (const unsigned host : {1U, 2U})
        for (const char *const cause : {"power", "port", "cut"}) {
            Pair pair({.retry_cnt = 6});
            Others others(pair, {.retry_cnt = 6});
            Fabric &fabric = pair.direct.fabric();
            const auto interrupt = [&](bool is_interrupted) {
                if (*cause == 'c')
                    fabric.cut(host, 3 - host, is_interrupted);
                else if (cause[1] == 'o' && cause[2] == 'w')
                    fabric.set_power(host, !is_interrupted);
                else
                    fabric.set_port(host, 0, !is_interrupted);
            };
            interrupt(true);
            assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
            others.post(IBV_WR_RDMA_WRITE, 64, 8);
            assert_int_equal(pair.b.memory[0], 2);
            assert_int_equal(pair.b.memory[64], 2);
            interrupt(false); // all queue pairs go on
            assert_int_equal(pair.b.memory[0], 1);
            assert_int_equal(pair.b.memory[64], 1);
        }
}

void removed_device_executes_nothing(void **) {
    for (const unsigned host : {1U, 2U}) {
        Pair pair({.device = "mlx5"});
        pair.direct.fabric().remove_device(host, 0);
        (void)pair.post(IBV_WR_RDMA_WRITE, 8);
        pair.direct.advance(SECOND);
        assert_int_equal(pair.b.memory[0], 2);
        assert_int_equal(pair.a.poll().status,
                         host == 1 ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
    }
}

// Of the datagrams that a host sends from now on, the fault changes the Nth one.
void fault_changes_a_datagram_of_its_host(void **) {
    static const struct {
        unsigned host, nth;
        Fate fate;
        std::vector<unsigned> arrive; // of three datagrams of host 1
    } rows[] = {{1, 1, Fate::LOST, {0, 1, 1}},
                {1, 3, Fate::LOST, {1, 1, 0}},
                {1, 2, Fate::REPEATED, {1, 2, 1}},
                {2, 1, Fate::LOST, {1, 1, 1}}};
    for (const auto &row : rows) {
        Pair pair;
        Side sender(pair.direct, 1, false, 0, 8, IBV_QPT_UD),
            receiver(pair.direct, 2, false, 0, 8, IBV_QPT_UD);
        activate_datagrams(sender);
        activate_datagrams(receiver);
        for (int i = 0; i < 6; i++)
            receive_datagram(receiver);
        pair.direct.fabric().change_datagram(row.host, row.nth, row.fate);
        for (const unsigned expected : row.arrive) {
            send_datagram(sender, receiver.gid, receiver.qp->qp_num);
            unsigned arrived = 0;
            for (; !receiver.is_empty(); arrived++)
                ;
            assert_int_equal(arrived, expected);
        }
    }
}

// Faults count the calls of their own host.
void fault_counts_the_calls_of_its_host(void **) {
    Pair pair;
    Fabric &fabric = pair.direct.fabric();
    fabric.fail_call(1, OP_ALLOC_PD, 2, ENOMEM);
    fabric.fail_call(2, OP_ALLOC_PD, 3, EIO);
    static const struct {
        unsigned host;
        int error;
    } rows[] = {{1, 0}, {2, 0}, {2, 0}, {1, ENOMEM}, {2, EIO}, {1, 0}, {2, 0}};
    for (const auto &row : rows) {
        const Side &side = row.host == 1 ? pair.a : pair.b;
        pair.direct.use_host(row.host);
        ibv_pd *const pd = ibv_alloc_pd(side.context);
        assert_int_equal(pd ? 0 : errno, row.error);
        assert_true(!pd || ibv_dealloc_pd(pd) == 0);
    }
}

// Of 256 aligned bytes, a write of all ends the damage.
void damaged_memory_is_healed_by_a_write_of_all(void **) {
    static const struct {
        size_t offset;
        uint32_t length;
        bool heals;
    } rows[] = {
        {0, 256, true}, {0, 512, true}, {0, 255, false}, {1, 256, false}, {8, 8, false}};
    for (const auto &row : rows) {
        Pair pair({.device = "mlx5"});
        Others others(pair);
        pair.direct.fabric().poison(2);
        assert_int_equal(pair.post(IBV_WR_RDMA_READ, 8), 0);
        pair.expect(IBV_WC_REM_OP_ERR);
        others.post(IBV_WR_RDMA_WRITE, row.offset, row.length);
        others.post(IBV_WR_RDMA_READ, 128, 8);
        others.c.direct.use_host(1);
        assert_int_equal(others.c.state() == IBV_QPS_RTS, row.heals);
    }
}

struct Programs : NoPrograms {
    Fabric &of;
    explicit Programs(Fabric &its) : of(its) {}
    Fabric &fabric() override { return of; }
};

// A fault concerns the device that has replaced a removed one.
void fault_is_of_the_last_device(void **) {
    Direct direct(options_of("mlx5"));
    Programs programs(direct.fabric());
    for (const char *const text : {"1s remove host1", "1s insert host1", "1s remove host1",
                                   "1s insert host1", "1s port-down host1"})
        apply(programs, read_fault(text));
    const auto &devices = direct.fabric().host(1)->devices;
    assert_int_equal(devices.size(), 3);
    for (const auto &device : devices) {
        assert_int_equal(device->removed, device != devices.back());
        assert_int_equal(device->port_is_up, device != devices.back());
    }
}

// A replaced device has the address of the one that was removed.
void replaced_device_is_reached_by_its_address(void **) {
    Direct direct(options_of("rxe"));
    direct.fabric().remove_device(2, 0);
    direct.fabric().replace_device(2, 0);
    Side a(direct, 1, false, 0, 32), b(direct, 2, false, 0, 32);
    assert_int_equal(ibv_query_gid(b.context, 1, 1, &b.gid), 0); // of the IPv4 address
    Pair::connect(b, a, {});
    Pair::connect(a, b, {});
    ibv_sge sge = {address_of(a.memory), 8, a.mr->lkey};
    ibv_send_wr wr = {}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {address_of(b.memory), b.mr->rkey};
    assert_int_equal(ibv_post_send(a.qp, &wr, &bad), 0);
    assert_int_equal(a.poll().status, IBV_WC_SUCCESS);
}

// A fault of one host concerns its links to all others, and no further link.
void fault_of_a_host_concerns_all_its_links(void **) {
    Options options = options_of("rxe");
    options.hosts = 4;
    Direct direct(options);
    Fabric &fabric = direct.fabric();
    Programs programs(fabric);
    const Fault delay = read_fault("1s delay host2 1ms"), cut = read_fault("1s cut host2");
    apply(programs, delay);
    apply(programs, cut);
    for (unsigned from = 1; from <= 4; from++)
        for (unsigned to = 1; to <= 4; to++) {
            const Device &one = *fabric.device(from, 0), &other = *fabric.device(to, 0);
            const bool is_concerned = from != to && (from == 2 || to == 2);
            assert_int_equal(fabric.delay(one, other), is_concerned ? 1'000'000 : 0);
            assert_int_equal(fabric.reachable(one, other), !is_concerned);
        }
    end(programs, cut);
    assert_true(fabric.reachable(*fabric.device(2, 0), *fabric.device(4, 0)));
    assert_true(fabric.reachable(*fabric.device(4, 0), *fabric.device(2, 0)));
}

// Timers of one time run in the order in which they were set.
void timers_keep_their_order(void **) {
    Direct direct(options_of("rxe"));
    Fabric &fabric = direct.fabric();
    std::string order;
    for (const char each : {'a', 'b', 'c', 'd', 'e'})
        fabric.at(each == 'c' ? 5 : 10, [&order, each] { order += each; });
    fabric.cancel(fabric.at(10, [&order] { order += 'x'; }));
    assert_int_equal(fabric.next_timer(), 5);
    fabric.advance(9);
    assert_string_equal(order.c_str(), "c");
    fabric.advance(10);
    assert_string_equal(order.c_str(), "cabde");
    assert_int_equal(fabric.next_timer(), UINT64_MAX);
}

void each_weakness_is_turned_off_by_itself(void **) {
    Weaknesses all;
    for (size_t i = 0; i < all.size(); i++) {
        const WeaknessKind &kind = kind_of(static_cast<Weakness>(i));
        assert_ptr_equal(find_weakness(kind.name), &kind);
        assert_string_equal(names_of(only(kind)).c_str(), kind.name);
        all |= only(kind);
    }
    assert_true(all.all());
}

// ---- counters ------------------------------------------------------------------------------

// The names of the counters define the meaning: hw/mlx5/counters.c, hw/mlx4/main.c,
// hw/bnxt_re/hw_counters.c and hw/irdma/verbs.c. The requester is host 1. A second reading has
// the same value.
void event_is_counted_at_its_own_side(void **) {
    constexpr ibv_wr_opcode WRITE = IBV_WR_RDMA_WRITE, READ = IBV_WR_RDMA_READ,
                            SEND = IBV_WR_SEND, ATOMIC = IBV_WR_ATOMIC_FETCH_AND_ADD;
    static const struct {
        const char *device;
        ibv_wr_opcode opcode;
        const char *name;
        uint64_t of_a, of_b;
    } rows[] = {
        {"mlx5", WRITE, "rx_write_requests", 0, 1},
        {"mlx5", READ, "rx_read_requests", 0, 1},
        {"mlx5", READ, "rx_write_requests", 0, 0},
        {"mlx5", ATOMIC, "rx_atomic_requests", 0, 1},
        {"bnxt_re", WRITE, "tx_write_req", 1, 0},
        {"bnxt_re", WRITE, "rx_write_req", 0, 1},
        {"bnxt_re", READ, "tx_read_req", 1, 0},
        {"bnxt_re", READ, "rx_read_req", 0, 1},
        {"bnxt_re", READ, "tx_read_resp", 0, 1},
        {"bnxt_re", READ, "rx_read_resp", 1, 0},
        {"bnxt_re", SEND, "tx_send_req", 1, 0},
        {"bnxt_re", SEND, "rx_send_req", 0, 1},
        {"bnxt_re", SEND, "active_qps", 1, 1},
        {"irdma-roce", WRITE, "iwOutRdmaWrites", 1, 0},
        {"irdma-roce", WRITE, "iwInRdmaWrites", 0, 1},
        {"irdma-roce", READ, "iwInRdmaReads", 0, 1},
        {"irdma-roce", SEND, "iwInRdmaSends", 0, 1},
        {"rxe", SEND, "rdma_sends", 1, 0},
        {"rxe", SEND, "rdma_recvs", 0, 1},
        {"rxe", WRITE, "rdma_sends", 0, 0},
    };
    for (const auto &row : rows) {
        Pair pair({.device = row.device});
        pair.receive(64);
        assert_int_equal(pair.post(row.opcode, 8), 0);
        for (int reading = 0; reading < 2; reading++)
            if (counter_of(pair.a, row.name) != row.of_a ||
                counter_of(pair.b, row.name) != row.of_b)
                fail_msg("%s, %s", row.device, row.name);
    }
}

// A request without a response: each attempt but the last has a timeout, and so has the last
// one before the request fails.
void timeouts_are_counted_once(void **) {
    Pair pair({.device = "mlx5", .retry_cnt = 3});
    pair.direct.fabric().cut(1, 2, true);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    for (const unsigned expected : {0U, 0U, 1U, 1U, 2U, 2U, 3U, 4U}) {
        for (int reading = 0; reading < 2; reading++)
            assert_int_equal(counter_of(pair.a, "local_ack_timeout_err"), expected);
        pair.direct.advance(40'000'000); // an attempt has 67.1 ms
    }
}

// Chapter 9: BTH, ICRC, VCRC and LRH have 26 bytes, AETH 4, the data of an atomic
// acknowledgement 8, RETH 16 and AtomicETH 28.
void response_has_the_bytes_of_its_headers(void **) {
    static const struct {
        ibv_wr_opcode opcode;
        bool is_refused;
        uint64_t request, response;
    } rows[] = {
        {IBV_WR_RDMA_WRITE, false, 26 + 16 + 8, 26 + 4},
        {IBV_WR_RDMA_READ, false, 26 + 16, 26 + 4 + 8},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, false, 26 + 28, 26 + 4 + 8},
        {IBV_WR_RDMA_READ, true, 26 + 16, 26 + 4},
        {IBV_WR_SEND, false, 26 + 8, 26 + 4},
    };
    for (const auto &row : rows) {
        Pair pair({.device = "mlx5-ib"});
        pair.receive(64);
        assert_int_equal(pair.post(row.opcode, 8,
                                   [&](ibv_send_wr &wr, ibv_sge &) {
                                       wr.wr.rdma.rkey ^= row.is_refused ? 0xff00 : 0;
                                   }),
                         0);
        assert_int_equal(counter_of(pair.a, "port_xmit_data", "counters"), row.request / 4);
        assert_int_equal(counter_of(pair.b, "port_rcv_data", "counters"), row.request / 4);
        assert_int_equal(counter_of(pair.a, "port_rcv_data", "counters"), row.response / 4);
        assert_int_equal(counter_of(pair.b, "port_xmit_data", "counters"), row.response / 4);
    }
}

// A datagram is one packet, up to the MTU of InfiniBand, 4096.
void datagram_is_one_packet(void **) {
    Pair pair({.device = "mlx5-ib", .type = IBV_QPT_RC});
    Side sender(pair.direct, 1, false, 0, 8, IBV_QPT_UD),
        receiver(pair.direct, 2, false, 0, 8, IBV_QPT_UD);
    activate_datagrams(sender);
    activate_datagrams(receiver);
    receive_datagram(receiver, 4096);
    send_datagram(sender, pair.b.gid, receiver.qp->qp_num, 3000);
    assert_int_equal(counter_of(pair.a, "port_xmit_packets", "counters"), 1);
    assert_int_equal(counter_of(pair.b, "port_rcv_packets", "counters"), 1);
    // LRH, BTH, DETH, ICRC and VCRC
    assert_int_equal(counter_of(pair.a, "port_xmit_data", "counters"), (3000 + 26 + 8) / 4);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(late_word_is_visible_after_its_delay),
        cmocka_unit_test(torn_read_has_words_of_two_moments),
        cmocka_unit_test(
            torn_read_without_unfenced_requests_is_complete_before_the_next_request),
        cmocka_unit_test(delay_is_that_of_the_link),
        cmocka_unit_test(interrupted_link_carries_nothing),
        cmocka_unit_test(removed_device_executes_nothing),
        cmocka_unit_test(fault_changes_a_datagram_of_its_host),
        cmocka_unit_test(fault_counts_the_calls_of_its_host),
        cmocka_unit_test(damaged_memory_is_healed_by_a_write_of_all),
        cmocka_unit_test(fault_is_of_the_last_device),
        cmocka_unit_test(replaced_device_is_reached_by_its_address),
        cmocka_unit_test(fault_of_a_host_concerns_all_its_links),
        cmocka_unit_test(timers_keep_their_order),
        cmocka_unit_test(each_weakness_is_turned_off_by_itself),
        cmocka_unit_test(event_is_counted_at_its_own_side),
        cmocka_unit_test(timeouts_are_counted_once),
        cmocka_unit_test(response_has_the_bytes_of_its_headers),
        cmocka_unit_test(datagram_is_one_packet),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
