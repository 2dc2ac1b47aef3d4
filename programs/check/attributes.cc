// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// attributes.cc -- the properties of sim/device/devices.tsv that the device shows without
// traffic

#include "../info/info.hh"
#include "device.hh"

#include <cerrno>
#include <cstring>
#include <functional>

namespace {

using unique_cq = owned<ibv_cq, ibv_destroy_cq>;
using unique_qp = owned<ibv_qp, ibv_destroy_qp>;
using unique_srq = owned<ibv_srq, ibv_destroy_srq>;
using unique_mw = owned<ibv_mw, ibv_dealloc_mw>;

json limits_of(const ibv_device_attr &attr) {
    static constexpr const char *ATOMICS[] = {"NONE", "HCA", "GLOB"};
    json found = {{"attr.max_mr_size", attr.max_mr_size},
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

// Creates objects to find out what the device accepts.
class Trials {
  public:
    Trials(ibv_context *device, ibv_pd *domain)
        : context(device), pd(domain), cq(ibv_create_cq(device, 16, nullptr, nullptr, 0)) {
        if (!cq)
            fail("the device cannot create a completion queue: {}", std::strerror(errno));
    }

    bool has_qp(ibv_qp_type type, ibv_qp_cap cap = {4, 4, 1, 1, 0}) const {
        ibv_qp_init_attr attr{};
        attr.send_cq = attr.recv_cq = cq.get();
        attr.cap = cap;
        attr.qp_type = type;
        return unique_qp(ibv_create_qp(pd, &attr)) != nullptr;
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
        ibv_qp_init_attr_ex attr{};
        attr.send_cq = attr.recv_cq = cq.get();
        attr.cap = {4, 4, 1, 1, 0};
        attr.qp_type = IBV_QPT_RC;
        attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr.pd = pd;
        attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
        const unique_qp qp(ibv_create_qp_ex(context, &attr));
        return qp && ibv_qp_to_qp_ex(qp.get()) != nullptr;
    }
    bool has_srq() const {
        ibv_srq_init_attr attr{};
        attr.attr = {4, 1, 0};
        return unique_srq(ibv_create_srq(pd, &attr)) != nullptr;
    }
    bool has_query_srq() const {
        ibv_srq_init_attr attr{};
        attr.attr = {4, 1, 0};
        ibv_srq_attr found;
        const unique_srq srq(ibv_create_srq(pd, &attr));
        return srq && ibv_query_srq(srq.get(), &found) == 0;
    }
    bool has_resize_cq() const {
        const unique_cq own(ibv_create_cq(context, 16, nullptr, nullptr, 0));
        return own && ibv_resize_cq(own.get(), 32) == 0;
    }
    bool has_rereg_mr() const {
        alignas(4096) static char memory[4096];
        const int access = IBV_ACCESS_LOCAL_WRITE;
        const owned<ibv_mr, ibv_dereg_mr> mr(ibv_reg_mr(pd, memory, sizeof(memory), access));
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
        const unique_cq made(ibv_create_cq(context, cqe, nullptr, nullptr, 0));
        const char *name = made ? "0" : strerrorname_np(errno);
        return name ? name : "0";
    }

    ibv_context *const context;
    ibv_pd *const pd;

  private:
    const unique_cq cq;
};

} // namespace

json attributes_of(ibv_context *context, ibv_pd *pd) {
    ibv_device_attr_ex all{};
    if (const int error = ibv_query_device_ex(context, nullptr, &all); error != 0)
        fail("the device cannot be queried: {}", std::strerror(error));
    const ibv_device_attr &attr = all.orig_attr;
    json found = limits_of(attr);
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
    found["has_windows"] = unique_mw(ibv_alloc_mw(pd, IBV_MW_TYPE_2)) != nullptr;
    found["has_resize_cq"] = trials.has_resize_cq();
    found["has_rereg_mr"] = trials.has_rereg_mr();
    found["has_rt_values"] = trials.has_rt_values();
    found["rounds_empty_cq"] = trials.cq_error(0) == "0";
    if (attr.max_cqe < INT32_MAX)
        found["cq_error"] = trials.cq_error(attr.max_cqe + 1);
    return found;
}
