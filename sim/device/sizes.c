// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// tests/drivers compares these sizes with those of the drivers. The functions below are those
// of rdma-core 56, providers/, and of Linux 6.1, drivers/infiniband/hw/.

#include "sizes.h"

#include <errno.h>

static uint32_t max(uint32_t one, uint32_t other) {
    return one > other ? one : other;
}

static uint32_t power_of_two(uint64_t least) {
    uint64_t size = 1;
    while (size < least)
        size *= 2;
    return (uint32_t)size;
}

static uint32_t aligned(uint32_t size, uint32_t to) {
    return (size + to - 1) / to * to;
}

static uint32_t one_less(uint32_t entries) {
    return power_of_two((uint64_t)entries + 1) - 1;
}

static uint32_t requested(uint32_t entries) {
    return entries;
}

// ---- mlx5: verbs.c, mlx5_calc_sq_size(), mlx5_calc_rq_size() and create_cq(); srq.c ---------

static void mlx5_srq(struct ibv_srq_attr *actual, struct ibv_srq_attr *reported) {
    enum { NEXT = 16, SGE = 16 };
    actual->max_wr = one_less(actual->max_wr);
    actual->max_sge = (power_of_two(max(32, NEXT + actual->max_sge * SGE)) - NEXT) / SGE;
    *reported = *actual;
}

static void mlx5_qp(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported) {
    enum { OVERHEAD = 192, SGE = 16, INLINE = 4, BLOCK = 64 }; // of any operation of an RC QP
    const uint32_t inlined =
        actual->max_inline_data > 0 ? aligned(INLINE + actual->max_inline_data, SGE) : 0;
    const uint32_t entry = aligned(OVERHEAD + max(actual->max_send_sge * SGE, inlined), BLOCK);
    if (actual->max_send_wr > 0) {
        actual->max_send_wr = power_of_two((uint64_t)actual->max_send_wr * entry) / entry;
        actual->max_inline_data = entry - OVERHEAD - INLINE;
    }
    if (actual->max_recv_wr > 0) {
        actual->max_recv_sge = power_of_two(max(1, actual->max_recv_sge));
        actual->max_recv_wr =
            max(power_of_two(actual->max_recv_wr), BLOCK / (actual->max_recv_sge * SGE));
    }
    *reported = *actual;
}

const struct sim_sizing sim_sizes_mlx5 = {.cq = one_less, .srq = mlx5_srq, .qp = mlx5_qp};

// ---- mlx4: qp.c, mlx4_calc_sq_wqe_size() and mlx4_set_sq_sizes(); verbs.c; hw/mlx4/srq.c
// -----

static void mlx4_srq(struct ibv_srq_attr *actual, struct ibv_srq_attr *reported) {
    actual->max_wr = one_less(actual->max_wr);
    *reported = *actual;
}

static void mlx4_qp(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported) {
    enum { OVERHEAD = 32, SGE = 16, INLINE = 4, BLOCK = 64, PREFETCHED = 2048 };
    const uint32_t segments =
        (actual->max_inline_data + OVERHEAD + BLOCK - INLINE - 1) / (BLOCK - INLINE);
    const uint32_t inlined = aligned(actual->max_inline_data + segments * INLINE, SGE);
    const uint32_t entry =
        power_of_two(max(BLOCK, OVERHEAD + max(actual->max_send_sge * SGE, inlined)));
    if (actual->max_send_wr > 0) {
        const uint32_t spare = PREFETCHED / entry + 1;
        actual->max_send_wr = power_of_two((uint64_t)actual->max_send_wr + spare) - spare;
        actual->max_send_sge = (entry - OVERHEAD) / SGE;
        actual->max_inline_data =
            entry - OVERHEAD - INLINE * (aligned(entry - OVERHEAD, BLOCK) / BLOCK);
    }
    *reported = *actual;
}

const struct sim_sizing sim_sizes_mlx4 = {.cq = one_less, .srq = mlx4_srq, .qp = mlx4_qp};

// ---- irdma: uk.c, irdma_get_wqe_shift(), irdma_get_sqdepth() and irdma_get_rqdepth()
// ---------

static uint32_t irdma_shift(uint32_t sges, uint32_t inlined) {
    return sges <= 1 && inlined <= 8    ? 0
           : sges < 4 && inlined <= 39  ? 1
           : sges < 8 && inlined <= 101 ? 2
                                        : 3;
}

static void irdma_qp(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported) {
    enum { UNUSED_SENDS = 257, LEAST = 8 };
    const uint32_t shift = irdma_shift(actual->max_send_sge + 1, actual->max_inline_data);
    const uint32_t receive_shift = irdma_shift(actual->max_recv_sge, 0);
    const uint32_t sends =
        power_of_two(((uint64_t)actual->max_send_wr << shift) + UNUSED_SENDS + 1);
    const uint32_t receives =
        max(power_of_two(((uint64_t)actual->max_recv_wr << receive_shift) + 1),
            LEAST << receive_shift);
    *reported = *actual;
    reported->max_send_wr = (sends - UNUSED_SENDS - 1) >> shift;
    reported->max_recv_wr = actual->max_recv_wr = (receives - 1) >> receive_shift;
    actual->max_send_wr = sends - UNUSED_SENDS;
}

// uk.c, irdma_get_sqdepth() and irdma_get_rqdepth(); Linux 6.1, hw/irdma/user.h,
// IRDMA_QP_WQE_MAX_SIZE
static int irdma_check(const struct ibv_qp_cap *requested) {
    enum { UNUSED_SENDS = 257, MOST = 32768 };
    const uint32_t shift = irdma_shift(requested->max_send_sge + 1, requested->max_inline_data);
    const uint32_t receive_shift = irdma_shift(requested->max_recv_sge, 0);
    const bool fits = ((uint64_t)requested->max_send_wr << shift) + UNUSED_SENDS < MOST &&
                      ((uint64_t)requested->max_recv_wr << receive_shift) < MOST;
    return fits ? 0 : EINVAL;
}

// uk.c, irdma_fragcnt_to_quanta_sq() and irdma_inline_data_size_to_quanta()
static uint32_t irdma_units(const struct sim_send *send) {
    const bool has_imm =
        send->opcode == IBV_WR_SEND_WITH_IMM || send->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (sim_is_inline(send->opcode, send->flags))
        return send->length <= 8 ? 1 : (uint32_t)(send->length - 8 + 30) / 31 + 1;
    return (send->num_sge + has_imm) / 2 + 1;
}

const struct sim_sizing sim_sizes_irdma = {
    .cq = requested, .qp = irdma_qp, .check = irdma_check, .units = irdma_units};

// ---- bnxt_re: verbs.c, bnxt_re_get_qp_slots(); hw/bnxt_re/ib_verbs.c, bnxt_re_create_cq()
// -----

static uint32_t bnxt_re_cq(uint32_t entries) {
    return power_of_two(2 * (uint64_t)entries + 1);
}

static void bnxt_re_srq(struct ibv_srq_attr *actual, struct ibv_srq_attr *reported) {
    *reported = *actual;
    actual->max_wr = one_less(actual->max_wr);
}

static void bnxt_re_qp(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported) {
    enum { UNUSED = 129, INLINE = 96 };
    if (actual->max_inline_data > 0)
        actual->max_inline_data = INLINE;
    *reported = *actual;
    actual->max_send_wr = power_of_two((uint64_t)actual->max_send_wr + UNUSED) - UNUSED;
    actual->max_recv_wr = one_less(actual->max_recv_wr);
}

const struct sim_sizing sim_sizes_bnxt_re = {
    .cq = bnxt_re_cq, .srq = bnxt_re_srq, .qp = bnxt_re_qp};

// ---- hns: hns_roce_u_verbs.c, hns_roce_set_qp_params(); hw/hns/hns_roce_{cq,qp,srq}.c
// --------

enum { HNS_LEAST = 64 };

static uint32_t hns_cq(uint32_t entries) {
    return max(power_of_two(entries), HNS_LEAST) - 1;
}

static void hns_srq(struct ibv_srq_attr *actual, struct ibv_srq_attr *reported) {
    actual->max_wr = power_of_two(actual->max_wr);
    *reported = *actual;
}

static void hns_qp(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported) {
    actual->max_send_wr = max(power_of_two(actual->max_send_wr), HNS_LEAST);
    actual->max_inline_data = power_of_two(actual->max_inline_data);
    if (actual->max_recv_wr > 0) {
        actual->max_recv_wr = max(power_of_two(actual->max_recv_wr), HNS_LEAST);
        actual->max_recv_sge = power_of_two(actual->max_recv_sge);
    }
    *reported = *actual;
}

const struct sim_sizing sim_sizes_hns = {.cq = hns_cq, .srq = hns_srq, .qp = hns_qp};

// ---- cxgb4: hw/cxgb4/qp.c, c4iw_create_qp(); cq.c, c4iw_create_cq() -------------------------

static uint32_t cxgb4_cq(uint32_t entries) {
    return aligned(entries + 2, 16) - 2;
}

static void cxgb4_qp(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported) {
    enum { LEAST = 7, SGES = 4, INLINE = 280 };
    actual->max_send_wr = max(actual->max_send_wr, LEAST);
    actual->max_recv_wr = max(actual->max_recv_wr, LEAST);
    actual->max_inline_data = INLINE;
    *reported = *actual;
    actual->max_send_sge = actual->max_recv_sge = SGES; // the library checks no other limit
}

// Linux 6.1, hw/cxgb4/device.c, c4iw_rdev_open(): t4_max_rq_size and t4_max_sq_size
static int cxgb4_check(const struct ibv_qp_cap *requested) {
    return requested->max_send_wr > 65518 || requested->max_recv_wr > 8190 ? E2BIG : 0;
}

const struct sim_sizing sim_sizes_cxgb4 = {
    .cq = cxgb4_cq, .qp = cxgb4_qp, .check = cxgb4_check};

// ---- erdma: erdma_verbs.c, erdma_create_cq() and erdma_push_one_sqe(); hw/erdma/erdma_verbs.c
// -

enum { ERDMA_BLOCK = 32, ERDMA_BLOCKS = 4 };

static uint32_t erdma_cq(uint32_t entries) {
    return max(power_of_two(entries), 64);
}

static void erdma_qp(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported) {
    *reported = *actual;
    actual->max_send_wr = power_of_two((uint64_t)actual->max_send_wr * ERDMA_BLOCKS);
    actual->max_recv_wr = power_of_two(actual->max_recv_wr);
    actual->max_send_sge = 6; // the library checks no other limit
    actual->max_inline_data = 96;
}

static uint32_t erdma_units(const struct sim_send *send) {
    if (sim_writes_memory(send->opcode))
        return 2;
    const bool is_message = send->opcode == IBV_WR_SEND || send->opcode == IBV_WR_SEND_WITH_IMM;
    const uint32_t data =
        sim_is_inline(send->opcode, send->flags) ? (uint32_t)send->length : send->num_sge * 16;
    return aligned((is_message ? 16 : 32) + data, ERDMA_BLOCK) / ERDMA_BLOCK;
}

const struct sim_sizing sim_sizes_erdma = {
    .cq = erdma_cq, .qp = erdma_qp, .units = erdma_units, .checks_one_unit = true};

// ---- mana: cq.c, mana_create_cq(); shadow_queue.h, create_shadow_queue() --------------------

static uint32_t mana_cq(uint32_t entries) {
    return max(power_of_two(entries), 64);
}

static void mana_qp(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported) {
    enum { SGES = 255 }; // the library checks only the space in the queue
    *reported = *actual;
    actual->max_send_wr = power_of_two(actual->max_send_wr);
    actual->max_recv_wr = power_of_two(actual->max_recv_wr);
    actual->max_send_sge = actual->max_recv_sge = SGES;
}

const struct sim_sizing sim_sizes_mana = {.cq = mana_cq, .qp = mana_qp};

// ---- siw: hw/siw/siw_verbs.c, siw_create_cq(), siw_create_srq() and siw_create_qp()
// ----------

static uint32_t siw_cq(uint32_t entries) {
    return power_of_two(entries);
}

static void siw_srq(struct ibv_srq_attr *actual, struct ibv_srq_attr *reported) {
    *reported = *actual;
    actual->max_wr = power_of_two(actual->max_wr);
    actual->max_sge = 6; // the library checks no other limit
}

static void siw_qp(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported) {
    enum { SGES = 6, INLINE = 80 };
    *reported = *actual;
    actual->max_send_wr = power_of_two(actual->max_send_wr);
    actual->max_recv_wr = actual->max_recv_wr ? power_of_two(actual->max_recv_wr) : 0;
    actual->max_send_sge = actual->max_recv_sge = SGES;
    actual->max_inline_data = INLINE;
}

const struct sim_sizing sim_sizes_siw = {.cq = siw_cq, .srq = siw_srq, .qp = siw_qp};

// ---- qedr: qelr_verbs.c, qelr_create_qp_buffers() and qelr_post_recv() ----------------------

static void qedr_srq(struct ibv_srq_attr *actual, struct ibv_srq_attr *reported) {
    *reported = *actual;
    actual->max_sge = 4; // the library checks no other limit
}

static void qedr_qp(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported) {
    enum { SGES = 4, PAGE = 4096, SGE = 16, INLINE = 256 };
    *reported = *actual;
    if (actual->max_recv_wr > 0) {
        actual->max_recv_wr = aligned(actual->max_recv_wr * SGES * SGE, PAGE) / SGE - SGES + 1;
        actual->max_recv_sge = SGES;
    }
    actual->max_send_sge = SGES; // the library checks no other limit
    actual->max_inline_data = INLINE;
}

const struct sim_sizing sim_sizes_qedr = {.cq = requested, .srq = qedr_srq, .qp = qedr_qp};
