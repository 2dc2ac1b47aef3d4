// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// advice_cm.cc -- the advice for failures of librdmacm: files, addresses, devices, private data

#include "verbs/advice.hh"

#include <cinttypes>
#include <cstring>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include "base/visible.hh"

namespace rpma {

void files_of_process(Text &advice, const Failure &) {
    advice.add("; this process may open %" PRIu64 " files (RLIMIT_NOFILE): raise it with "
               "'ulimit -n' or LimitNOFILE=",
               process_limit(RLIMIT_NOFILE));
}

// rdma-core, librdmacm/cma.c, ucma_alloc_id() discards the reason why its channel failed to
// open.
void rdma_cm_file(Text &advice, const Failure &) {
    advice.add("; /dev/infiniband/rdma_cm may not have opened: it needs the module rdma_ucm, "
               "permission, in a container an entry in its list of devices, and one of the "
               "%" PRIu64 " files of this process (RLIMIT_NOFILE, 'ulimit -n')",
               process_limit(RLIMIT_NOFILE));
}

namespace {

struct LocalPort {
    uint16_t port;
    bool is_any;
};

LocalPort source_of(const sockaddr *address) {
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

} // namespace

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

namespace {

// Linux, drivers/infiniband/core/uverbs_cmd.c: RDMACG_RESOURCE_HCA_HANDLE; librdmacm discards
// the reason why a device failed to open.
#define MAY_NOT_OPEN                                                         \
    "this process may not open it: the permissions of /dev/infiniband, the " \
    "container's list of devices, or the rdma cgroup (hca_handle in rdma.max)"

// The list is last, because it may be long.
void list_devices(Text &advice, const char *how_to_find) {
    int count = 0;
    ibv_device **devices = ibv_get_device_list(&count);
    if (count == 0)
        advice.add("; RDMA devices of this machine: none that libibverbs can use; 'rdma link' "
                   "shows those of the kernel");
    else
        advice.add("%s; RDMA devices of this machine:", how_to_find);
    for (int i = 0; i < count; i++)
        if (!advice.add_member(Visible(ibv_get_device_name(devices[i])).chars))
            break;
    if (devices != nullptr)
        ibv_free_device_list(devices);
}

} // namespace

void no_device(Text &advice, const Failure &) {
    list_devices(advice, "; 'rdma link' shows which network device each RDMA device has");
}

void no_device_of_address(Text &advice, const Failure &) {
    list_devices(advice,
                 "; 'rdma link' shows which network device each RDMA device has; if one "
                 "has the address, " MAY_NOT_OPEN);
}

// The device is that of the route, not of the address.
void no_device_of_route(Text &advice, const Failure &) {
    list_devices(advice,
                 "; 'ip route get ADDRESS' shows the network device of the route, 'rdma "
                 "link' the RDMA device of each; if it has one, " MAY_NOT_OPEN);
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

namespace {

// Linux, include/rdma/ib_cm.h: IB_CM_REQ_PRIVATE_DATA_SIZE without the header of the RDMA CM,
// IB_CM_REP_PRIVATE_DATA_SIZE, IB_CM_REJ_PRIVATE_DATA_SIZE.
constexpr uint32_t MAX_REQUEST_DATA = 56, MAX_REPLY_DATA = 196, MAX_REJECTION_DATA = 148;

void reduce_data(Text &advice) {
    advice.add("; InfiniBand and RoCE carry %u bytes of private data with a request and %u "
               "with the reply: send less",
               MAX_REQUEST_DATA, MAX_REPLY_DATA);
}

} // namespace

void too_much_request_data(Text &advice, const Failure &failure) {
    if (failure.data > MAX_REQUEST_DATA)
        reduce_data(advice);
}

void too_much_reply_data(Text &advice, const Failure &failure) {
    if (failure.data > MAX_REPLY_DATA)
        reduce_data(advice);
}

void too_much_rejection_data(Text &advice, const Failure &failure) {
    if (failure.data > MAX_REJECTION_DATA)
        advice.add(
            "; InfiniBand and RoCE carry %u bytes of private data with a rejection: send "
            "less",
            MAX_REJECTION_DATA);
}

} // namespace rpma
