// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// causes.cc -- the table of causes and advice

#include "verbs/causes.hh"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <infiniband/verbs.h>
#include <iterator>
#include <linux/capability.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/visible.hh"

// Not declared in any header of the C library.
extern "C" int capget(cap_user_header_t header, cap_user_data_t data);

namespace rpma {

namespace {

using Advise = void(Text &advice, const Failure &failure);

rlim_t limit_of(decltype(RLIMIT_MEMLOCK) resource) {
    rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    (void)getrlimit(resource, &limit);
    return limit.rlim_cur;
}

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

// Linux, drivers/infiniband/core/umem.c, ib_umem_get(): ENOMEM beyond RLIMIT_MEMLOCK without
// CAP_IPC_LOCK.
void out_of_memory(Text &advice, const Failure &failure) {
    const rlim_t limit = limit_of(RLIMIT_MEMLOCK);
    if (failure.step != PD && failure.error == ENOMEM && limit != RLIM_INFINITY &&
        !has_capability(CAP_IPC_LOCK))
        advice.add("; this process may lock %" PRIu64 " KiB (RLIMIT_MEMLOCK): raise it with "
                   "'ulimit -l' or LimitMEMLOCK=",
                   static_cast<uint64_t>(limit) / 1024);
    const char *name = failure.step == PD   ? "max_pd"
                       : failure.step == MR ? "max_mr"
                       : failure.step == CQ ? "max_cq"
                       : failure.step == QP ? "max_qp"
                                            : "max_srq";
    if (failure.objects > 0)
        advice.add("; the device has %s %u for all programs ('rdma resource')", name,
                   failure.objects);
}

// rdma-core, librdmacm/cma.c, rdma_create_qp_ex(): EINVAL.
void other_device(Text &advice, const Failure &failure) {
    if (failure.id_device == failure.device)
        return;
    if (failure.id_device->device == failure.device->device)
        advice.add(
            "; the peer is on another context of %s than librdmacm: create it on that of "
            "rpma_utils_get_ibv_context()",
            ibv_get_device_name(failure.device->device));
    else
        advice.add("; the connection is on device %s, the peer on %s: listen on an address of "
                   "the peer's device",
                   ibv_get_device_name(failure.id_device->device),
                   ibv_get_device_name(failure.device->device));
}

// No attribute of a device holds its limit of inline data.
void inline_data(Text &advice, const Failure &failure) {
    if (failure.inline_size > RPMA_ATOMIC_WRITE_ALIGNMENT)
        advice.add("; if the device allows fewer inline bytes, reduce it with "
                   "rpma_conn_cfg_set_inline_size()");
}

// Linux, drivers/infiniband/core/rdma_core.c: RDMACG_RESOURCE_HCA_OBJECT; librdmacm allocates a
// protection domain when it first uses a device.
void cgroup_objects(Text &advice, const Failure &) {
    advice.add("; the rdma cgroup of this process may allow no more objects (hca_object in "
               "rdma.max), or the device has none left");
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

void files_of_process(Text &advice, const Failure &) {
    advice.add("; this process may open %" PRIu64 " files (RLIMIT_NOFILE): raise it with "
               "'ulimit -n' or LimitNOFILE=",
               static_cast<uint64_t>(limit_of(RLIMIT_NOFILE)));
}

void files_of_machine(Text &advice, const Failure &) {
    advice.add("; all programs of this machine together have too many files open (sysctl "
               "fs.file-max)");
}

// rdma-core, librdmacm/cma.c, ucma_alloc_id() discards the reason why its channel failed to
// open.
void rdma_cm_file(Text &advice, const Failure &) {
    advice.add("; /dev/infiniband/rdma_cm may not have opened: it needs the module rdma_ucm, "
               "permission, and one of the %" PRIu64
               " files of this process (RLIMIT_NOFILE, 'ulimit -n')",
               static_cast<uint64_t>(limit_of(RLIMIT_NOFILE)));
}

void port_in_use(Text &advice, const Failure &) {
    advice.add("; 'rdma resource show cm_id' names the program that has the port");
}

struct Source {
    uint16_t port;
    bool is_any;
};

Source source_of(const sockaddr *address) {
    if (address == nullptr)
        return {0, true};
    if (address->sa_family == AF_INET) {
        const auto *in = reinterpret_cast<const sockaddr_in *>(address);
        return {ntohs(in->sin_port), in->sin_addr.s_addr == INADDR_ANY};
    }
    const auto *in6 = reinterpret_cast<const sockaddr_in6 *>(address);
    return {ntohs(in6->sin6_port),
            std::memcmp(&in6->sin6_addr, &in6addr_any, sizeof(in6addr_any)) == 0};
}

// Linux, drivers/infiniband/core: rdma_translate_ip() of addr.c, for an address that no
// interface has; cma_check_port() and cma_alloc_any_port() of cma.c, for ports.
void address_not_available(Text &advice, const Failure &failure) {
    const auto [port, is_any] = source_of(failure.source);
    advice.add(is_any ? ";" : "; is the %saddress one of this machine ('ip addr')? If it is,",
               failure.step == ADDRESS ? "source " : "");
    advice.add(port == 0
                   ? " no local port is free (sysctl net.ipv4.ip_local_port_range)"
                   : " another program uses the port: 'rdma resource show cm_id' names it");
}

// Linux, drivers/infiniband/core/cma.c, cma_use_port().
void privileged_port(Text &advice, const Failure &failure) {
    const uint16_t port = source_of(failure.source).port;
    if (port > 0 && port < 1024)
        advice.add("; ports below 1024 need CAP_NET_BIND_SERVICE, which this process lacks");
}

void no_route(Text &advice, const Failure &) {
    advice.add("; 'ip route get ADDRESS' shows the route that this machine uses");
}

void no_response(Text &advice, const Failure &) {
    advice.add("; is the other machine up? rpma_conn_cfg_set_timeout() sets a longer timeout");
}

// The list is last, because it may be long.
void no_device(Text &advice, const Failure &failure) {
    int count = 0;
    ibv_device **devices = ibv_get_device_list(&count);
    if (count == 0) {
        advice.add("; RDMA devices of this machine: none that libibverbs can use; 'rdma link' "
                   "shows those of the kernel");
    } else if ((failure.step & (BIND | ADDRESS)) != 0) {
        // Linux, drivers/infiniband/core/uverbs_cmd.c: RDMACG_RESOURCE_HCA_HANDLE; librdmacm
        // discards the reason why a device failed to open.
        advice.add("; 'rdma link' shows which network device each RDMA device has; if one has "
                   "the address, this process may not open it: the permissions of "
                   "/dev/infiniband, or its rdma cgroup (hca_handle in rdma.max)");
        advice.add("; RDMA devices of this machine:");
    } else {
        advice.add(
            "; 'rdma link' shows which network device each RDMA device has; RDMA devices "
            "of this machine:");
    }
    for (int i = 0; i < count; i++)
        if (!advice.add_member(Visible(ibv_get_device_name(devices[i])).chars))
            break;
    if (devices != nullptr)
        ibv_free_device_list(devices);
}

void unknown_service(Text &advice, const Failure &) {
    advice.add("; /etc/services has no such name: give the number of the port");
}

void unknown_name(Text &advice, const Failure &failure) {
    if (failure.family == AF_UNSPEC)
        advice.add("; 'getent ahosts %s' repeats the lookup", Visible(failure.name).chars);
    else
        advice.add(
            "; it needs an address of the family of the source address: 'getent ahosts%s "
            "%s' repeats the lookup",
            failure.family == AF_INET6 ? "v6" : "v4", Visible(failure.name).chars);
}

// Limits of InfiniBand and RoCE; those of iWARP are larger. Linux, include/rdma/ib_cm.h:
// IB_CM_REQ_PRIVATE_DATA_SIZE without the header of the RDMA CM, IB_CM_REP_PRIVATE_DATA_SIZE,
// IB_CM_REJ_PRIVATE_DATA_SIZE.
void too_much_data(Text &advice, const Failure &failure) {
    if (failure.step == REJECT && failure.data > 148)
        advice.add(
            "; InfiniBand and RoCE carry 148 bytes of private data with a rejection: send "
            "less");
    else if (failure.step != REJECT && failure.data > (failure.step == CONNECT ? 56u : 196u))
        advice.add(
            "; InfiniBand and RoCE carry 56 bytes of private data with a request and 196 "
            "with the reply: send less");
}

// lab lost: a client that exits before its request is accepted
void client_exited(Text &advice, const Failure &) {
    advice.add("; the client may have timed out or exited: serve the next one");
}

// The first matching row that yields advice is used.
constexpr struct {
    unsigned steps;
    int errors[5];
    Advise *advise;
} causes[] = {
    {QP, {EINVAL}, other_device},
    {MR | CQ | QP | SRQ, {EINVAL, ENOMEM, E2BIG, ENOSPC}, too_large},
    {QP, {EINVAL}, inline_data},
    {PD | MR | CQ | QP | SRQ, {ENOMEM, ENOSPC}, out_of_memory},
    {PD | MR | CQ | QP | SRQ | BIND | ADDRESS, {EAGAIN}, cgroup_objects},
    {MR, {EFAULT}, not_mapped},
    {MR, {EOPNOTSUPP}, fs_dax},
    {~0u, {EMFILE}, files_of_process},
    {~0u, {ENFILE}, files_of_machine},
    {ID_WITHOUT_CHANNEL, {ENOMEM}, rdma_cm_file},
    {EVENT_CHANNEL, {ENOENT, EACCES, EPERM, ENODEV}, rdma_cm_file},
    {NAME, {EAI_SERVICE}, unknown_service},
    {NAME, {EAI_NONAME, EAI_AGAIN, EAI_FAIL, EAI_NODATA, EAI_ADDRFAMILY}, unknown_name},
    {BIND | ADDRESS, {EADDRINUSE}, port_in_use},
    {BIND | ADDRESS, {EADDRNOTAVAIL}, address_not_available},
    {BIND | ADDRESS, {EACCES}, privileged_port},
    {ADDRESS | ROUTE | CONNECT, {EHOSTUNREACH, ENETUNREACH}, no_route},
    {ADDRESS, {EACCES}, no_route}, // a route of the type "prohibit"
    {ADDRESS | ROUTE, {ETIMEDOUT}, no_response},
    {ID | ID_WITHOUT_CHANNEL | BIND | ADDRESS | ROUTE | DEVICE, {ENODEV}, no_device},
    {CONNECT | ACCEPT | REJECT, {EINVAL}, too_much_data},
    {ACCEPT | REJECT, {EINVAL}, client_exited},
};

} // namespace

Text advice_for(const Failure &failure) {
    Text advice;
    for (const auto &[steps, errors, advise] : causes) {
        if (advice.length > 0)
            break;
        if ((steps & failure.step) != 0 && failure.error != 0 &&
            std::find(errors, std::end(errors), failure.error) != std::end(errors))
            advise(advice, failure);
    }
    return advice;
}

} // namespace rpma
