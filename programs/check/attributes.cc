// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// attributes.cc -- the properties of sim/device/devices.tsv that the device shows without
// traffic

#include "../info/info.hh"
#include "device_description.hh"

#include <cerrno>
#include <cstring>
#include <functional>
#include <span>

namespace {

using UniqueCq = Owned<ibv_cq, ibv_destroy_cq>;
using UniqueQp = Owned<ibv_qp, ibv_destroy_qp>;
using UniqueSrq = Owned<ibv_srq, ibv_destroy_srq>;
using UniqueMw = Owned<ibv_mw, ibv_dealloc_mw>;
using UniqueMr = Owned<ibv_mr, ibv_dereg_mr>;

Json limits_of(const ibv_device_attr &attr) {
    static constexpr const char *ATOMICS[] = {"NONE", "HCA", "GLOB"};
    Json found = {{"attr.max_mr_size", attr.max_mr_size},
                  {"attr.page_size_cap", attr.page_size_cap},
                  {"attr.vendor_id", attr.vendor_id},
                  {"attr.vendor_part_id", attr.vendor_part_id},
                  {"attr.hw_ver", attr.hw_ver},
                  {"attr.device_cap_flags", attr.device_cap_flags}};
    const std::pair<const char *, int> numbers[] = {
        {"attr.max_qp", attr.max_qp},
        {"attr.max_qp_wr", attr.max_qp_wr},
        {"attr.max_mw", attr.max_mw},
        {"attr.max_cq", attr.max_cq},
        {"attr.max_cqe", attr.max_cqe},
        {"attr.max_mr", attr.max_mr},
        {"attr.max_pd", attr.max_pd},
        {"attr.max_qp_rd_atom", attr.max_qp_rd_atom},
        {"attr.max_res_rd_atom", attr.max_res_rd_atom},
        {"attr.max_ah", attr.max_ah},
        {"attr.max_srq", attr.max_srq},
        {"attr.max_srq_wr", attr.max_srq_wr},
        {"attr.max_srq_sge", attr.max_srq_sge},
        {"attr.max_sge", attr.max_sge},
        {"attr.max_sge_rd", attr.max_sge_rd},
        {"attr.max_pkeys", attr.max_pkeys},
        {"attr.max_mcast_grp", attr.max_mcast_grp},
        {"attr.max_mcast_qp_attach", attr.max_mcast_qp_attach},
        {"attr.max_total_mcast_qp_attach", attr.max_total_mcast_qp_attach},
        {"attr.local_ca_ack_delay", attr.local_ca_ack_delay},
        {"attr.phys_port_cnt", attr.phys_port_cnt}};
    for (const auto &[name, value] : numbers)
        found[name] = std::max(value, 0); // some drivers report -1
    if (attr.atomic_cap <= IBV_ATOMIC_GLOB)
        found["attr.atomic_cap"] = ATOMICS[attr.atomic_cap];
    return found;
}

struct Flag {
    const char *name;
    uint64_t bit;
};

constexpr Flag MEMBERS[] = {
    {"WITH_BYTE_LEN", IBV_WC_EX_WITH_BYTE_LEN},
    {"WITH_IMM", IBV_WC_EX_WITH_IMM},
    {"WITH_QP_NUM", IBV_WC_EX_WITH_QP_NUM},
    {"WITH_SRC_QP", IBV_WC_EX_WITH_SRC_QP},
    {"WITH_SLID", IBV_WC_EX_WITH_SLID},
    {"WITH_SL", IBV_WC_EX_WITH_SL},
    {"WITH_DLID_PATH_BITS", IBV_WC_EX_WITH_DLID_PATH_BITS},
    {"WITH_COMPLETION_TIMESTAMP", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP},
    {"WITH_CVLAN", IBV_WC_EX_WITH_CVLAN},
    {"WITH_FLOW_TAG", IBV_WC_EX_WITH_FLOW_TAG},
    {"WITH_COMPLETION_TIMESTAMP_WALLCLOCK", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK}};
constexpr Flag PAGING[] = {
    {"SEND", IBV_ODP_SUPPORT_SEND},     {"RECV", IBV_ODP_SUPPORT_RECV},
    {"WRITE", IBV_ODP_SUPPORT_WRITE},   {"READ", IBV_ODP_SUPPORT_READ},
    {"ATOMIC", IBV_ODP_SUPPORT_ATOMIC}, {"SRQ_RECV", IBV_ODP_SUPPORT_SRQ_RECV}};

// The names of the bits, as sim/device/devices.tsv has them.
std::string names_of(uint64_t bits, std::span<const Flag> flags) {
    std::string text;
    const auto add = [&](const char *name) {
        text += (text.empty() ? "" : " ") + std::string(name);
    };
    const bool is_standard =
        flags.data() == MEMBERS && (bits & IBV_WC_STANDARD_FLAGS) == IBV_WC_STANDARD_FLAGS;
    if (is_standard)
        add("STANDARD");
    for (const auto &[name, bit] : flags)
        if ((bits & bit) != 0 && !(is_standard && (bit & IBV_WC_STANDARD_FLAGS) != 0))
            add(name);
    return text.empty() ? "none" : text;
}

constexpr ibv_qp_cap QP_SIZES = {4, 4, 1, 1, 0};

// Creates objects to find out what the device accepts.
class Trials {
  public:
    Trials(ibv_context *device, ibv_pd *domain)
        : context(device), pd(domain), cq_(ibv_create_cq(device, 16, nullptr, nullptr, 0)) {
        if (!cq_)
            fail("the device cannot create a completion queue: {}", std::strerror(errno));
    }

    bool has_qp(ibv_qp_type type, ibv_qp_cap cap = QP_SIZES) const {
        auto attr = qp_attr<ibv_qp_init_attr>();
        attr.cap = cap;
        attr.qp_type = type;
        return new_qp(attr) != nullptr;
    }
    // The greatest value that is accepted.
    static uint32_t greatest(uint32_t most, const std::function<bool(uint32_t)> &accepts) {
        uint32_t good = 0;
        for (uint32_t bad = most + 1; bad - good > 1;) {
            const uint32_t middle = good + (bad - good) / 2;
            (accepts(middle) ? good : bad) = middle;
        }
        return good;
    }
    bool has_extended_qp() const {
        auto attr = qp_attr<ibv_qp_init_attr_ex>();
        attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr.pd = pd;
        attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
        const UniqueQp qp(ibv_create_qp_ex(context, &attr));
        return qp && ibv_qp_to_qp_ex(qp.get()) != nullptr;
    }
    bool has_create_flags() const {
        auto attr = qp_attr<ibv_qp_init_attr_ex>();
        attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
        attr.pd = pd;
        return UniqueQp(ibv_create_qp_ex(context, &attr)) != nullptr;
    }
    // The error of a CQ with these members of completions and flags; 0 if it is created.
    int cq_ex_error(uint64_t members, uint32_t flags = 0) const {
        ibv_cq_init_attr_ex attr{};
        attr.cqe = 16;
        attr.wc_flags = members;
        attr.comp_mask = flags == 0 ? 0U : uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS};
        attr.flags = flags;
        errno = 0;
        ibv_cq_ex *const made = ibv_create_cq_ex(context, &attr);
        const int error = made ? 0 : errno;
        const UniqueCq owner(made ? ibv_cq_ex_to_cq(made) : nullptr);
        return error;
    }
    // A receive of a queue pair that is not initialized.
    bool receives_in_reset() const {
        static char memory[64];
        const int access = IBV_ACCESS_LOCAL_WRITE;
        const UniqueMr mr(ibv_reg_mr(pd, memory, sizeof(memory), access));
        const UniqueQp qp = new_qp();
        if (!mr || !qp)
            return false;
        ibv_sge sge = {reinterpret_cast<uintptr_t>(memory), sizeof(memory), mr->lkey};
        ibv_recv_wr wr{}, *bad = nullptr;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        return ibv_post_recv(qp.get(), &wr, &bad) == 0;
    }
    bool reports_init() const {
        const UniqueQp qp = new_qp();
        ibv_qp_attr attr{};
        ibv_qp_init_attr created{};
        return qp && ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &created) == 0 &&
               attr.qp_state == IBV_QPS_INIT;
    }
    // Sets a queue pair to INIT, RESET and INIT.
    bool reuses_reset_qp() const {
        const UniqueQp qp = new_qp();
        ibv_qp_attr init{}, reset{};
        init.qp_state = IBV_QPS_INIT;
        init.port_num = 1;
        reset.qp_state = IBV_QPS_RESET;
        const auto initialize = [&] {
            return ibv_modify_qp(qp.get(), &init,
                                 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                     IBV_QP_ACCESS_FLAGS) == 0;
        };
        return qp && initialize() && ibv_modify_qp(qp.get(), &reset, IBV_QP_STATE) == 0 &&
               initialize();
    }
    bool reports_srq_receives() const {
        const UniqueSrq srq = new_srq();
        auto attr = qp_attr<ibv_qp_init_attr>();
        attr.srq = srq.get();
        return new_qp(attr) != nullptr && attr.cap.max_recv_wr != 0;
    }
    // The errors of advice about regions, on devices with on-demand paging whose driver has
    // the call.
    Json advice() const {
        alignas(4096) static char memory[4096];
        const auto error_of = [&](int access, ibv_advise_mr_advice advice) {
            const UniqueMr mr(ibv_reg_mr(pd, memory, sizeof(memory), access));
            ibv_sge sge = {reinterpret_cast<uintptr_t>(memory), sizeof(memory),
                           mr ? mr->lkey : 0};
            return mr ? ibv_advise_mr(pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1)
                      : EOPNOTSUPP;
        };
        constexpr int WRITABLE = IBV_ACCESS_LOCAL_WRITE;
        if (error_of(WRITABLE | IBV_ACCESS_ON_DEMAND, IBV_ADVISE_MR_ADVICE_PREFETCH) != 0)
            return Json::object();
        return {
            {"advise_error", error_name(error_of(WRITABLE, IBV_ADVISE_MR_ADVICE_PREFETCH))},
            {"advise_access_error",
             error_name(error_of(IBV_ACCESS_ON_DEMAND, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE))},
            {"advises_writable_only",
             error_of(IBV_ACCESS_ON_DEMAND, IBV_ADVISE_MR_ADVICE_PREFETCH) != 0}};
    }
    bool has_srq() const { return new_srq() != nullptr; }
    bool has_query_srq() const {
        ibv_srq_attr found;
        const UniqueSrq srq = new_srq();
        return srq && ibv_query_srq(srq.get(), &found) == 0;
    }
    bool has_resize_cq() const {
        const UniqueCq own(ibv_create_cq(context, 16, nullptr, nullptr, 0));
        return own && ibv_resize_cq(own.get(), 32) == 0;
    }
    bool has_rereg_mr() const {
        alignas(4096) static char memory[4096];
        const int access = IBV_ACCESS_LOCAL_WRITE;
        const UniqueMr mr(ibv_reg_mr(pd, memory, sizeof(memory), access));
        return mr &&
               ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0) == 0;
    }
    bool has_rt_values() const {
        ibv_values_ex values{};
        values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
        return ibv_query_rt_values_ex(context, &values) == 0;
    }
    // The error number of the creation; "0" if it succeeds.
    std::string cq_error(int cqe) const {
        errno = 0;
        const UniqueCq made(ibv_create_cq(context, cqe, nullptr, nullptr, 0));
        return error_name(made ? 0 : errno);
    }

    ibv_context *const context;
    ibv_pd *const pd;

  private:
    // Of a small queue pair: ibv_qp_init_attr or ibv_qp_init_attr_ex.
    template <class Attr> Attr qp_attr() const {
        Attr attr{};
        attr.send_cq = attr.recv_cq = cq_.get();
        attr.cap = QP_SIZES;
        attr.qp_type = IBV_QPT_RC;
        return attr;
    }
    // Writes the sizes of the queue pair to attr.
    UniqueQp new_qp(ibv_qp_init_attr &attr) const { return UniqueQp(ibv_create_qp(pd, &attr)); }
    UniqueQp new_qp() const {
        auto attr = qp_attr<ibv_qp_init_attr>();
        return new_qp(attr);
    }
    UniqueSrq new_srq() const {
        ibv_srq_init_attr attr{};
        attr.attr = {4, 1, 0};
        return UniqueSrq(ibv_create_srq(pd, &attr));
    }

    const UniqueCq cq_;
};

} // namespace

std::string error_name(int error) {
    const char *const name = strerrorname_np(error);
    return name && error != 0 ? name : "0";
}

Json attributes_of(ibv_context *context, ibv_pd *pd) {
    ibv_device_attr_ex all{};
    if (const int error = ibv_query_device_ex(context, nullptr, &all); error != 0)
        fail("the device cannot be queried: {}", std::strerror(error));
    const ibv_device_attr &attr = all.orig_attr;
    Json found = limits_of(attr);
    const Trials trials(context, pd);
    found["vectors"] = std::max(context->num_comp_vectors, 0);
    ibv_port_attr port{};
    if (ibv_query_port(context, 1, &port) == 0)
        found["gid_entries"] = std::max(port.gid_tbl_len, 0);
    found["max_inline"] = Trials::greatest(4096, [&](uint32_t bytes) {
        return trials.has_qp(IBV_QPT_RC, {4, 4, 1, 1, bytes});
    });
    found["max_recv_sge"] = Trials::greatest(128, [&](uint32_t sges) {
        return trials.has_qp(IBV_QPT_RC, {4, 4, 1, sges, 0});
    });
    found["has_rc"] = trials.has_qp(IBV_QPT_RC);
    found["has_uc"] = trials.has_qp(IBV_QPT_UC);
    found["has_ud"] = trials.has_qp(IBV_QPT_UD);
    found["has_srq"] = trials.has_srq();
    if (found["has_srq"] == true)
        found["has_query_srq"] = trials.has_query_srq();
    found["has_qp_ex"] = trials.has_extended_qp();
    found["has_native_flush"] = (all.device_cap_flags_ex >> 38 & 3) != 0;
    found["has_native_atomic_write"] = (all.device_cap_flags_ex >> 40 & 1) != 0;
    found["has_odp"] = (all.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0;
    found["has_implicit_odp"] = (all.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT) != 0;
    found["ud_odp_caps"] = names_of(all.odp_caps.per_transport_caps.ud_odp_caps, PAGING);
    found["has_create_flags"] = trials.has_create_flags();
    uint64_t members = 0;
    for (const auto &[name, bit] : MEMBERS)
        members |= trials.cq_ex_error(bit) == 0 ? bit : 0;
    found["cq_wc_flags"] = names_of(members, MEMBERS);
    const int refusal =
        trials.cq_ex_error(members, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN | 1U << 31);
    if (members != 0 && refusal != 0)
        found["cq_mask_error"] = error_name(refusal);
    if (found["has_rc"] == true) {
        found["receives_in_reset"] = trials.receives_in_reset();
        found["reports_init"] = trials.reports_init();
        if (context->device->transport_type != IBV_TRANSPORT_IWARP)
            found["reuses_reset_qp"] = trials.reuses_reset_qp();
    }
    if (found["has_srq"] == true)
        found["reports_srq_receives"] = trials.reports_srq_receives();
    found.update(trials.advice());
    found["has_windows"] = UniqueMw(ibv_alloc_mw(pd, IBV_MW_TYPE_2)) != nullptr;
    found["has_resize_cq"] = trials.has_resize_cq();
    found["has_rereg_mr"] = trials.has_rereg_mr();
    found["has_rt_values"] = trials.has_rt_values();
    found["rounds_empty_cq"] = trials.cq_error(0) == "0";
    if (attr.max_cqe < INT32_MAX)
        found["cq_error"] = trials.cq_error(attr.max_cqe + 1);
    return found;
}
