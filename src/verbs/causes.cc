// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// causes.cc -- the table of causes and advice

#include "verbs/causes.hh"

#include <algorithm>
#include <cerrno>
#include <infiniband/verbs.h>
#include <iterator>
#include <netdb.h>
#include <netinet/in.h>

#include "verbs/advice.hh"

namespace rpma {

namespace {

constexpr unsigned OBJECT = MR | CQ | QP | SRQ;

// A text, or a function that adds one.
struct Advice {
    constexpr Advice(const char *chars) : text(chars) {}
    constexpr Advice(Advise *function) : advise(function) {}
    const char *text = nullptr;
    Advise *advise = nullptr;
};

// rdma-core 56, libibverbs/memory.c, ibv_madvise_range(): without RDMAV_HUGEPAGES_SAFE, fork
// protection calls madvise() for a part of a huge page, which Linux refuses.
constexpr char HUGE_PAGES[] = "; with fork protection (RDMAV_FORK_SAFE or ibv_fork_init()), "
                              "memory on huge pages also needs RDMAV_HUGEPAGES_SAFE=1";
// Linux, drivers/infiniband/core/rdma_core.c: RDMACG_RESOURCE_HCA_OBJECT; librdmacm allocates a
// protection domain when it first uses a device.
constexpr char CGROUP[] = "; the rdma cgroup of this process may allow no more objects "
                          "(hca_object in rdma.max), or the device has none left";
constexpr char FILES_OF_MACHINE[] =
    "; all programs of this machine together have too many files open (sysctl fs.file-max)";
constexpr char UNKNOWN_SERVICE[] =
    "; /etc/services has no such name: give the number of the port";
constexpr char PORT_IN_USE[] =
    "; 'rdma resource show cm_id' names the program that has the port";
// siw listens at a TCP socket (Linux, drivers/infiniband/sw/siw/siw_cm.c, siw_create_listen()).
constexpr char TCP_PORT_IN_USE[] =
    "; 'rdma resource show cm_id' or 'ss -tlnp' names the program that has the port";
constexpr char NO_ROUTE[] = "; 'ip route get ADDRESS' shows the route that this machine uses";
constexpr char NO_REPLY[] = "; is the other machine up?";
constexpr char NO_REPLY_IN_TIME[] =
    "; is the other machine up? rpma_conn_cfg_set_timeout() sets a longer timeout";
// Only InfiniBand queries a path (Linux, drivers/infiniband/core/cma.c, rdma_resolve_route()).
constexpr char NO_PATH[] = "; is the other machine up, and does the subnet manager reply "
                           "('sminfo')? rpma_conn_cfg_set_timeout() sets a longer timeout";
constexpr char NO_TCP_LISTENER[] = "; does the server listen on that address and port?";
constexpr char NO_TCP_REPLY[] =
    "; is the other machine up, and does a firewall drop its TCP port?";
constexpr char NOT_CONNECTED[] =
    "; the connection is not established: wait for RPMA_CONN_ESTABLISHED";

// The first matching row that yields advice is used: certain causes first.
constexpr struct {
    unsigned steps;
    int errors[5];
    unsigned roles, transports;
    Advice advice;
} causes[] = {
    {QP, {EINVAL}, ANY, ANY, other_context},
    {QP, {EINVAL}, CLIENT, ANY, other_route},
    {QP, {EINVAL}, SERVER, ANY, other_listener},
    {OBJECT, {EINVAL, ENOMEM, E2BIG, ENOSPC}, ANY, ANY, too_large},
    {CQ | SRQ, {EINVAL}, ANY, ANY, no_entries},
    {QP, {EINVAL}, SERVER, INFINIBAND | ROCE, client_gone_at_setup},
    {QP, {EINVAL}, ANY, ANY, inline_data},
    {MR, {EINVAL}, ANY, ANY, HUGE_PAGES},
    {MR, {EFAULT}, ANY, ANY, not_mapped},
    {MR, {EOPNOTSUPP}, ANY, ANY, fs_dax},
    {PD, {ENOMEM}, ANY, ANY, no_pd},
    {OBJECT, {ENOMEM}, ANY, ANY, out_of_memory},
    {OBJECT | PD, {ENOSPC}, ANY, ANY, no_objects},
    {OBJECT, {EPERM}, ANY, ANY, no_locked_memory},
    {OBJECT | PD | BIND | ADDRESS, {EAGAIN}, ANY, ANY, CGROUP},
    {ANY, {EMFILE}, ANY, ANY, files_of_process},
    {ANY, {ENFILE}, ANY, ANY, FILES_OF_MACHINE},
    {ID_WITHOUT_CHANNEL, {ENOMEM}, ANY, ANY, rdma_cm_file},
    {EVENT_CHANNEL, {ENOENT, EACCES, EPERM, ENODEV}, ANY, ANY, rdma_cm_file},
    {NAME, {EAI_SERVICE}, ANY, ANY, UNKNOWN_SERVICE},
    {NAME,
     {EAI_NONAME, EAI_AGAIN, EAI_FAIL, EAI_NODATA, EAI_ADDRFAMILY},
     ANY,
     ANY,
     unknown_name},
    {BIND, {EADDRINUSE}, ANY, IWARP, TCP_PORT_IN_USE},
    {BIND | ADDRESS, {EADDRINUSE}, ANY, ANY, PORT_IN_USE},
    {BIND | ADDRESS, {EADDRNOTAVAIL}, ANY, ANY, address_not_available},
    {BIND | ADDRESS, {EACCES}, ANY, ANY, privileged_port},
    {ADDRESS | ROUTE, {EHOSTUNREACH, ENETUNREACH}, ANY, ANY, NO_ROUTE},
    {CONNECT, {EHOSTUNREACH, ENETUNREACH}, ANY, IWARP, NO_ROUTE},
    {ADDRESS, {EACCES}, ANY, ANY, NO_ROUTE}, // a route of the type "prohibit"
    {ADDRESS, {ETIMEDOUT}, LOOKUP, ANY, NO_REPLY},
    {ADDRESS, {ETIMEDOUT}, CLIENT, ANY, NO_REPLY_IN_TIME},
    {ROUTE, {ETIMEDOUT}, ANY, ANY, NO_PATH},
    {ID | ID_WITHOUT_CHANNEL | ROUTE | DEVICE, {ENODEV}, ANY, ANY, no_device},
    {BIND, {ENODEV}, ANY, ANY, no_device_of_address},
    {ADDRESS, {ENODEV}, ANY, ANY, no_device_of_route},
    {CONNECT, {ECONNREFUSED}, ANY, IWARP, NO_TCP_LISTENER},
    {CONNECT, {ETIMEDOUT}, ANY, IWARP, NO_TCP_REPLY},
    {CONNECT, {EINVAL}, ANY, INFINIBAND | ROCE, too_much_request_data},
    {ACCEPT, {EINVAL}, ANY, INFINIBAND | ROCE, too_much_reply_data},
    {REJECT, {EINVAL}, ANY, INFINIBAND | ROCE, too_much_rejection_data},
    {ACCEPT | REJECT, {EINVAL, ECONNRESET}, ANY, ANY, CLIENT_GONE},
    {DISCONNECT, {EINVAL}, ANY, ANY, NOT_CONNECTED},
};

} // namespace

Text advice_for(const Failure &failure) {
    Text advice;
    for (const auto &[steps, errors, roles, transports, found] : causes) {
        if (advice.length > 0)
            break;
        if ((steps & failure.step) != 0 && (roles & failure.role) != 0 &&
            (transports & failure.transport) != 0 && failure.error != 0 &&
            std::find(errors, std::end(errors), failure.error) != std::end(errors)) {
            if (found.text != nullptr)
                advice.append(found.text);
            else
                found.advise(advice, failure);
        }
    }
    return advice;
}

// The GID of a RoCE port is an IP address: Linux, include/rdma/ib_addr.h, iboe_addr_get_sgid()
// and rdma_ip2gid(). It is 0 before the address is resolved.
Transport transport_of(const rdma_cm_id &id) {
    if (id.verbs != nullptr && id.verbs->device->transport_type == IBV_TRANSPORT_IWARP)
        return IWARP;
    in6_addr gid;
    std::copy_n(id.route.addr.addr.ibaddr.sgid.raw, sizeof(gid), gid.s6_addr);
    const in6_addr &source = id.route.addr.src_sin6.sin6_addr;
    const bool is_address =
        IN6_IS_ADDR_UNSPECIFIED(&gid) || IN6_IS_ADDR_V4MAPPED(&gid) ||
        (id.route.addr.src_addr.sa_family == AF_INET6 && IN6_ARE_ADDR_EQUAL(&gid, &source));
    return is_address ? ROCE : INFINIBAND;
}

} // namespace rpma
