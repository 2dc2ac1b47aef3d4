// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// system.cc -- versions, the limits of this process, and what the kernel lacks for RDMA

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <regex>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "info.hh"

namespace {

constexpr int CAP_IPC_LOCK_BIT = 14; // linux/capability.h

std::string kernel_release() {
    utsname kernel;
    return uname(&kernel) == 0 ? kernel.release : "";
}

// The file of the libibverbs that is loaded.
std::string libibverbs() {
    Dl_info info = {};
    void *function = dlsym(RTLD_DEFAULT, "ibv_open_device");
    return function != nullptr && dladdr(function, &info) != 0 ? real_path(info.dli_fname) : "";
}

// rdma-core has no call for its version, but the name of the library's file ends with it:
// libibverbs.so.1.14.44.0 belongs to rdma-core 44.0 (CMakeLists.txt: rdma_library()).
std::string rdma_core(const std::string &file) {
    static const std::regex name(R"(libibverbs\.so\.\d+\.\d+\.(.+)$)");
    std::smatch parts;
    return std::regex_search(file, parts, name) ? parts[1].str() : "";
}

json limit_of(__rlimit_resource_t resource) {
    rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    (void)getrlimit(resource, &limit);
    const auto number = [](rlim_t value) {
        return value == RLIM_INFINITY ? json() : json(value);
    };
    return {{"soft", number(limit.rlim_cur)}, {"hard", number(limit.rlim_max)}};
}

// Whether the running kernel has a module, loaded or not.
bool has_module(const std::string &name) {
    if (access(("/sys/module/" + name).c_str(), F_OK) == 0)
        return true;
    std::ifstream list("/lib/modules/" + kernel_release() + "/modules.dep");
    for (std::string line; std::getline(list, line);)
        if (line.substr(0, line.find(':')).find("/" + name + ".ko") != std::string::npos)
            return true;
    return false;
}

} // namespace

std::string library_version() {
    const uint32_t version = rpma_version();
    return fmt::format("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff);
}

json versions() {
    const std::string file = libibverbs();
    return {{"librpma", library_version()},
            {"rdma_core", null_if_empty(rdma_core(file))},
            {"libibverbs", null_if_empty(file)},
            {"kernel", kernel_release()}};
}

// ib_umem_get() of the kernel applies the limit unless the process has CAP_IPC_LOCK.
bool may_lock_all() {
    static const std::string key = "CapEff:";
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(key))
            return (std::stoull(line.substr(key.size()), nullptr, 16) >> CAP_IPC_LOCK_BIT &
                    1) != 0;
    return false;
}

json limits() {
    json locked = limit_of(RLIMIT_MEMLOCK);
    locked["unlimited"] =
        may_lock_all() || locked["soft"].is_null()
            ? yes()
            : no(fmt::format("this process may lock {} KiB in all, and registered memory is "
                             "locked",
                             locked["soft"].get<uint64_t>() / 1024),
                 "raise it with 'ulimit -l', LimitMEMLOCK= of systemd or "
                 "/etc/security/limits.conf");
    return {{"locked_memory", locked}, {"descriptors", limit_of(RLIMIT_NOFILE)}};
}

json connection_manager() {
    static const std::string node = "/dev/infiniband/rdma_cm";
    if (access(node.c_str(), R_OK | W_OK) == 0)
        return yes();
    if (errno == ENOENT)
        return no("there is no " + node + ", without which nothing connects",
                  "load the module: modprobe rdma_ucm");
    return no(node + ": " + std::strerror(errno), LET_USER);
}

json no_device(const std::string &asked) {
    std::string why =
        "the kernel has no RDMA device, and no module rdma_rxe (soft-RoCE) stands "
        "in /lib/modules";
    std::string help = "on a machine with the kernel of its distribution: modprobe rdma_rxe; "
                       "rdma link add rxe0 type rxe netdev NETDEV";
    if (access("/sys/class/infiniband", F_OK) == 0 &&
        access("/sys/class/infiniband_verbs/abi_version", F_OK) != 0) {
        why = "the module of the kernel for RDMA in programs is not loaded";
        help = "modprobe ib_uverbs";
    } else if (has_module("rdma_rxe")) {
        why = "the kernel has no RDMA device that libibverbs can use";
        help = "soft-RoCE makes one of a network device: modprobe rdma_rxe; "
               "rdma link add rxe0 type rxe netdev NETDEV";
    }
    return no(asked.empty() ? why : fmt::format("there is no device {}: {}", asked, why), help);
}
