// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.cc -- capabilities, registration and queue pairs

#include "core/peer.hh"

#include <cstdlib>
#include <cstring>

#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
#include <rdma/ib_user_verbs.h>
#endif

#include "base/log.hh"

namespace {

rpma_capabilities capabilities(const ibv_device_attr_ex &attributes) {
    rpma_capabilities device;
    device.on_demand_paging = rpma_is_odp_capable(attributes);
    device.max_cq_size = static_cast<uint32_t>(attributes.orig_attr.max_cqe);
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    device.atomic_write = (attributes.device_cap_flags_ex & IB_UVERBS_DEVICE_ATOMIC_WRITE) != 0;
#endif
#ifdef RPMA_NATIVE_FLUSH
    constexpr uint64_t BOTH = static_cast<uint64_t>(IB_UVERBS_DEVICE_FLUSH_GLOBAL) |
                              static_cast<uint64_t>(IB_UVERBS_DEVICE_FLUSH_PERSISTENT);
    device.flush = (attributes.device_cap_flags_ex & BOTH) == BOTH;
#endif
    return device;
}

// RPMA_FLUSH lets an operator join unlike peers without touching the program.
bool wants_native_flush(bool device_flushes) {
    const char *choice = secure_getenv("RPMA_FLUSH");
    if (choice == nullptr || std::strcmp(choice, "auto") == 0)
        return device_flushes;
    if (std::strcmp(choice, "emulated") == 0)
        return false;
    if (std::strcmp(choice, "native") != 0)
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, "rpma_peer_new",
                 "RPMA_FLUSH=%s is ignored: use auto, emulated or native", choice);
    else if (!device_flushes)
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, "rpma_peer_new",
                 "RPMA_FLUSH=native is not possible here: flushes are emulated");
    return device_flushes;
}

} // namespace

bool rpma_is_odp_capable(const ibv_device_attr_ex &attributes) {
    constexpr uint32_t BOTH = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    return (attributes.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0 &&
           (attributes.odp_caps.per_transport_caps.rc_odp_caps & BOTH) == BOTH;
}

rpma_peer::rpma_peer(rpma::verbs::Pd &&domain, rpma_capabilities capabilities)
    : pd_(std::move(domain)), device_(capabilities),
      flush_natively_(wants_native_flush(capabilities.flush)) {}

rpma::Result<std::unique_ptr<rpma_peer>> rpma_peer::create(ibv_context &device) {
    auto attributes = rpma::verbs::query_device(device);
    if (!attributes)
        return rpma::fail(attributes.error());

    auto pd = rpma::verbs::alloc_pd(device);
    if (!pd)
        return rpma::fail(pd.error());

    rpma_capabilities can = capabilities(*attributes);
    RPMA_LOG(RPMA_LOG_LEVEL_INFO, "rpma_peer_new",
             "native atomic write: %s, native flush: %s, on-demand paging: %s",
             can.atomic_write ? "yes" : "no", can.flush ? "yes" : "no",
             can.on_demand_paging ? "yes" : "no");
    return rpma::make<rpma_peer>(std::move(*pd), can);
}

rpma::Status rpma_peer::close() {
    rpma::Status status = flush_target_.close();
    return status ? pd_.try_close() : status;
}

unsigned rpma_peer::access_flags(int usage) const {
    unsigned access = 0;
    if ((usage & RPMA_MR_USAGE_READ_SRC) != 0)
        access |= IBV_ACCESS_REMOTE_READ;
    if ((usage & RPMA_MR_USAGE_READ_DST) != 0) {
        access |= IBV_ACCESS_LOCAL_WRITE;
        // iWARP answers a read with a write into the reader's memory.
        if (pd_->context->device->transport_type == IBV_TRANSPORT_IWARP)
            access |= IBV_ACCESS_REMOTE_WRITE;
    }
    if ((usage & RPMA_MR_USAGE_WRITE_SRC) != 0)
        access |= IBV_ACCESS_LOCAL_WRITE;
    if ((usage & RPMA_MR_USAGE_WRITE_DST) != 0)
        access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
    if ((usage & RPMA_MR_USAGE_RECV) != 0)
        access |= IBV_ACCESS_LOCAL_WRITE;

    // Readable in any case: the other side may not know the native operation.
    constexpr int FLUSH =
        RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    if ((usage & FLUSH) != 0)
        access |= IBV_ACCESS_REMOTE_READ;
#ifdef RPMA_NATIVE_FLUSH
    if (device_.flush && (usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY) != 0)
        access |= IBV_ACCESS_FLUSH_GLOBAL;
    if (device_.flush && (usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) != 0)
        access |= IBV_ACCESS_FLUSH_PERSISTENT;
#endif
    return access;
}

unsigned rpma_peer::retry_access(unsigned access, int error) const {
    if ((access & IBV_ACCESS_ON_DEMAND) != 0)
        return access;
#ifdef RPMA_NATIVE_FLUSH
    if (error == EINVAL && (access & IBV_ACCESS_FLUSH_PERSISTENT) != 0) {
        RPMA_LOG(RPMA_LOG_LEVEL_INFO, "rpma_mr_reg",
                 "the device flushes no such memory persistently: registered without that");
        return access & ~static_cast<unsigned>(IBV_ACCESS_FLUSH_PERSISTENT);
    }
#endif
    // FS-DAX memory can move: some devices take it with on-demand paging only.
    if (error == EOPNOTSUPP && device_.on_demand_paging)
        return access | IBV_ACCESS_ON_DEMAND;
    return access;
}

rpma::Result<std::unique_ptr<rpma_mr_local>>
rpma_peer::register_memory(void *ptr, std::size_t size, int usage) const {
    unsigned access = access_flags(usage);
    for (;;) {
        auto region = rpma::verbs::register_memory(pd(), ptr, size, access);
        if (region)
            return rpma::make<rpma_mr_local>(std::move(*region), usage);
        const unsigned next = retry_access(access, region.error().error);
        if (next == access)
            return rpma::fail(region.error());
        access = next;
    }
}

rpma::Result<rpma::verbs::QueuePair> rpma_peer::create_qp(rdma_cm_id &id,
                                                          const rpma_conn_cfg &cfg, ibv_cq &cq,
                                                          ibv_cq &receive_cq,
                                                          ibv_srq *srq) const {
    ibv_qp_init_attr_ex attributes = {};
    attributes.send_cq = &cq;
    attributes.recv_cq = &receive_cq;
    attributes.srq = srq;
    attributes.cap.max_send_wr = cfg.sq_size;
    attributes.cap.max_recv_wr = cfg.rq_size;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = RPMA_ATOMIC_WRITE_ALIGNMENT;
    attributes.qp_type = IBV_QPT_RC;
    attributes.pd = &pd();
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    if (device_.atomic_write)
        attributes.send_ops_flags |= IBV_QP_EX_WITH_ATOMIC_WRITE;
#endif
#ifdef RPMA_NATIVE_FLUSH
    if (flush_natively_)
        attributes.send_ops_flags |= IBV_QP_EX_WITH_FLUSH;
#endif
    // Devices without extended queue pairs refuse the mask even with no bit behind it.
    if (attributes.send_ops_flags != 0)
        attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

    if (rdma_create_qp_ex(&id, &attributes) != 0)
        return rpma::verbs::failed("rdma_create_qp_ex()");
    return rpma::verbs::QueuePair(&id);
}

rpma::Result<rpma::FlushTargetUse> rpma_peer::use_flush_target() {
    auto mr = flush_target_.acquire(*this);
    if (!mr)
        return rpma::fail(mr.error());
    return rpma::FlushTargetUse(flush_target_, **mr);
}
