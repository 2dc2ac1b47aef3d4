// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.cc -- capabilities, registration and queue pairs

#include "core/peer.hh"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>

#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
#include <rdma/ib_user_verbs.h>
#endif

#include "base/visible.hh"
#include "verbs/causes.hh"

using namespace rpma;

namespace {

Capabilities capabilities_of(const ibv_device_attr_ex &attributes) {
    Capabilities device;
    device.on_demand_paging = is_odp_capable(attributes);
    device.atomics = attributes.orig_attr.atomic_cap != IBV_ATOMIC_NONE;
    device.max_cqe = static_cast<uint32_t>(attributes.orig_attr.max_cqe);
    device.max_qp_wr = static_cast<uint32_t>(attributes.orig_attr.max_qp_wr);
    device.max_srq_wr = static_cast<uint32_t>(attributes.orig_attr.max_srq_wr);
    device.max_mr_size = attributes.orig_attr.max_mr_size;
    device.max_mr = static_cast<uint32_t>(attributes.orig_attr.max_mr);
    device.max_cq = static_cast<uint32_t>(attributes.orig_attr.max_cq);
    device.max_qp = static_cast<uint32_t>(attributes.orig_attr.max_qp);
    device.max_srq = static_cast<uint32_t>(attributes.orig_attr.max_srq);
    // Every device accepts work requests with one SGE, even if its driver reports none.
    device.max_sge = static_cast<uint32_t>(std::max(attributes.orig_attr.max_sge, 1));
    device.max_read_sge = static_cast<uint32_t>(std::max(attributes.orig_attr.max_sge_rd, 1));
    device.max_srq_sge = static_cast<uint32_t>(std::max(attributes.orig_attr.max_srq_sge, 1));
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

// With RPMA_FLUSH, an operator connects peers with different capabilities without changing the
// program.
rpma_flush_mode flush_mode_from_environment(const Call &call, bool has_native_flush) {
    const char *value = secure_getenv("RPMA_FLUSH");
    if (value == nullptr || std::strcmp(value, "auto") == 0)
        return RPMA_FLUSH_MODE_AUTO;
    if (std::strcmp(value, "emulated") == 0)
        return RPMA_FLUSH_MODE_EMULATED;
    if (std::strcmp(value, "native") != 0) {
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, call.function(),
                 "RPMA_FLUSH=%s is ignored: use auto, emulated or native",
                 Visible(value).chars);
        return RPMA_FLUSH_MODE_AUTO;
    }
    if (!has_native_flush)
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, call.function(),
                 "RPMA_FLUSH=native is not possible here: flushes are emulated");
    return RPMA_FLUSH_MODE_NATIVE;
}

} // namespace

bool rpma::is_odp_capable(const ibv_device_attr_ex &attributes) {
    constexpr uint32_t BOTH = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    return (attributes.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0 &&
           (attributes.odp_caps.per_transport_caps.rc_odp_caps & BOTH) == BOTH;
}

std::unique_ptr<rpma_peer> rpma_peer::create(Call &call, ibv_context &device) {
    ibv_device_attr_ex attributes;
    if (!query_device(call, device, attributes))
        return nullptr;
    Pd pd = alloc_pd(call, device, static_cast<uint32_t>(attributes.orig_attr.max_pd));
    if (!pd)
        return nullptr;

    const Capabilities capabilities = capabilities_of(attributes);
    RPMA_LOG(RPMA_LOG_LEVEL_INFO, call.function(),
             "native atomic write: %s, native flush: %s, on-demand paging: %s, remote atomics: "
             "%s",
             capabilities.atomic_write ? "yes" : "no", capabilities.flush ? "yes" : "no",
             capabilities.on_demand_paging ? "yes" : "no", capabilities.atomics ? "yes" : "no");
    return make<rpma_peer>(call, std::move(pd), capabilities,
                           flush_mode_from_environment(call, capabilities.flush));
}

bool rpma_peer::try_release(Call &call) {
    return flush_target_.try_release(call) && pd_.try_release(call);
}

unsigned rpma_peer::access_flags(int usage) const {
    constexpr int LOCAL_WRITE_USAGE = RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
                                      RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV |
                                      RPMA_MR_USAGE_ATOMIC;
    unsigned access = (usage & LOCAL_WRITE_USAGE) != 0 ? IBV_ACCESS_LOCAL_WRITE : 0;
    if ((usage & RPMA_MR_USAGE_READ_SRC) != 0)
        access |= IBV_ACCESS_REMOTE_READ;
    // iWARP: the response to a read is a write into the reader's memory.
    if ((usage & RPMA_MR_USAGE_READ_DST) != 0 &&
        pd_->context->device->transport_type == IBV_TRANSPORT_IWARP)
        access |= IBV_ACCESS_REMOTE_WRITE;
    if ((usage & RPMA_MR_USAGE_WRITE_DST) != 0)
        access |= IBV_ACCESS_REMOTE_WRITE;
    if ((usage & RPMA_MR_USAGE_ATOMIC) != 0)
        access |= IBV_ACCESS_REMOTE_ATOMIC;

    // The memory must be readable in any case: the other side may emulate flushes by reads.
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

unsigned rpma_peer::retry_access([[maybe_unused]] const Call &call, unsigned access,
                                 int error) const {
    if ((access & IBV_ACCESS_ON_DEMAND) != 0)
        return access;
#ifdef RPMA_NATIVE_FLUSH
    if (error == EINVAL && (access & IBV_ACCESS_FLUSH_PERSISTENT) != 0) {
        RPMA_LOG(RPMA_LOG_LEVEL_INFO, call.function(),
                 "the device cannot flush this memory persistently: registered without "
                 "persistent flush");
        return access & ~static_cast<unsigned>(IBV_ACCESS_FLUSH_PERSISTENT);
    }
#endif
    // FS-DAX can move memory: Linux does not pin it for a device, and registering it needs
    // on-demand paging.
    if (error == EOPNOTSUPP && device_.on_demand_paging)
        return access | IBV_ACCESS_ON_DEMAND;
    return access;
}

namespace {

// The usage bits of the flush types that the device serves natively on memory with that access.
uint8_t native_flush_usage([[maybe_unused]] unsigned access) {
    unsigned usage = 0;
#ifdef RPMA_NATIVE_FLUSH
    if ((access & IBV_ACCESS_FLUSH_GLOBAL) != 0)
        usage |= RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    if ((access & IBV_ACCESS_FLUSH_PERSISTENT) != 0)
        usage |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
#endif
    return static_cast<uint8_t>(usage);
}

} // namespace

std::unique_ptr<rpma_mr_local> rpma_peer::register_memory(Call &call, void *ptr,
                                                          std::size_t size, int usage) const {
    if ((usage & RPMA_MR_USAGE_ATOMIC) != 0 && !device_.atomics) {
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "usage has RPMA_MR_USAGE_ATOMIC, and %s has no remote atomics "
                  "(IBV_ATOMIC_NONE): register the memory without that",
                  ibv_get_device_name(pd_->context->device));
        return nullptr;
    }
    unsigned access = access_flags(usage);
    for (;;) {
        ibv_mr *region = ibv_reg_mr(&pd(), ptr, size, access);
        if (region != nullptr)
            return make<rpma_mr_local>(call, Mr(region), usage, native_flush_usage(access),
                                       served());
        const int error = errno;
        const unsigned next = retry_access(call, access, error);
        if (next == access) {
            RPMA_FAIL_ADVISING(
                call, RPMA_E_PROVIDER, error,
                advice_for(
                    {.step = MR,
                     .error = error,
                     .device = pd_->context,
                     .objects = device_.max_mr,
                     .sizes = {{"length", "max_mr_size", size,
                                device_.max_mr_size > 0 ? device_.max_mr_size : UINT64_MAX,
                                nullptr}},
                     .access = access})
                    .chars,
                "ibv_reg_mr(addr=0x%" PRIxPTR ", length=%zu, access=%s)",
                reinterpret_cast<uintptr_t>(ptr), size, access_text(access).chars);
            return nullptr;
        }
        access = next;
    }
}

bool rpma_peer::check_native_flush(Call &call) const {
    if (!device_.flush)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "cfg requires RPMA_FLUSH_MODE_NATIVE, and %s has no native flush: use "
                  "RPMA_FLUSH_MODE_AUTO",
                  ibv_get_device_name(pd_->context->device));
    return device_.flush;
}

uint8_t rpma_peer::served() const {
    return static_cast<uint8_t>(SERVES | (device_.flush ? SERVES_FLUSH : 0) |
                                (device_.atomic_write ? SERVES_ATOMIC_WRITE : 0));
}
