// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// advice.h -- the table of failing.c: the advice of each failure; a pair of call and error
// number without a row has none of these words

#ifndef ADVICE_H
#define ADVICE_H 1

#include <errno.h>
#include <stddef.h>

#define OBJECTS "ibv_reg_mr ibv_create_cq rdma_create_qp_ex ibv_create_srq "
#define CHANNELS "rdma_create_event_channel ibv_create_comp_channel "
#define ALONE "rpma_conn_req_new rpma_utils_get_ibv_context "

static const struct advice {
    const char *calls;
    int errors[4];
    const char *words;
    const char *only; // these functions only; NULL: all that make the call
} advices[] = {
    {OBJECTS, {ENOMEM}, "may lock 64 KiB (RLIMIT_MEMLOCK)"},
    {"ibv_reg_mr ", {ENOMEM, ENOSPC}, "max_mr 1002"},
    {"ibv_create_cq ", {ENOMEM, ENOSPC}, "max_cq 1003"},
    {"rdma_create_qp_ex ", {ENOMEM, ENOSPC}, "max_qp 1004"},
    {"ibv_create_srq ", {ENOMEM, ENOSPC}, "max_srq 1005"},
    {"ibv_alloc_pd ", {ENOMEM, ENOSPC}, "max_pd 1001"},
    {OBJECTS "ibv_alloc_pd rdma_bind_addr rdma_listen rdma_resolve_addr ",
     {EAGAIN},
     "hca_object in rdma.max"},
    {"rdma_bind_addr rdma_listen rdma_resolve_addr ", {ENODEV}, "hca_handle in rdma.max"},
    {"ibv_reg_mr ", {EFAULT}, "the memory is not mapped"},
    {"ibv_reg_mr ", {EOPNOTSUPP}, "FS-DAX"},
    {OBJECTS CHANNELS
     "ibv_alloc_pd getaddrinfo rdma_getaddrinfo rdma_create_id rdma_bind_addr "
     "rdma_listen rdma_resolve_addr rdma_resolve_route rdma_connect rdma_accept rdma_reject ",
     {EMFILE},
     "RLIMIT_NOFILE"},
    {OBJECTS CHANNELS
     "ibv_alloc_pd getaddrinfo rdma_getaddrinfo rdma_create_id rdma_bind_addr "
     "rdma_listen rdma_resolve_addr rdma_resolve_route rdma_connect rdma_accept rdma_reject ",
     {ENFILE},
     "fs.file-max"},
    {"rdma_create_id ", {ENOMEM}, "/dev/infiniband/rdma_cm", ALONE},
    {"rdma_create_id ", {ENOMEM}, "RLIMIT_NOFILE", ALONE},
    {"rdma_create_event_channel ", {ENOENT, EACCES, EPERM, ENODEV}, "/dev/infiniband/rdma_cm"},
    {"rdma_create_event_channel ", {ENOENT, EACCES, EPERM, ENODEV}, "RLIMIT_NOFILE"},
    {"rdma_getaddrinfo rdma_create_id rdma_bind_addr rdma_listen rdma_resolve_addr "
     "rdma_resolve_route ",
     {ENODEV},
     "RDMA devices of this machine: fake0 fake1"},
    {"rdma_bind_addr rdma_listen rdma_resolve_addr ",
     {EADDRINUSE},
     "'rdma resource show cm_id'"},
    {"rdma_bind_addr rdma_listen ",
     {EADDRNOTAVAIL},
     "'rdma resource show cm_id'",
     "rpma_ep_listen rpma_ep_listen_with "},
    {"rdma_bind_addr rdma_listen ", {EADDRNOTAVAIL}, "'ip addr'"},
    {"rdma_bind_addr ",
     {EADDRNOTAVAIL},
     "net.ipv4.ip_local_port_range",
     "rpma_utils_get_ibv_context "},
    {"rdma_resolve_addr ", {EADDRNOTAVAIL}, "net.ipv4.ip_local_port_range"},
    {"rdma_resolve_addr rdma_resolve_route rdma_connect ",
     {EHOSTUNREACH, ENETUNREACH},
     "'ip route get ADDRESS'"},
    {"rdma_resolve_addr ", {EACCES}, "'ip route get ADDRESS'"},
    {"rdma_resolve_addr rdma_resolve_route ", {ETIMEDOUT}, "is the other machine up?"},
    {"rdma_accept rdma_reject ", {EINVAL}, "the client may have timed out or exited"},
    // In none of these calls, because sizes, inline data and private data are within the
    // limits.
    {"", {EIO}, "reduce it"},
    {"", {EIO}, "send less"},
    {"", {EIO}, "CAP_NET_BIND_SERVICE"},
    {"", {EIO}, "/etc/services"},
    {"", {EIO}, "getent"},
    {"", {EIO}, "UDP port 4791"},
};

#endif // ADVICE_H
