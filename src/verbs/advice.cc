// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// advice.cc -- the advice for failures of libibverbs: memory, sizes, devices of queue pairs

#include "verbs/advice.hh"

#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

// Not declared in any header of the C library.
extern "C" int capget(cap_user_header_t header, cap_user_data_t data);

namespace rpma {

uint64_t process_limit(int resource) {
    rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    (void)getrlimit(resource, &limit);
    return limit.rlim_cur;
}

namespace {

// Capabilities are effective in the initial user namespace only, whose link has this number:
// Linux, include/linux/proc_ns.h, PROC_USER_INIT_INO.
bool has_capability(unsigned capability) {
    static constexpr char INITIAL[] = "user:[4026531837]";
    char space[64];
    const ssize_t length = readlink("/proc/self/ns/user", space, sizeof(space));
    if (length > 0 && std::strncmp(space, INITIAL, sizeof(INITIAL) - 1) != 0)
        return false;
    __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    return capget(&header, data) == 0 &&
           (data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

} // namespace

void too_large(Text &advice, const Failure &failure) {
    for (const auto &size : failure.sizes)
        if (size.requested > size.limit) {
            advice.add("; the device has %s %" PRIu64 ", %s is %" PRIu64, size.attribute,
                       size.limit, size.parameter, size.requested);
            advice.add(size.setter != nullptr ? ": reduce it with %s()" : ": reduce it",
                       size.setter);
            return;
        }
}

void no_entries(Text &advice, const Failure &failure) {
    const auto &size = failure.sizes[0];
    if (size.requested == 0)
        advice.add("; %s is 0: raise it with %s()", size.parameter, size.setter);
}

namespace {

// libibverbs reads these variables when it lists the devices (rdma-core 56,
// libibverbs/init.c, ibverbs_init()). A program may call ibv_fork_init() instead, which no
// function of all releases reports.
bool has_fork_protection() {
    return std::getenv("RDMAV_FORK_SAFE") != nullptr || std::getenv("IBV_FORK_SAFE") != nullptr;
}

const char *attribute_of(Step step) {
    return step == PD   ? "max_pd"
           : step == MR ? "max_mr"
           : step == CQ ? "max_cq"
           : step == QP ? "max_qp"
                        : "max_srq";
}

// Linux, drivers/infiniband/core/umem.c, ib_umem_get(): ENOMEM beyond RLIMIT_MEMLOCK without
// CAP_IPC_LOCK, EPERM if the limit is 0.
void locked_memory(Text &advice) {
    const rlim_t limit = process_limit(RLIMIT_MEMLOCK);
    if (limit != RLIM_INFINITY && !has_capability(CAP_IPC_LOCK))
        advice.add("; this process may lock %" PRIu64 " KiB (RLIMIT_MEMLOCK): raise it with "
                   "'ulimit -l' or LimitMEMLOCK=",
                   static_cast<uint64_t>(limit) / 1024);
}

void device_objects(Text &advice, const Failure &failure) {
    if (failure.objects > 0)
        advice.add("; the device has %s %u for all programs ('rdma resource')",
                   attribute_of(failure.step), failure.objects);
}

} // namespace

void no_locked_memory(Text &advice, const Failure &) {
    if (process_limit(RLIMIT_MEMLOCK) == 0)
        locked_memory(advice);
}

void no_pd(Text &advice, const Failure &failure) {
    device_objects(advice, failure);
    advice.add("; or this machine or its cgroup is out of memory");
}

// rdma-core 56, libibverbs/memory.c, ibv_madvise_range(): fork protection calls madvise() for
// the memory of regions and queues, which may need mappings. Queues are mappings as well.
void out_of_memory(Text &advice, const Failure &failure) {
    locked_memory(advice);
    if (has_fork_protection())
        advice.add("; fork protection (RDMAV_FORK_SAFE) needs mappings for registered memory: "
                   "raise vm.max_map_count");
    device_objects(advice, failure);
    advice.add("; or this machine is out of memory%s",
               has_fork_protection() ? "" : ", or this process of mappings (vm.max_map_count)");
}

void no_objects(Text &advice, const Failure &failure) {
    device_objects(advice, failure);
}

// rdma-core, librdmacm/cma.c, rdma_create_qp_ex(): EINVAL.
void other_context(Text &advice, const Failure &failure) {
    if (failure.id_device != failure.device &&
        failure.id_device->device == failure.device->device)
        advice.add(
            "; the peer is on another context of %s than librdmacm: create it on that of "
            "rpma_utils_get_ibv_context()",
            ibv_get_device_name(failure.device->device));
}

namespace {

void other_device(Text &advice, const Failure &failure, const char *remedy) {
    if (failure.id_device != failure.device)
        advice.add("; the connection is on device %s, the peer on %s: %s",
                   ibv_get_device_name(failure.id_device->device),
                   ibv_get_device_name(failure.device->device), remedy);
}

} // namespace

void other_route(Text &advice, const Failure &failure) {
    other_device(advice, failure, "use a peer of the same device");
}

void other_listener(Text &advice, const Failure &failure) {
    other_device(advice, failure, "listen on an address of the peer's device");
}

// No attribute of a device holds its limit of inline data.
void inline_data(Text &advice, const Failure &failure) {
    if (failure.inline_size > RPMA_ATOMIC_WRITE_ALIGNMENT)
        advice.add("; if the device allows fewer inline bytes, reduce it with "
                   "rpma_conn_cfg_set_inline_size()");
}

// Linux, drivers/infiniband/core/cm.c, cm_init_qp_init_attr(): EINVAL for a request whose
// client has gone. The device may also refuse the inline data, for every client.
void client_gone_at_setup(Text &advice, const Failure &failure) {
    advice.add("%s", CLIENT_GONE);
    if (failure.inline_size > RPMA_ATOMIC_WRITE_ALIGNMENT)
        advice.add("; if this fails for every client, the device allows fewer inline bytes");
}

// Linux, mm/gup.c, check_vma_flags().
void not_mapped(Text &advice, const Failure &failure) {
    constexpr unsigned WRITES =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    advice.add(
        (failure.access & WRITES) != 0
            ? "; the memory is not mapped, is read-only, or is a shared mapping of a file "
              "on disk"
            : "; the memory is not mapped");
}

void fs_dax(Text &advice, const Failure &failure) {
    if ((failure.access & IBV_ACCESS_ON_DEMAND) == 0)
        advice.add("; the memory of files on FS-DAX needs on-demand paging, which %s does not "
                   "have: use device DAX",
                   ibv_get_device_name(failure.device->device));
}

} // namespace rpma
