// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cma_device.cc -- devices, addresses and names.

#include "../device/rules.h"
#include "cma.hh"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>

namespace sim {

namespace {

const unsigned MAX_DEVICES = 1024;
CmDevice devices[MAX_DEVICES];
unsigned device_count;
pthread_mutex_t devices_mutex = PTHREAD_MUTEX_INITIALIZER;

bool is_here(const CmDevice &device) {
    return device.place == rdma_sim_place();
}

bool is_known(const ibv_device *device) {
    for (unsigned i = 0; i < device_count; i++)
        if (devices[i].device == device && is_here(devices[i]))
            return true;
    return false;
}

// Adds the device, or replaces one of a fabric that has ended.
void add_device(ibv_device *device) {
    const uint64_t place = rdma_sim_place();
    unsigned at = 0;
    while (at < device_count && is_same_fabric(devices[at].place, place))
        at++;
    if (at == MAX_DEVICES)
        return;
    if (at == device_count)
        device_count++;
    else if (devices[at].verbs)
        ibv_close_device(devices[at].verbs);
    devices[at] = {};
    devices[at].device = device;
    devices[at].place = place;
}

// Adds the devices that are new: rdma-core, librdmacm/cma.c, ucma_sync_devices_list().
int find_devices() {
    int count = 0;
    ibv_device **const list = ibv_get_device_list(&count);
    if (!list)
        return fail(ENODEV);
    for (int i = 0; i < count; i++)
        if (!is_known(list[i]))
            add_device(list[i]);
    ibv_free_device_list(list); // keeps the devices
    return count > 0 ? 0 : fail(ENODEV);
}

int load_devices() {
    for (unsigned i = 0; i < device_count; i++)
        if (is_here(devices[i]))
            return 0;
    return find_devices();
}

CmDevice *find_device(uint64_t guid) {
    for (unsigned i = 0; i < device_count; i++)
        if (is_here(devices[i]) && ibv_get_device_guid(devices[i].device) == guid)
            return &devices[i];
    return nullptr;
}

int open_device(CmDevice *device) {
    ibv_device_attr attr;
    if (device->verbs)
        return 0;
    ibv_context *const verbs = ibv_open_device(device->device);
    if (!verbs)
        return fail(ENODEV);
    const int error = ibv_query_device(verbs, &attr);
    if (error) {
        ibv_close_device(verbs);
        return fail(error);
    }
    device->max_responder_resources = static_cast<uint8_t>(attr.max_qp_rd_atom);
    device->max_initiator_depth = static_cast<uint8_t>(attr.max_qp_init_rd_atom);
    device->is_iwarp = device->device->transport_type == IBV_TRANSPORT_IWARP;
    device->verbs = verbs;
    device->context = verbs_get_ctx(verbs);
    return 0;
}

struct DevicesLocked {
    DevicesLocked() {
        pthread_mutex_lock(&devices_mutex);
        rdma_sim_hold(1);
    }
    ~DevicesLocked() {
        rdma_sim_hold(-1);
        pthread_mutex_unlock(&devices_mutex);
    }
    DevicesLocked(const DevicesLocked &) = delete;
    DevicesLocked &operator=(const DevicesLocked &) = delete;
};

} // namespace

int fail(int error) {
    errno = error;
    return -1;
}

int use_device(ShimId *id, uint64_t guid) {
    const DevicesLocked locked;
    CmDevice *device = find_device(guid);
    if (!device && !find_devices())
        device = find_device(guid);
    if (!device)
        return fail(ENODEV);
    if (open_device(device))
        return -1;
    if (!device->pd)
        device->pd = ibv_alloc_pd(device->verbs);
    if (!device->pd)
        return -1;
    device->ids++;
    id->device = device;
    id->id.verbs = device->verbs;
    id->id.pd = device->pd;
    return 0;
}

void release_device(ShimId *id) {
    const DevicesLocked locked;
    if (!id->device || --id->device->ids > 0)
        return;
    if (id->device->xrcd)
        ibv_close_xrcd(id->device->xrcd);
    ibv_dealloc_pd(id->device->pd);
    id->device->xrcd = nullptr;
    id->device->pd = nullptr;
}

// cma.c, ucma_get_xrcd()
ibv_xrcd *xrcd_of(ShimId *id) {
    const DevicesLocked locked;
    ibv_xrcd_init_attr attr = {};
    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attr.fd = -1;
    attr.oflags = O_CREAT;
    if (!id->device->xrcd)
        id->device->xrcd = ibv_open_xrcd(id->device->verbs, &attr);
    return id->device->xrcd;
}

bool has_devices() {
    const DevicesLocked locked;
    return load_devices() == 0;
}

} // namespace sim

using namespace sim;

extern "C" {

ibv_context **rdma_get_devices(int *num_devices) {
    const DevicesLocked locked;
    ibv_context **list = nullptr;
    if (num_devices)
        *num_devices = 0;
    if (load_devices())
        return nullptr;
    for (unsigned i = 0; i < device_count; i++)
        if (is_here(devices[i]) && open_device(&devices[i]))
            return nullptr;
    list = static_cast<ibv_context **>(calloc(device_count + 1, sizeof(*list)));
    int count = 0;
    for (unsigned i = 0; list && i < device_count; i++)
        if (is_here(devices[i]))
            list[count++] = devices[i].verbs;
    if (num_devices)
        *num_devices = count;
    return list;
}

void rdma_free_devices(ibv_context **list) {
    discard(list);
}

// ---- addresses: rdma-core, librdmacm/addrinfo.c ---------------------------------------------

static sockaddr *copy_address(const sockaddr *address, socklen_t length) {
    void *const made = malloc(length);
    if (made)
        memcpy(made, address, length);
    return static_cast<sockaddr *>(made);
}

static addrinfo hints_for(const rdma_addrinfo *hints) {
    addrinfo made = {};
    if (hints->ai_flags & RAI_PASSIVE)
        made.ai_flags |= AI_PASSIVE;
    if (hints->ai_flags & RAI_NUMERICHOST)
        made.ai_flags |= AI_NUMERICHOST;
    made.ai_family = hints->ai_family;
    if (hints->ai_qp_type)
        made.ai_socktype = hints->ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM;
    if (hints->ai_port_space == RDMA_PS_TCP)
        made.ai_protocol = IPPROTO_TCP;
    else if (hints->ai_port_space == RDMA_PS_UDP || hints->ai_port_space == RDMA_PS_IPOIB)
        made.ai_protocol = IPPROTO_UDP;
    return made;
}

// The first address of the name is the source of a passive side, or the destination.
static int resolve_name(const char *node, const char *service, const rdma_addrinfo *hints,
                        rdma_addrinfo *made) {
    addrinfo *found = nullptr;
    const addrinfo wanted = hints_for(hints);
    const int error = getaddrinfo(node, service, &wanted, &found);
    if (error)
        return error;
    const bool is_passive = hints->ai_flags & RAI_PASSIVE;
    made->ai_flags = is_passive ? RAI_PASSIVE : 0;
    made->ai_family = found->ai_family;
    made->ai_qp_type = hints->ai_qp_type                  ? hints->ai_qp_type
                       : found->ai_socktype == SOCK_DGRAM ? IBV_QPT_UD
                                                          : IBV_QPT_RC;
    made->ai_port_space = hints->ai_port_space                ? hints->ai_port_space
                          : found->ai_protocol == IPPROTO_UDP ? RDMA_PS_UDP
                                                              : RDMA_PS_TCP;
    sockaddr *const copy = copy_address(found->ai_addr, found->ai_addrlen);
    (is_passive ? made->ai_src_addr : made->ai_dst_addr) = copy;
    (is_passive ? made->ai_src_len : made->ai_dst_len) = found->ai_addrlen;
    freeaddrinfo(found);
    return copy ? 0 : EAI_MEMORY;
}

int rdma_getaddrinfo(const char *node, const char *service, const rdma_addrinfo *hints,
                     rdma_addrinfo **res) {
    static const rdma_addrinfo no_hints = {};
    if (!node && !service && !hints)
        return fail(EINVAL);
    if (!has_devices())
        return -1;
    rdma_addrinfo *const made = static_cast<rdma_addrinfo *>(calloc(1, sizeof(*made)));
    if (!made)
        return fail(ENOMEM);
    int error = 0;
    if (!hints)
        hints = &no_hints;
    if (node || service) {
        error = resolve_name(node, service, hints, made);
    } else {
        made->ai_flags = hints->ai_flags;
        made->ai_family = hints->ai_family;
        made->ai_qp_type = hints->ai_qp_type;
        made->ai_port_space = hints->ai_port_space;
        made->ai_dst_len = hints->ai_dst_len;
        if (hints->ai_dst_len)
            made->ai_dst_addr = copy_address(hints->ai_dst_addr, hints->ai_dst_len);
    }
    if (!error && !made->ai_src_len && hints->ai_src_len) {
        made->ai_src_len = hints->ai_src_len;
        made->ai_src_addr = copy_address(hints->ai_src_addr, hints->ai_src_len);
    }
    if (error) {
        rdma_freeaddrinfo(made);
        return error;
    }
    *res = made;
    return 0;
}

void rdma_freeaddrinfo(rdma_addrinfo *res) {
    while (res) {
        rdma_addrinfo *const next = res->ai_next;
        discard(res->ai_connect);
        discard(res->ai_route);
        discard(res->ai_src_canonname);
        discard(res->ai_dst_canonname);
        discard(res->ai_src_addr);
        discard(res->ai_dst_addr);
        discard(res);
        res = next;
    }
}

__be16 rdma_get_src_port(rdma_cm_id *id) {
    return sim_port(&id->route.addr.src_addr);
}
__be16 rdma_get_dst_port(rdma_cm_id *id) {
    return sim_port(&id->route.addr.dst_addr);
}

const char *rdma_event_str(rdma_cm_event_type event) {
    return sim_cm_event_name(event);
}

} // extern "C"
