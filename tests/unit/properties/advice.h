// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// advice.h -- the table of failing.c: the advice of each failure; a combination of call, error
// number and situation without a row has none of these words

#ifndef ADVICE_H
#define ADVICE_H 1

#include <errno.h>
#include <stddef.h>

// The situations: one of each dimension. A row without a bit of a dimension is for all of them.
enum situation {
    // The side that the call is made for.
    CLIENT = 1 << 0,
    SERVER = 1 << 1,
    LOOKUP = 1 << 2,
    NO_SIDE = 1 << 3,
    // The transport of the device.
    INFINIBAND = 1 << 4,
    ROCE = 1 << 5,
    IWARP = 1 << 6,
    // With TUNED the inline size is set, and the private data has 255 bytes.
    DEFAULTS = 1 << 7,
    TUNED = 1 << 8,
    // RDMAV_FORK_SAFE is set.
    FORK_UNSAFE = 1 << 9,
    FORK_SAFE = 1 << 10,
    // The limit of locked memory is 0, or 64 KiB.
    LOCKS_NOTHING = 1 << 11,
    LOCKS_SOME = 1 << 12,
};

static const unsigned dimensions[] = {CLIENT | SERVER | LOOKUP | NO_SIDE,
                                      INFINIBAND | ROCE | IWARP, DEFAULTS | TUNED,
                                      FORK_UNSAFE | FORK_SAFE, LOCKS_NOTHING | LOCKS_SOME};

#define OBJECTS "ibv_reg_mr ibv_create_cq rdma_create_qp_ex ibv_create_srq "
#define CHANNELS "rdma_create_event_channel ibv_create_comp_channel "
#define FOUND "rdma_bind_addr rdma_listen rdma_resolve_addr "
#define ALL                                                                            \
    OBJECTS CHANNELS FOUND "ibv_alloc_pd getaddrinfo rdma_getaddrinfo rdma_create_id " \
                           "rdma_resolve_route rdma_connect rdma_accept rdma_reject "  \
                           "rdma_disconnect "
#define ALONE "rpma_conn_req_new rpma_utils_get_ibv_context "
#define WITH_DATA "rpma_conn_req_connect rpma_conn_req_reject "

static const struct advice {
    const char *calls;
    int errors[4];
    const char *words;
    unsigned when;    // bits of enum situation
    const char *only; // these functions only; NULL: all that make the call
} advices[] = {
    {OBJECTS, {ENOMEM}, "may lock 64 KiB (RLIMIT_MEMLOCK)", LOCKS_SOME},
    {OBJECTS, {ENOMEM, EPERM}, "may lock 0 KiB (RLIMIT_MEMLOCK)", LOCKS_NOTHING},
    {OBJECTS, {ENOMEM}, "vm.max_map_count"},
    {OBJECTS, {ENOMEM}, "fork protection (RDMAV_FORK_SAFE) needs mappings", FORK_SAFE},
    {OBJECTS "ibv_alloc_pd ", {ENOMEM}, "is out of memory"},
    {"ibv_reg_mr ", {ENOMEM, ENOSPC}, "max_mr 1002"},
    {"ibv_create_cq ", {ENOMEM, ENOSPC}, "max_cq 1003"},
    {"rdma_create_qp_ex ", {ENOMEM, ENOSPC}, "max_qp 1004"},
    {"ibv_create_srq ", {ENOMEM, ENOSPC}, "max_srq 1005"},
    {"ibv_alloc_pd ", {ENOMEM, ENOSPC}, "max_pd 1001"},
    {OBJECTS "ibv_alloc_pd rdma_bind_addr rdma_listen rdma_resolve_addr ",
     {EAGAIN},
     "hca_object in rdma.max"},
    {"ibv_reg_mr ", {EINVAL}, "RDMAV_HUGEPAGES_SAFE"},
    {"ibv_reg_mr ", {EFAULT}, "the memory is not mapped"},
    {"ibv_reg_mr ", {EOPNOTSUPP}, "FS-DAX"},
    {"rdma_create_qp_ex ", {EINVAL}, "the client may have", SERVER | INFINIBAND | ROCE},
    {"rdma_create_qp_ex ", {EINVAL}, "allows fewer inline bytes", TUNED},
    {"rdma_create_qp_ex ", {EINVAL}, "rpma_conn_cfg_set_inline_size()", TUNED | CLIENT},
    {"rdma_create_qp_ex ", {EINVAL}, "rpma_conn_cfg_set_inline_size()", TUNED | IWARP},
    {ALL, {EMFILE}, "RLIMIT_NOFILE"},
    {ALL, {ENFILE}, "fs.file-max"},
    {"rdma_create_id ", {ENOMEM}, "/dev/infiniband/rdma_cm", 0, ALONE},
    {"rdma_create_id ", {ENOMEM}, "RLIMIT_NOFILE", 0, ALONE},
    {"rdma_create_id ", {ENOMEM}, "list of devices", 0, ALONE},
    {"rdma_create_event_channel ", {ENOENT, EACCES, EPERM, ENODEV}, "/dev/infiniband/rdma_cm"},
    {"rdma_create_event_channel ", {ENOENT, EACCES, EPERM, ENODEV}, "RLIMIT_NOFILE"},
    {"rdma_create_event_channel ", {ENOENT, EACCES, EPERM, ENODEV}, "list of devices"},
    {FOUND "rdma_getaddrinfo rdma_create_id rdma_resolve_route ",
     {ENODEV},
     "RDMA devices of this machine: fake0 fake1"},
    {FOUND, {ENODEV}, "hca_handle in rdma.max"},
    {FOUND, {ENODEV}, "list of devices"},
    {"rdma_bind_addr rdma_listen ", {ENODEV}, "if one has the address"},
    {"rdma_resolve_addr ", {ENODEV}, "shows the network device of the route"},
    {FOUND, {EADDRINUSE}, "'rdma resource show cm_id'"},
    {"rdma_listen ", {EADDRINUSE}, "'ss -tlnp'", IWARP},
    {"rdma_bind_addr rdma_listen ", {EADDRNOTAVAIL}, "'rdma resource show cm_id'", SERVER},
    {"rdma_bind_addr rdma_listen ", {EADDRNOTAVAIL}, "'ip addr'"},
    {"rdma_bind_addr ", {EADDRNOTAVAIL}, "net.ipv4.ip_local_port_range", LOOKUP},
    {"rdma_resolve_addr ", {EADDRNOTAVAIL}, "net.ipv4.ip_local_port_range"},
    {"rdma_resolve_addr rdma_resolve_route ",
     {EHOSTUNREACH, ENETUNREACH},
     "the route that this machine uses"},
    {"rdma_connect ", {EHOSTUNREACH, ENETUNREACH}, "the route that this machine uses", IWARP},
    {"rdma_resolve_addr ", {EACCES}, "the route that this machine uses"},
    {"rdma_resolve_addr ", {ETIMEDOUT}, "is the other machine up?"},
    {"rdma_resolve_addr ", {ETIMEDOUT}, "rpma_conn_cfg_set_timeout()", CLIENT},
    {"rdma_resolve_route ", {ETIMEDOUT}, "does the subnet manager reply"},
    {"rdma_resolve_route ", {ETIMEDOUT}, "rpma_conn_cfg_set_timeout()"},
    {"rdma_connect ", {ECONNREFUSED}, "does the server listen", IWARP},
    {"rdma_connect ", {ETIMEDOUT}, "drop its TCP port", IWARP},
    {"rdma_connect rdma_accept rdma_reject ",
     {EINVAL},
     "send less",
     TUNED | INFINIBAND | ROCE,
     WITH_DATA},
    {"rdma_accept rdma_reject ", {EINVAL}, "the client may have", DEFAULTS},
    {"rdma_accept rdma_reject ", {EINVAL}, "the client may have", IWARP},
    {"rdma_reject ", {EINVAL}, "the client may have", 0, "rpma_conn_req_delete "},
    {"rdma_accept rdma_reject ", {ECONNRESET}, "the client may have"},
    {"rdma_disconnect ", {EINVAL}, "the connection is not established"},
    // In none of these calls, because sizes are within the limits.
    {"", {EIO}, "the device has max_cqe"},
    {"", {EIO}, "the device has max_qp_wr"},
    {"", {EIO}, "is 0: raise it"},
    {"", {EIO}, "CAP_NET_BIND_SERVICE"},
    {"", {EIO}, "/etc/services"},
    {"", {EIO}, "getent"},
    {"", {EIO}, "UDP port 4791"},
};

#endif // ADVICE_H
