// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// registration.cc -- tries to register memory with a device, for each usage

#include <cerrno>
#include <cstring>

#include "info.hh"

namespace {

// From libibverbs/verbs.h of rdma-core; the headers of Debian 12 lack the name.
constexpr unsigned ACCESS_FLUSH_PERSISTENT = 1U << 9;
constexpr unsigned ACCESS =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr unsigned ON_DEMAND = ACCESS | IBV_ACCESS_ON_DEMAND;
constexpr int PLAIN = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
                      RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND |
                      RPMA_MR_USAGE_RECV;

// The memory to register, and the device's support of on-demand paging.
struct Trial {
    rpma::peer &peer;
    const memory &tried;
    bool paging;

    // Returns 0, or the error number of the provider.
    int registration_error(unsigned access) const {
        const Owned<ibv_mr, ibv_dereg_mr> region(
            ibv_reg_mr(peer.get_ibv_pd(), tried.base, tried.mapped, access));
        return region ? 0 : errno;
    }
    std::string help_for(int error) const;
    Json attempt(int error) const;
    Json usage(int usage) const;
    Json persistent_flush(const Json &device, const Json &found) const;
};

std::string Trial::help_for(int error) const {
    if (error == ENOMEM && !has_cap_ipc_lock())
        return "raise the limit of locked memory: ulimit -l, or LimitMEMLOCK= of systemd";
    if (error == EOPNOTSUPP && tried.kind == MemoryKind::fsdax && !paging)
        return "use device DAX, or a device with on-demand paging";
    if (error == EFAULT && tried.kind == MemoryKind::file)
        return "Linux 6.5 and later pin no page of the page cache for writing: use tmpfs, "
               "FS-DAX or device DAX";
    return "see rpma_mr_reg(3) for the requirements of devices";
}

Json Trial::attempt(int error) const {
    if (error == 0)
        return yes();
    return no(fmt::format("the device refuses it: {} ({})", std::strerror(error), error),
              help_for(error));
}

// Calls rpma_mr_reg() as a program does.
Json Trial::usage(int usage) const {
    try {
        const rpma::mr_local region(peer, tried.base, tried.mapped, usage);
        return yes();
    } catch (const rpma::error &error) {
        return attempt(error.provider_error() != 0 ? error.provider_error() : ENOMEM);
    }
}

// The result for persistent flushes: does flushed data survive a power failure in this memory?
Json Trial::persistent_flush(const Json &device, const Json &found) const {
    const bool saved =
        found.at("native_persistent_flush") == true || tried.domain == "cpu_cache";
    const std::string driver = text_at(device, "driver");
    if (tried.kind == MemoryKind::devdax ? !tried.nvdimm : !tried.map_sync)
        return tried.persistence();
    if (!is_yes(found.at("usage_persistent")))
        return no("the memory cannot be registered for it",
                  "see the result of the registration");
    if (saved && !tried.is_cxl)
        return yes();
    // soft-RoCE and soft-iWARP copy arriving data with the processor (rxe_mr.c, siw_qp_rx.c of
    // the kernel): the data remains in caches, which only a native flush writes back.
    if (!saved && (driver == "rdma_rxe" || driver == "siw"))
        return no("the driver writes into the caches of the processor, which an emulated flush "
                  "does not write back",
                  "a program on this machine that persists the data, or native flush: "
                  "soft-RoCE of Linux 6.2 or later, and a librpma built for it");
    if (tried.is_cxl)
        return unknown_persistence();
    return unknown("an emulated flush is persistent only where writes of the device bypass the "
                   "caches; no program can detect that",
                   "switch DDIO off for the device, and state it with "
                   "rpma_peer_cfg_set_direct_write_to_pmem(3)");
}

Json remarks(const Json &device, bool paged, bool grants_native) {
    Json found = Json::array();
    if (paged && text_at(device, "driver") == "rdma_rxe")
        found.push_back("rdma_rxe pages this memory on demand, and misplaces transfers that do "
                        "not begin at a multiple of 4,096: align all of them, and set the MTU "
                        "of the network device to 4,200 or more");
    if (grants_native)
        found.push_back("the other side must use native flushes: advertise those of this side "
                        "with rpma_peer_cfg_set_served_by(3), and do not set "
                        "RPMA_FLUSH=emulated there");
    return found;
}

} // namespace

Json registration(const Json &device, rpma::peer &peer, const memory &tried) {
    const Json &operations = device.at("operations");
    const Trial trial = {peer, tried, is_yes(operations.at("on_demand_paging"))};
    Json found = {
        {"usage_plain", trial.usage(PLAIN)},
        {"usage_visibility", trial.usage(PLAIN | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)},
        {"usage_persistent", trial.usage(PLAIN | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)}};
    const int pinned = trial.registration_error(ACCESS);
    found["pinned"] = trial.attempt(pinned);
    found["on_demand"] = trial.paging ? trial.attempt(trial.registration_error(ON_DEMAND))
                                      : no("the device has no on-demand paging",
                                           "see the result of on-demand paging");
    // rpma_mr_reg() uses on-demand paging only for memory that the device cannot pin.
    const bool paged = pinned == EOPNOTSUPP && is_yes(found["usage_plain"]);
    const bool grants_native =
        is_yes(operations.at("native_flush")) &&
        trial.registration_error((paged ? ON_DEMAND : ACCESS) | ACCESS_FLUSH_PERSISTENT) == 0;
    found["native_persistent_flush"] = grants_native;
    found["persistent_flush"] = trial.persistent_flush(device, found);
    found["remarks"] = remarks(device, paged, grants_native);
    return found;
}
