// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// persistence_test.cc -- what is visible and persistent after writes, reads, flushes and a
// power failure.

#include "../../server/pmem.hh"
#include "pair.hh"

#include <cstdlib>
#include <fcntl.h>
#include <random>
#include <set>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace sim;

// Of each write of three words, the second word becomes visible later.
struct SecondIsLate : Scheduler {
    unsigned choose(Weakness weakness, unsigned options) override {
        return weakness == Weakness::WORD_ORDER && options == 7 ? 2 : 0;
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
    Fabric &fabric = pair.direct.fabric();
    fabric.set_delay(1, 2, 1'000'000);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 24), 0);
    assert_int_equal(overwritten(pair), 0);
    for (const bool is_cut : {true, false}) {
        fabric.cut(1, 2, is_cut);
        fabric.interrupt_writes(fabric.qps.begin()->second->pid);
        assert_int_equal(overwritten(pair), is_cut ? 0 : 2);
    }
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
        assert_int_equal(
            ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 16, 0),
            IBV_REREG_MR_ERR_INPUT); // the region is unchanged
        assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                                      IBV_ACCESS_REMOTE_WRITE),
                         IBV_REREG_MR_ERR_CMD);
        assert_int_equal(length_of(mr), 16);
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

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(late_word_is_visible_after_a_request_that_orders_it),
        cmocka_unit_test(interrupted_write_arrives_in_part),
        cmocka_unit_test(power_failure_leaves_any_value_since_the_persistent_one),
        cmocka_unit_test(read_makes_earlier_writes_persistent),
        cmocka_unit_test(native_flush_makes_its_range_persistent),
        cmocka_unit_test(registration_is_stored_by_its_key_until_its_end),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
