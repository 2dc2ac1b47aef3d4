// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// profiles.cc -- the devices of rpma_devices(7), which names the sources of their differences
//
// Limits that the page calls "device" depend on the unit; common() sets examples. The limits of
// rxe and siw are those that the lab's devices report (tests/conformance).

#include "profile.h"

#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace {

// Device flags of enum ibv_device_cap_flags that every driver for RC has.
constexpr unsigned COMMON_FLAGS = IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                                  IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_CURR_QP_STATE_MOD;

template <class... Types> constexpr uint64_t mask_of(Types... types) {
    return ((1ULL << types) | ...);
}
constexpr uint64_t QP_ERRORS =
    mask_of(IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR);
constexpr uint64_t CQ_ERROR = mask_of(IBV_EVENT_CQ_ERR);
constexpr uint64_t SRQ_LIMIT = mask_of(IBV_EVENT_SRQ_LIMIT_REACHED);
constexpr uint64_t SRQ_EVENTS = SRQ_LIMIT | mask_of(IBV_EVENT_SRQ_ERR);
constexpr uint64_t LAST_WQE = mask_of(IBV_EVENT_QP_LAST_WQE_REACHED);
constexpr uint64_t MIGRATIONS = mask_of(IBV_EVENT_PATH_MIG, IBV_EVENT_PATH_MIG_ERR);

constexpr uint64_t STANDARD_WC = IBV_WC_STANDARD_FLAGS;

constexpr sim_profile common(const char *name, const char *driver, const char *prefix,
                             sim_transport transport) {
    sim_profile made = {};
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
    made.rounding = SIM_POWER_OF_TWO;
    made.full_queue_error = ENOMEM;
    made.inline_error = made.sge_error = made.invalid_error = EINVAL;
    made.builder_error = ENOMEM;
    made.source_error = made.receive_error = IBV_WC_LOC_PROT_ERR;
    made.length_error = IBV_WC_LOC_LEN_ERR;
    made.errors_are_solicited = made.overrun_is_fatal = true;
    made.checks_read_access = made.flushes_late_posts = made.has_query_srq = true;
    made.has_srq = made.has_send_imm = made.has_write_imm = true;
    made.frees_entries_in_poll = made.keeps_bad_recv = true;
    // rdma-core libibverbs/cmd_cq.c, ibv_icmd_create_cq_ex(); Linux, .create_cq of the drivers:
    // no flags
    made.cq_refused_mask = ~unsigned(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD);
    made.cq_refused_flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    made.cq_mask_error = EOPNOTSUPP;
    made.fences_writes = true;
    made.timeout = transport == SIM_IWARP ? SIM_TIMEOUT_OF_TCP : SIM_TIMEOUT_AS_REQUESTED;
    // Linux core/device.c, ib_dispatch_port_state_event(); core/cache.c,
    // dispatch_gid_change_event()
    made.events = mask_of(IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR);
    if (transport == SIM_ROCE)
        made.events |= mask_of(IBV_EVENT_GID_CHANGE);
    // The driver's disassociate_ucontext(); without it, core/uverbs_main.c,
    // ib_uverbs_remove_one(), waits for the programs.
    made.can_be_removed = true;
    return made;
}

// For providers that return negated error numbers.
constexpr void negate_errors(sim_profile &profile) {
    for (int *error : {&profile.full_queue_error, &profile.inline_error, &profile.sge_error,
                       &profile.invalid_error, &profile.early_error, &profile.failed_error,
                       &profile.receive_sge_error, &profile.srq_error})
        *error = -*error;
}

constexpr void set_sges(sim_profile &profile, int sge, int read) {
    profile.attr.max_sge = sge;
    profile.attr.max_sge_rd = read;
    profile.max_read_sge = static_cast<uint32_t>(read);
    profile.max_recv_sge = static_cast<uint32_t>(sge);
    profile.attr.max_srq_sge = sge;
}

constexpr void remove_srq(sim_profile &profile) {
    profile.has_srq = false;
    profile.attr.max_srq = profile.attr.max_srq_wr = profile.attr.max_srq_sge = 0;
}

constexpr sim_profile mlx(const char *name, const char *driver, const char *prefix,
                          sim_transport transport) {
    sim_profile made = common(name, driver, prefix, transport);
    made.attr.vendor_id = 0x02c9;
    made.inline_error = made.sge_error = ENOMEM;
    made.keeps_bad_wr = true;
    made.attr.atomic_cap = IBV_ATOMIC_HCA;
    made.has_qp_ex = made.has_rereg_mr = made.has_resize_cq = made.has_ud = true;
    made.has_uc = true; // Linux hw/mlx5/qp.c: check_qp_type(); hw/mlx4/qp.c: create_qp_common()
    made.cq_wc_flags = STANDARD_WC | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    made.cq_refused_mask = ~unsigned(IBV_CQ_INIT_ATTR_MASK_FLAGS); // no parent domain
    made.has_rt_values = true;
    // rdma-core mlx5/cq.c, mlx5_parse_cqe(); mlx4/cq.c, mlx4_parse_cqe()
    made.failed_send = made.failed_receive = SIM_WC_UNTOUCHED;
    made.destroy_removes_completions = true;
    made.timeout = SIM_TIMEOUT_AS_REQUESTED; // the firmware's rule is not known
    // Linux hw/mlx5: qp.c, cq.c, srq.c, main.c; hw/mlx4: main.c, qp.c, mad.c
    made.events |= CQ_ERROR | QP_ERRORS | LAST_WQE | SRQ_EVENTS | MIGRATIONS |
                   mask_of(IBV_EVENT_DEVICE_FATAL, IBV_EVENT_GID_CHANGE);
    if (transport == SIM_INFINIBAND)
        made.events |= mask_of(IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE);
    return made;
}
constexpr sim_profile mlx5(const char *name, sim_transport transport) {
    sim_profile made = mlx(name, "mlx5_core", "mlx5_", transport);
    made.attr.vendor_part_id = 4125;
    made.max_inline = 828; // rdma-core mlx5/verbs.c: mlx5_calc_send_wqe
    made.sizing = &sim_sizes_mlx5;
    made.early_error = ENOMEM; // rdma-core mlx5/verbs.c: set_qp_operational_state
    made.builder_early_error = EINVAL;
    made.has_odp = true;
    made.advise_access_error = EPERM;
    made.advise_error = ENOENT; // Linux hw/mlx5/odp.c: get_prefetchable_mr()
    // rdma-core mlx5/verbs.c: CREATE_CQ_SUPPORTED_WC_FLAGS, but the fabric has no tag matching
    made.has_tag_matching = true;
    made.cq_wc_flags |= IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG |
                        IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    made.cq_refused_flags =
        ~unsigned(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
    made.cq_mask_error = EINVAL;
    return made;
}
constexpr sim_profile mlx4(const char *name, sim_transport transport) {
    sim_profile made = mlx(name, "mlx4_core", "mlx4_", transport);
    made.attr.vendor_part_id = 4103;
    made.attr.max_srq_sge = made.max_recv_sge = 31;
    made.max_inline = 912; // rdma-core mlx4/verbs.c: verify_sizes
    made.sizing = &sim_sizes_mlx4;
    made.accepts_early = true;
    made.receive_sge_error = ENOMEM; // rdma-core mlx4/qp.c: mlx4_post_recv
    made.srq_error = -1;             // rdma-core mlx4/srq.c: mlx4_post_srq_recv
    made.has_qp_ex = false;
    made.cq_refused_flags = ~unsigned(IBV_CREATE_CQ_ATTR_SINGLE_THREADED); // mlx4/verbs.c
    return made;
}
// rdma-core irdma/umain.h: IRDMA_STANDARD_WC_FLAGS_EX; irdma/umain.c: rereg_mr, since 48
constexpr void set_irdma(sim_profile &profile) {
    profile.cq_wc_flags = STANDARD_WC & ~uint64_t(IBV_WC_EX_WITH_DLID_PATH_BITS);
    profile.has_rereg_mr = profile.has_resize_cq = true;
    profile.sizing = &sim_sizes_irdma;
    profile.accepts_early = true;
    profile.keeps_bad_wr = true; // rdma-core irdma/uverbs.c: irdma_upost_send
    profile.attr.vendor_id = 0x8086;
    profile.max_inline = 101;
    set_sges(profile, 13, 13);
    remove_srq(profile); // before generation 3, which also has atomics
    profile.destroy_removes_completions = true;
    profile.events |= CQ_ERROR | QP_ERRORS; // Linux hw/irdma: hw.c, utils.c
}
constexpr sim_profile irdma_roce() {
    sim_profile made = common("irdma-roce", "ice", "irdma", SIM_ROCE);
    set_irdma(made);
    made.has_ud = true;
    made.timeout = SIM_TIMEOUT_IGNORED;
    return made;
}
constexpr sim_profile irdma_iwarp() {
    sim_profile made = common("irdma-iwarp", "ice", "irdma", SIM_IWARP);
    set_irdma(made);
    made.has_send_imm = false;
    made.events |= mask_of(IBV_EVENT_GID_CHANGE); // utils.c, irdma_gid_change_event()
    return made;
}
constexpr sim_profile bnxt_re() {
    sim_profile made = common("bnxt_re", "bnxt_en", "bnxt_re", SIM_ROCE);
    made.attr.vendor_id = 0x14e4;
    made.sizing = &sim_sizes_bnxt_re;
    made.early_error = EINVAL; // rdma-core 44; 56 divides by the MTU, which is 0
    made.receive_sge_error = ENOMEM;
    made.atomics_need_one_sge = true; // bnxt_re_build_tx_sge
    made.attr.local_ca_ack_delay = 16;
    made.inline_error = made.sge_error = ENOMEM; // rdma-core bnxt_re/verbs.c: bnxt_re_post_send
    made.keeps_bad_wr = true;
    made.max_inline = 96;
    made.has_resize_cq = made.has_ud = true;
    made.has_qp_ex = true; // rdma-core bnxt_re/verbs.c: bnxt_re_send_wr_start, since 56
    set_sges(made, 6, 6);
    made.attr.atomic_cap = IBV_ATOMIC_GLOB;
    made.destroy_removes_completions = true;
    // Linux hw/bnxt_re/main.c: bnxt_re_handle_cq_async_error(), bnxt_re_handle_qp_async_event()
    made.events |= CQ_ERROR | QP_ERRORS | LAST_WQE | SRQ_EVENTS;
    return made;
}
constexpr sim_profile cxgb4() {
    sim_profile made = common("cxgb4", "cxgb4", "cxgb4_", SIM_IWARP);
    made.attr.vendor_id = 0x1425;
    made.sizing = &sim_sizes_cxgb4;
    made.accepts_early = true;
    made.max_inline = 280;
    set_sges(made, 4, 1);
    remove_srq(made);             // the firmware may support SRQs
    made.inline_error = EMSGSIZE; // rdma-core cxgb4/qp.c: build_immd
    negate_errors(made);          // c4iw_post_send
    made.keeps_bad_wr = true;
    made.has_send_imm = made.has_write_imm = false;
    made.fences_writes = false;
    made.events |= CQ_ERROR | QP_ERRORS | mask_of(IBV_EVENT_DEVICE_FATAL); // hw/cxgb4/ev.c
    made.can_be_removed = false;
    return made;
}
constexpr sim_profile hns() {
    sim_profile made = common("hns", "hns3", "hns_", SIM_ROCE);
    made.attr.vendor_id = 0x19e5;
    made.sizing = &sim_sizes_hns;
    // rdma-core hns/hns_roce_u_hw_v2.c: check_qp_send, wr_set_sge_list_rc, set_rc_wqe
    made.early_error = made.builder_early_error = made.builder_size_error = EINVAL;
    made.checks_inline_reads = made.checks_atomic_length = true;
    made.keeps_bad_wr = true;
    made.max_inline = 1024;
    // rdma-core hns/hns_roce_u_hw_v2.c: fill_send_wr_ops, since 40; hns_roce_u_verbs.c:
    // CREATE_CQ_SUPPORTED_WC_FLAGS
    made.has_qp_ex = made.has_rereg_mr = made.has_ud = true;
    made.cq_wc_flags = STANDARD_WC | IBV_WC_EX_WITH_CVLAN;
    set_sges(made, 16, 16);
    made.attr.atomic_cap = IBV_ATOMIC_HCA;
    made.destroy_removes_completions = true;
    // Linux hw/hns: hns_roce_cq.c, hns_roce_qp.c, hns_roce_srq.c
    made.events |= CQ_ERROR | QP_ERRORS | LAST_WQE | SRQ_EVENTS | MIGRATIONS;
    return made;
}
constexpr sim_profile erdma(const char *name, sim_transport transport) {
    sim_profile made = common(name, "erdma", "erdma_", transport);
    made.attr.vendor_id = 0x1ded;
    made.sizing = &sim_sizes_erdma;
    made.accepts_early = true;
    made.failed_error = EIO; // rdma-core erdma/erdma_verbs.c: erdma_post_send, erdma_post_recv
    made.max_inline = 96;
    set_sges(made, 6, 1);
    made.max_recv_sge = 1;
    negate_errors(made); // rdma-core erdma/erdma_verbs.c: erdma_post_send
    remove_srq(made);
    made.attr.atomic_cap = IBV_ATOMIC_GLOB;
    made.timeout = SIM_TIMEOUT_IGNORED;
    made.events |= CQ_ERROR | mask_of(IBV_EVENT_QP_FATAL); // Linux hw/erdma/erdma_eq.c
    return made;
}
constexpr sim_profile mana() {
    sim_profile made = common("mana", "mana", "mana_", SIM_ROCE);
    made.attr.vendor_id = 0x1414;
    made.attr.local_ca_ack_delay = 16;
    // The driver accepts inline data without an error. It does not copy the data, which the
    // fabric does not imitate.
    remove_srq(made);
    made.events |= mask_of(IBV_EVENT_QP_FATAL); // Linux hw/mana/main.c: mana_ib_event_handler()
    return made;
}
constexpr sim_profile ionic() {
    sim_profile made = common("ionic", "ionic", "ionic_", SIM_ROCE);
    made.attr.vendor_id = 0x1dd8;
    // rdma-core ionic/ionic.h: IONIC_QP_SUPPORTED_SEND_OPS_FLAGS, since 65, and
    // IONIC_CQ_SUPPORTED_WC_FLAGS; ionic_verbs.c: ionic_create_cq_ex, ionic_flush_send
    made.has_qp_ex = made.has_ud = true;
    made.cq_wc_flags = STANDARD_WC | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    made.cq_refused_mask = made.cq_refused_flags = 0; // not checked
    made.failed_send = made.failed_receive = SIM_WC_ZERO;
    remove_srq(made);
    made.attr.atomic_cap = IBV_ATOMIC_GLOB;
    made.destroy_removes_completions = true;
    // Linux hw/ionic/ionic_controlpath.c: ionic_cq_event(), ionic_qp_event()
    made.events |= CQ_ERROR | QP_ERRORS;
    return made;
}
constexpr sim_profile qedr(const char *name, sim_transport transport) {
    sim_profile made = common(name, "qede", "qedr", transport);
    made.attr.vendor_id = 0x1077;
    made.sizing = &sim_sizes_qedr;
    made.receive_sge_error = ENOMEM; // rdma-core qedr/qelr_verbs.c: qelr_post_recv
    set_sges(made, 4, 4);
    made.failed_receive = SIM_WC_UNTOUCHED; // rdma-core qedr/qelr_verbs.c: process_resp_flush
    if (transport == SIM_ROCE)              // rdma-core qedr/qelr_verbs.c: qelr_post_send
        made.early_error = EINVAL;
    negate_errors(made);
    made.attr.atomic_cap = IBV_ATOMIC_GLOB;
    // Linux hw/qedr/main.c: qedr_affiliated_event(), qedr_mac_address_change();
    // qedr_iw_cm.c: qedr_iw_qp_event(), which reports an overrun of a CQ as QP_FATAL
    made.events |= SRQ_EVENTS | mask_of(IBV_EVENT_GID_CHANGE);
    made.events |= transport == SIM_ROCE ? CQ_ERROR | QP_ERRORS
                                         : mask_of(IBV_EVENT_QP_FATAL, IBV_EVENT_QP_ACCESS_ERR);
    made.can_be_removed = false;
    return made;
}
constexpr sim_profile rxe() {
    sim_profile made = common("rxe", "rdma_rxe", "rxe", SIM_ROCE);
    made.attr.vendor_id = 0xffffff; // linux sw/rxe/rxe.c: RXE_VENDOR_ID
    made.attr.max_qp_wr = made.attr.max_srq_wr = 1 << 20;
    made.attr.max_cqe = 32767;
    set_sges(made, 32, 32);
    made.attr.max_srq_sge = 27;
    made.attr.max_qp_rd_atom = made.attr.max_qp_init_rd_atom = 128;
    made.attr.max_pkeys = 64;
    made.max_inline = 512;
    made.inline_per_sge = sizeof(ibv_sge);
    made.frees_entries_in_poll = made.keeps_bad_recv = false;
    made.checks_atomics = true;
    made.builder_error = ENOSPC; // rdma-core rxe/rxe.c: check_qp_queue_full, wr_set_sge_list
    made.source_error = IBV_WC_WR_FLUSH_ERR; // rxe_req.c: the QP fails before its completion
    made.receive_error = made.length_error = IBV_WC_LOC_QP_OP_ERR; // RESPST_ERR_MALFORMED_WQE
    made.errors_are_solicited = false; // rxe_comp.c, rxe_resp.c: the calls of rxe_cq_post()
    made.overrun_is_fatal = false;     // rxe_cq_post()
    made.rounding = SIM_POWER_OF_TWO_LESS_ONE;
    made.attr.atomic_cap = IBV_ATOMIC_HCA;
    made.has_native_flush = made.has_native_atomic_write = made.has_odp = true;
    // Linux sw/rxe/rxe_odp.c: rxe_ib_prefetch_sg_list()
    made.advise_error = made.advise_access_error = EINVAL;
    made.advises_writable_only = true;
    made.has_qp_ex = made.has_resize_cq = made.has_ud = true;
    made.has_uc = true; // Linux sw/rxe/rxe_qp.c: rxe_qp_chk_init()
    // rdma-core rxe/rxe.c: RXE_SUP_WC_EX_FLAGS
    made.cq_wc_flags = STANDARD_WC;
    // Linux sw/rxe: rxe_comp.c, make_send_cqe(), since 5.14; rxe_resp.c, do_complete() and
    // flush_recv_wqe()
    made.failed_send = made.failed_receive = SIM_WC_ZERO;
    made.retry_count_7_is_endless = true;
    made.has_doorbell_call = true; // rdma-core rxe/rxe.c: post_send_db()
    // Linux sw/rxe: rxe_cq.c, rxe_cq_post(); rxe_resp.c: invalid keys, since Linux 7.1
    made.events |= CQ_ERROR | LAST_WQE | SRQ_LIMIT | mask_of(IBV_EVENT_QP_ACCESS_ERR);
    return made;
}
constexpr sim_profile siw() {
    sim_profile made = common("siw", "siw", "siw", SIM_IWARP);
    made.attr.vendor_id = 0x626d74; // linux sw/siw/siw.h: SIW_VENDOR_ID
    made.attr.max_cqe = 3276800;
    set_sges(made, 6, 1);
    made.attr.max_srq_wr = 327680;
    made.attr.max_qp_rd_atom = made.attr.max_qp_init_rd_atom = 128;
    made.max_inline = 80;
    made.least_inline = 8;
    made.frees_entries_in_poll = made.keeps_bad_recv = false;
    negate_errors(made);                 // rdma-core siw/siw.c: siw_post_send, siw_post_recv
    made.receives_need_sge = true;       // push_recv_wqe()
    made.reports_requested_sizes = true; // siw_create_qp()
    made.hides_refusals = true;          // siw_post_send()
    made.overrun_is_fatal = false;       // siw_sqe_complete()
    made.source_error = IBV_WC_LOC_QP_OP_ERR; // siw_qp_sq_process()
    made.checks_read_access = false; // siw_qp_sq_proc_tx(): siw_check_sgl_tx() without access
    made.flushes_late_posts = false; // siw_post_send(): siw_sq_flush_wr() of kernel requests
    made.receive_error = IBV_WC_GENERAL_ERR;
    made.errors_are_solicited = false;
    made.notifies_sender = true; // siw_sqe_complete(), siw_rqe_complete(): siw_cq_notify_now()
    made.has_send_imm = made.has_write_imm = false;
    made.has_query_srq = false;
    made.has_doorbell_call = true; // rdma-core siw/siw.c: siw_db()
    made.connects_in_call = true;  // Linux sw/siw/siw_cm.c: siw_connect()
    // Linux sw/siw: siw_qp.c, siw_qp_rx.c, siw_qp_tx.c; siw_main.c, NETDEV_CHANGEADDR
    made.events |= CQ_ERROR | QP_ERRORS | SRQ_LIMIT | mask_of(IBV_EVENT_LID_CHANGE);
    made.can_be_removed = false;
    return made;
}

} // namespace

const sim_profile sim_profiles[] = {
    rxe(), // the default
    mlx5("mlx5", SIM_ROCE),
    mlx5("mlx5-ib", SIM_INFINIBAND),
    mlx4("mlx4", SIM_ROCE),
    mlx4("mlx4-ib", SIM_INFINIBAND),
    irdma_roce(),
    irdma_iwarp(),
    bnxt_re(),
    cxgb4(),
    hns(),
    erdma("erdma", SIM_IWARP),
    erdma("erdma-roce", SIM_ROCE),
    mana(),
    ionic(),
    qedr("qedr", SIM_ROCE),
    qedr("qedr-iwarp", SIM_IWARP),
    siw(),
};
const size_t sim_profile_count = sizeof(sim_profiles) / sizeof(sim_profiles[0]);

const sim_profile *sim_find_profile(const char *name) {
    for (const sim_profile &each : sim_profiles)
        if (strcmp(each.name, name) == 0)
            return &each;
    return nullptr;
}

bool sim_device_has_fault(const sim_profile *device, const char *action, ibv_event_type event) {
    const struct {
        const char *action;
        bool is_possible;
    } limited[] = {
        {"doorbell", device->has_doorbell_call},
        {"overrun", (device->events & CQ_ERROR) != 0},
        {"event", (device->events >> event & 1) != 0},
        {"remove", device->can_be_removed},
        {"port-down", (device->events & mask_of(IBV_EVENT_PORT_ERR)) != 0},
    };
    for (const auto &each : limited)
        if (strcmp(action, each.action) == 0)
            return each.is_possible;
    return true;
}
