// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// profiles.cc -- the devices of rpma_devices(7), which names the sources of what differs
//
// Sizes that a device reports for itself, and that page calls "device", are ours: common().
// Limits of rxe and siw are those that the lab's devices report (tests/conformance).

#include "profile.hh"

#include <cerrno>

namespace sim {

namespace {

// Device flags of enum ibv_device_cap_flags that every driver for RC has.
constexpr unsigned COMMON_FLAGS = IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                                  IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_CURR_QP_STATE_MOD;

constexpr DeviceProfile common(const char *name, const char *driver, const char *prefix,
                               Transport transport) {
    DeviceProfile made = {};
    made.name = name;
    made.driver = driver;
    made.prefix = prefix;
    made.transport = transport;
    made.attr.fw_ver[0] = '1';
    made.attr.fw_ver[1] = '.';
    made.attr.fw_ver[2] = '0';
    made.attr.max_mr_size = UINT64_MAX;
    made.attr.page_size_cap = 0xfffff000;
    made.attr.hw_ver = 1;
    made.attr.max_qp = 1 << 17;
    made.attr.max_qp_wr = 1 << 15;
    made.attr.device_cap_flags = COMMON_FLAGS;
    made.attr.max_sge = made.attr.max_sge_rd = made.attr.max_srq_sge = 30;
    made.attr.max_cq = 1 << 17;
    made.attr.max_cqe = (1 << 22) - 1;
    made.attr.max_mr = made.attr.max_pd = made.attr.max_srq = 1 << 20;
    made.attr.max_qp_rd_atom = made.attr.max_qp_init_rd_atom = 16;
    made.attr.max_res_rd_atom = 1 << 21;
    made.attr.max_ah = 1 << 20;
    made.attr.max_srq_wr = 1 << 15;
    made.attr.max_pkeys = 1;
    made.attr.local_ca_ack_delay = 15;
    made.attr.phys_port_cnt = 1;
    made.vectors = 4;
    made.max_inline = 256;
    made.max_recv_sge = made.max_read_sge = 30;
    made.rounding = Rounding::POWER_OF_TWO;
    made.full_queue_error = ENOMEM;
    made.inline_error = made.invalid_error = EINVAL;
    made.has_srq = made.has_send_imm = made.has_write_imm = true;
    made.has_ud = transport != Transport::IWARP;
    made.has_resize_cq = made.has_cq_ex = true;
    made.fences_writes = true;
    made.timeout = transport == Transport::IWARP ? Timeout::TCP : Timeout::AS_ASKED;
    return made;
}

constexpr void set_sges(DeviceProfile &profile, int sge, int read) {
    profile.attr.max_sge = sge;
    profile.attr.max_sge_rd = read;
    profile.max_read_sge = static_cast<uint32_t>(read);
    profile.max_recv_sge = static_cast<uint32_t>(sge);
    profile.attr.max_srq_sge = sge;
}

constexpr void set_atomics(DeviceProfile &profile, ibv_atomic_cap cap) {
    profile.attr.atomic_cap = cap;
    profile.has_atomics = cap != IBV_ATOMIC_NONE;
}

constexpr void remove_srq(DeviceProfile &profile) {
    profile.has_srq = false;
    profile.attr.max_srq = profile.attr.max_srq_wr = profile.attr.max_srq_sge = 0;
}

constexpr DeviceProfile mlx(const char *name, const char *driver, const char *prefix,
                            Transport transport) {
    DeviceProfile made = common(name, driver, prefix, transport);
    made.attr.vendor_id = 0x02c9;
    made.max_inline = 912; // the device takes what is asked for, up to the size of a request
    made.inline_error = ENOMEM;
    set_atomics(made, IBV_ATOMIC_HCA);
    made.has_qp_ex = true;
    made.destroy_removes_completions = true;
    made.timeout = Timeout::AS_ASKED; // that of the firmware is not known
    return made;
}
constexpr DeviceProfile mlx5(const char *name, Transport transport) {
    DeviceProfile made = mlx(name, "mlx5_core", "mlx5_", transport);
    made.attr.vendor_part_id = 4125;
    made.has_odp = true;
    return made;
}
constexpr DeviceProfile mlx4(const char *name, Transport transport) {
    DeviceProfile made = mlx(name, "mlx4_core", "mlx4_", transport);
    made.attr.vendor_part_id = 4103;
    made.has_qp_ex = false;
    return made;
}
constexpr DeviceProfile irdma_roce() {
    DeviceProfile made = common("irdma-roce", "ice", "irdma", Transport::ROCE);
    made.attr.vendor_id = 0x8086;
    made.max_inline = 101;
    set_sges(made, 13, 13);
    remove_srq(made); // before generation 3
    set_atomics(made, IBV_ATOMIC_HCA);
    made.destroy_removes_completions = true;
    made.timeout = Timeout::IGNORED;
    return made;
}
constexpr DeviceProfile irdma_iwarp() {
    DeviceProfile made = common("irdma-iwarp", "ice", "irdma", Transport::IWARP);
    made.attr.vendor_id = 0x8086;
    made.max_inline = 101;
    set_sges(made, 13, 13);
    remove_srq(made);
    set_atomics(made, IBV_ATOMIC_HCA);
    made.has_send_imm = false;
    made.destroy_removes_completions = true;
    return made;
}
constexpr DeviceProfile bnxt_re() {
    DeviceProfile made = common("bnxt_re", "bnxt_en", "bnxt_re", Transport::ROCE);
    made.attr.vendor_id = 0x14e4;
    made.attr.local_ca_ack_delay = 16;
    made.max_inline = 96;
    set_sges(made, 6, 6);
    set_atomics(made, IBV_ATOMIC_GLOB);
    made.destroy_removes_completions = true;
    return made;
}
constexpr DeviceProfile cxgb4() {
    DeviceProfile made = common("cxgb4", "cxgb4", "cxgb4_", Transport::IWARP);
    made.attr.vendor_id = 0x1425;
    made.max_inline = 280;
    set_sges(made, 4, 1);
    remove_srq(made); // the firmware may have one
    made.has_send_imm = made.has_write_imm = false;
    made.fences_writes = false;
    return made;
}
constexpr DeviceProfile hns() {
    DeviceProfile made = common("hns", "hns3", "hns_", Transport::ROCE);
    made.attr.vendor_id = 0x19e5;
    made.max_inline = 1024;
    set_sges(made, 16, 16);
    set_atomics(made, IBV_ATOMIC_HCA);
    made.destroy_removes_completions = true;
    return made;
}
constexpr DeviceProfile erdma(const char *name, Transport transport) {
    DeviceProfile made = common(name, "erdma", "erdma_", transport);
    made.attr.vendor_id = 0x1ded;
    made.max_inline = 96;
    set_sges(made, 6, 1);
    made.max_recv_sge = 1;
    remove_srq(made);
    set_atomics(made, IBV_ATOMIC_GLOB);
    made.timeout = Timeout::IGNORED;
    return made;
}
constexpr DeviceProfile mana() {
    DeviceProfile made = common("mana", "mana", "mana_", Transport::ROCE);
    made.attr.vendor_id = 0x1414;
    made.attr.local_ca_ack_delay = 16;
    // The driver reports no error for inline data; that it does not copy the data is not
    // imitated.
    remove_srq(made);
    return made;
}
constexpr DeviceProfile ionic() {
    DeviceProfile made = common("ionic", "ionic", "ionic_", Transport::ROCE);
    made.attr.vendor_id = 0x1dd8;
    remove_srq(made);
    set_atomics(made, IBV_ATOMIC_GLOB);
    made.destroy_removes_completions = true;
    return made;
}
constexpr DeviceProfile qedr(const char *name, Transport transport) {
    DeviceProfile made = common(name, "qede", "qedr", transport);
    made.attr.vendor_id = 0x1077;
    set_sges(made, 4, 4);
    set_atomics(made, IBV_ATOMIC_GLOB);
    return made;
}
constexpr DeviceProfile rxe() {
    DeviceProfile made = common("rxe", "rdma_rxe", "rxe", Transport::ROCE);
    made.attr.vendor_id = 0xffffff; // linux sw/rxe/rxe.c: RXE_VENDOR_ID
    made.attr.max_qp_wr = made.attr.max_srq_wr = 1 << 20;
    made.attr.max_cqe = 32767;
    set_sges(made, 32, 32);
    made.attr.max_srq_sge = 27;
    made.attr.max_qp_rd_atom = made.attr.max_qp_init_rd_atom = 128;
    made.attr.max_pkeys = 64;
    made.max_inline = 512;
    made.least_inline = 16;
    made.rounding = Rounding::POWER_OF_TWO_LESS_ONE;
    set_atomics(made, IBV_ATOMIC_HCA);
    made.has_native_flush = made.has_native_atomic_write = made.has_odp = true;
    made.has_qp_ex = true;
    made.retry_count_7_is_endless = true;
    return made;
}
constexpr DeviceProfile siw() {
    DeviceProfile made = common("siw", "siw", "siw", Transport::IWARP);
    made.attr.vendor_id = 0x626d74; // linux sw/siw/siw.h: SIW_VENDOR_ID
    made.attr.max_cqe = 3276800;
    set_sges(made, 6, 1);
    made.attr.max_srq_wr = 327680;
    made.attr.max_qp_rd_atom = made.attr.max_qp_init_rd_atom = 128;
    made.max_inline = 80;
    made.least_inline = 8;
    made.full_queue_error = -ENOMEM; // rdma-core siw/siw.c: siw_post_send, siw_post_recv
    made.inline_error = made.invalid_error = -EINVAL;
    made.receives_need_sge = made.reports_asked_sizes =
        true; // push_recv_wqe(), siw_create_qp()
    made.has_send_imm = made.has_write_imm = false;
    made.has_cq_ex = made.has_resize_cq = false;
    return made;
}

constexpr DeviceProfile PROFILES[] = {
    rxe(), // without an option
    mlx5("mlx5", Transport::ROCE),
    mlx5("mlx5-ib", Transport::INFINIBAND),
    mlx4("mlx4", Transport::ROCE),
    mlx4("mlx4-ib", Transport::INFINIBAND),
    irdma_roce(),
    irdma_iwarp(),
    bnxt_re(),
    cxgb4(),
    hns(),
    erdma("erdma", Transport::IWARP),
    erdma("erdma-roce", Transport::ROCE),
    mana(),
    ionic(),
    qedr("qedr", Transport::ROCE),
    qedr("qedr-iwarp", Transport::IWARP),
    siw(),
};

} // namespace

std::span<const DeviceProfile> profiles() {
    return PROFILES;
}

const DeviceProfile *find_profile(std::string_view name) {
    for (const DeviceProfile &each : PROFILES)
        if (each.name == name)
            return &each;
    return nullptr;
}

} // namespace sim
