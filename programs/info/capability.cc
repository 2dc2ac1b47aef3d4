// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// capability.cc -- the native operations and the limits of a device

#include <algorithm>
#include <cstdlib>

#include "info.hh"

namespace {

// From include/uapi/rdma/ib_user_verbs.h of the kernel; the headers of Debian 12 lack the
// names.
constexpr uint64_t DEVICE_FLUSH = UINT64_C(1) << 38 | UINT64_C(1) << 39;
constexpr uint64_t DEVICE_ATOMIC_WRITE = UINT64_C(1) << 40;

constexpr unsigned MAX_INLINE = 65536;

// Returns why librpma emulates an operation: the device or this build has no native one.
Json not_native(const char *name, const char *instead, bool device_has, bool is_rxe) {
    if (device_has)
        return no(
            fmt::format("the device has {}, but this build of librpma does not use it", name),
            "build librpma with the headers of rdma-core 45 and Linux 6.2 or later");
    if (is_rxe)
        return no(fmt::format("rdma_rxe of this kernel has no {}", name),
                  "Linux 6.2 or later has it");
    return no(fmt::format("the device has no {}", name),
              fmt::format("use another device; here librpma uses {} instead", instead));
}

Json native_flush(bool native, bool device_has, bool is_rxe) {
    const char *choice = std::getenv("RPMA_FLUSH");
    if (!native)
        return not_native("FLUSH", "a read after the writes", device_has, is_rxe);
    if (choice != nullptr && choice == std::string("emulated"))
        return no("RPMA_FLUSH=emulated is set in the environment",
                  "remove it: unset RPMA_FLUSH");
    return yes();
}

Json on_demand_paging(ibv_context *context, bool is_rxe) {
    if (rpma::ibv_context_is_odp_capable(context))
        return yes();
    if (is_rxe)
        return no("rdma_rxe of this kernel has none, so files on FS-DAX cannot be registered",
                  "Linux 6.15 or later, or device DAX");
    return no("the device has none, so registering files on FS-DAX may fail",
              "another device, or device DAX");
}

Json remote_atomics(ibv_atomic_cap has) {
    if (has != IBV_ATOMIC_NONE)
        return yes();
    return no("the device has none, so RPMA_WORK_FETCH_ADD and RPMA_WORK_COMPARE_SWAP are "
              "refused",
              "another device: rpma_devices(7) lists those that have them");
}

// The scope of atomicity of remote atomics.
Json atomic_with(ibv_atomic_cap has) {
    if (has == IBV_ATOMIC_NONE)
        return nullptr;
    return has == IBV_ATOMIC_GLOB ? "machine" : "device";
}

bool accepts_inline(ibv_pd *pd, ibv_cq *cq, unsigned size) {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = attributes.recv_cq = cq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {.max_send_wr = 10,
                      .max_recv_wr = 10,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = size};
    ibv_qp *qp = ibv_create_qp(pd, &attributes);
    return qp != nullptr && ibv_destroy_qp(qp) == 0;
}

// No device attribute reports the inline limit: searches for the largest size with which a
// queue pair with librpma's defaults can be created.
Json inline_size(ibv_context *context) {
    const Owned<ibv_pd, ibv_dealloc_pd> pd(ibv_alloc_pd(context));
    const Owned<ibv_cq, ibv_destroy_cq> cq(pd ? ibv_create_cq(context, 20, nullptr, nullptr, 0)
                                              : nullptr);
    if (!cq || !accepts_inline(pd.get(), cq.get(), 0))
        return nullptr;
    unsigned taken = 0, refused = MAX_INLINE + 1;
    while (refused - taken > 1) {
        const unsigned middle = taken + (refused - taken) / 2;
        (accepts_inline(pd.get(), cq.get(), middle) ? taken : refused) = middle;
    }
    return taken;
}

} // namespace

Json capabilities(ibv_context *context, const rpma::peer &peer, const ibv_device_attr_ex &has) {
    const auto served = served_by(peer);
    const uint64_t flags = has.device_cap_flags_ex;
    const bool is_rxe = has.orig_attr.vendor_id == VENDOR_RXE;
    return {{"native_flush",
             native_flush(served.flush, (flags & DEVICE_FLUSH) == DEVICE_FLUSH, is_rxe)},
            {"native_atomic_write",
             served.atomic_write ? yes()
                                 : not_native("ATOMIC WRITE", "a fenced write of 8 bytes",
                                              (flags & DEVICE_ATOMIC_WRITE) != 0, is_rxe)},
            {"remote_atomics", remote_atomics(has.orig_attr.atomic_cap)},
            {"atomic_with", atomic_with(has.orig_attr.atomic_cap)},
            {"on_demand_paging", on_demand_paging(context, is_rxe)}};
}

Json device_limits(ibv_context *context, const ibv_device_attr &limits) {
    const auto count = [](int value) { return std::max(value, 0); };
    return {{"cq_size", count(limits.max_cqe)},
            {"sq_size", count(limits.max_qp_wr)},
            {"rq_size", count(limits.max_qp_wr)},
            {"srq_size", count(limits.max_srq_wr)},
            {"max_sge", count(limits.max_sge)},
            {"max_read_sge", count(limits.max_sge_rd)},
            {"max_srq_sge", count(limits.max_srq_sge)},
            {"inline_size", inline_size(context)},
            {"max_qp_init_rd_atom", count(limits.max_qp_init_rd_atom)},
            {"max_qp_rd_atom", count(limits.max_qp_rd_atom)},
            {"queue_pairs", count(limits.max_qp)},
            {"completion_queues", count(limits.max_cq)},
            {"completion_vectors", count(context->num_comp_vectors)},
            {"regions", count(limits.max_mr)},
            {"region_size", limits.max_mr_size}};
}
