// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// system.cc -- versions, the limits of this process, and missing kernel modules

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "info.hh"
#include "visible.hh"

namespace {

constexpr int CAP_IPC_LOCK_BIT = 14; // linux/capability.h

std::string kernel_release() {
    utsname kernel;
    return uname(&kernel) == 0 ? kernel.release : "";
}

// The path of the loaded libibverbs.
std::string libibverbs() {
    Dl_info info = {};
    void *function = dlsym(RTLD_DEFAULT, "ibv_open_device");
    return function != nullptr && dladdr(function, &info) != 0
               ? std::filesystem::canonical(info.dli_fname).string()
               : "";
}

// rdma-core has no function that returns its version, but the name of the file ends with it:
// libibverbs.so.1.14.44.0 belongs to rdma-core 44.0 (CMakeLists.txt: rdma_library()).
std::string rdma_core(const std::string &file) {
    const std::string name = base_name(file);
    int begin = 0;
    (void)std::sscanf(name.c_str(), "libibverbs.so.%*u.%*u.%n", &begin);
    return begin == 0 ? "" : name.substr(static_cast<size_t>(begin));
}

Json limit_of(__rlimit_resource_t resource) {
    rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    (void)getrlimit(resource, &limit);
    const auto number = [](rlim_t value) {
        return value == RLIM_INFINITY ? Json() : Json(value);
    };
    return {{"soft", number(limit.rlim_cur)}, {"hard", number(limit.rlim_max)}};
}

// Returns true if the running kernel has the module, loaded or not.
bool has_module(const std::string &name) {
    if (access_error("/sys/module/" + name, F_OK) == 0)
        return true;
    for (const auto &line : read_lines("/lib/modules/" + kernel_release() + "/modules.dep"))
        if (line.substr(0, line.find(':')).find("/" + name + ".ko") != std::string::npos)
            return true;
    return false;
}

} // namespace

std::string library_version() {
    const uint32_t version = rpma_version();
    return fmt::format("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff);
}

Json versions() {
    const std::string file = libibverbs();
    return {{"librpma", library_version()},
            {"rdma_core", null_if_empty(rdma_core(file))},
            {"libibverbs", null_if_empty(file)},
            {"kernel", kernel_release()}};
}

// ib_umem_get() of the kernel applies the limit unless the process has CAP_IPC_LOCK.
bool has_cap_ipc_lock() {
    static const std::string key = "CapEff:";
    for (const std::string &line : read_lines("/proc/self/status"))
        if (line.starts_with(key))
            return (std::stoull(line.substr(key.size()), nullptr, 16) >> CAP_IPC_LOCK_BIT &
                    1) != 0;
    return false;
}

Json limits() {
    Json locked = limit_of(RLIMIT_MEMLOCK);
    locked["unlimited"] =
        has_cap_ipc_lock() || locked["soft"].is_null()
            ? yes()
            : no(fmt::format("this process may lock {} KiB in all, and registered memory is "
                             "locked",
                             locked["soft"].get<uint64_t>() / 1024),
                 "raise it with 'ulimit -l', LimitMEMLOCK= of systemd or "
                 "/etc/security/limits.conf");
    return {{"locked_memory", locked}, {"descriptors", limit_of(RLIMIT_NOFILE)}};
}

Json defaults() {
    const rpma::conn_cfg connection;
    const rpma::srq_cfg queue;
    return {{"connection",
             {{"cq_size", connection.get_cq_size()},
              {"rcq_size", connection.get_rcq_size()},
              {"sq_size", connection.get_sq_size()},
              {"rq_size", connection.get_rq_size()},
              {"max_sge", connection.get_max_sge()},
              {"inline_size", connection.get_inline_size()},
              {"retry_count", connection.get_retry_count()},
              {"rnr_retry_count", connection.get_rnr_retry_count()},
              {"timeout_ms", connection.get_timeout()},
              {"ack_timeout_ms", connection.get_ack_timeout()}}},
            {"shared_receive_queue",
             {{"rq_size", queue.get_rq_size()},
              {"rcq_size", queue.get_rcq_size()},
              {"max_sge", queue.get_max_sge()}}}};
}

Json connection_manager() {
    static const std::string node = "/dev/infiniband/rdma_cm";
    const int error = access_error(node, R_OK | W_OK);
    if (error == 0)
        return yes();
    if (error == ENOENT)
        return no("there is no " + node + ", which connections need",
                  "load the module: modprobe rdma_ucm; in a container, add the devices of "
                  "/dev/infiniband");
    return no(node + ": " + std::strerror(error), GRANT_ACCESS);
}

Json no_device(const std::string &name) {
    std::string why =
        "the kernel has no RDMA device, and /lib/modules has no module rdma_rxe (soft-RoCE)";
    std::string help = "on a machine with the kernel of its distribution: modprobe rdma_rxe; "
                       "rdma link add rxe0 type rxe netdev NETDEV";
    if (access_error("/sys/class/infiniband", F_OK) == 0 &&
        access_error("/sys/class/infiniband_verbs/abi_version", F_OK) != 0) {
        why = "the kernel module for RDMA in programs is not loaded";
        help = "modprobe ib_uverbs";
    } else if (has_module("rdma_rxe")) {
        why = "the kernel has no RDMA device that libibverbs can use";
        help = "soft-RoCE creates one on a network device: modprobe rdma_rxe; "
               "rdma link add rxe0 type rxe netdev NETDEV";
    }
    return no(name.empty() ? why : fmt::format("there is no device {}: {}", escaped(name), why),
              help);
}
