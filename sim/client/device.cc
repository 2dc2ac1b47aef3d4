// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// device.cc -- devices and contexts of libibverbs.so.1, and their attributes.

#include "../device/rules.h"
#include "shim.hh"

#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace sim;

namespace {

constexpr uint32_t MAX_DEVICES = 16; // of a host
constexpr uint32_t MAX_SLOTS = 1024; // of the hosts of a process
struct Slot {
    ShimDevice device;
    uint64_t place;
    uint32_t index;
} slots[MAX_SLOTS]; // never moved or freed: contexts point to them
uint32_t slot_count;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Returns the slot of a device of this place, or one of an earlier fabric; NULL: there is none.
ShimDevice *slot_of(uint32_t index) {
    const uint64_t place = rdma_sim_place();
    Slot *found = nullptr;
    for (uint32_t i = 0; i < slot_count; i++) {
        Slot &each = slots[i];
        if (each.place == place && each.index == index)
            return &each.device;
        if (!found && !is_same_fabric(each.place, place))
            found = &each;
    }
    if (!found && slot_count == MAX_SLOTS)
        return nullptr;
    if (!found)
        found = &slots[slot_count++];
    found->place = place;
    found->index = index;
    return &found->device;
}

// Returns an error number.
int describe_device(uint32_t index, ibv_device *&device) {
    DeviceInfo request;
    request.index = index;
    DeviceInfo::Reply info;
    if (const int error = call(request, info))
        return error;
    ShimDevice *const slot = slot_of(index);
    if (!slot)
        return ENOMEM;
    ShimDevice &made = *slot;
    device = &made.device;
    made.info = info;
    made.device.node_type = static_cast<ibv_node_type>(static_cast<int>(info.node_type));
    made.device.transport_type =
        static_cast<ibv_transport_type>(static_cast<int>(info.transport_type));
    memcpy(made.device.name, info.name, sizeof(info.name));
    snprintf(made.device.dev_name, sizeof(made.device.dev_name), "uverbs%u", index);
    snprintf(made.device.dev_path, sizeof(made.device.dev_path),
             "/sys/class/infiniband_verbs/uverbs%u", index);
    snprintf(made.device.ibdev_path, sizeof(made.device.ibdev_path), "/sys/class/infiniband/%s",
             info.name);
    return 0;
}

int query_device_ex(ibv_context *context, const ibv_query_device_ex_input *input,
                    ibv_device_attr_ex *attr, size_t size) {
    if (input && input->comp_mask)
        return EINVAL;
    QueryDevice request;
    request.context = shim_of(context)->handle;
    ibv_device_attr_ex full;
    if (const int error = call(request, full))
        return error;
    memset(attr, 0, size);
    memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
    return 0;
}

int query_port(ibv_context *context, uint8_t port, ibv_port_attr *attr, size_t size) {
    QueryPort request;
    request.context = shim_of(context)->handle;
    request.port = port;
    ibv_port_attr full;
    if (const int error = call(request, full))
        return error;
    memset(attr, 0, size);
    memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
    return 0;
}

int query_port_compat(ibv_context *context, uint8_t port, _compat_ibv_port_attr *attr) {
    return query_port(context, port, reinterpret_cast<ibv_port_attr *>(attr),
                      offsetof(ibv_port_attr, port_cap_flags2));
}

int query_rt_values(ibv_context *context, ibv_values_ex *values) {
    if (!shim_of(context->device)->info.has_rt_values)
        return EOPNOTSUPP;
    if (!(values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
        return EINVAL;
    values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    return clock_gettime(CLOCK_MONOTONIC, &values->raw_clock) ? errno : 0;
}

int advise_mr(ibv_pd *pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge *sges,
              uint32_t number) {
    AdviseMr request;
    request.pd = pd->handle;
    request.advice = static_cast<uint32_t>(advice);
    request.flags = flags;
    request.num_sge = number;
    rdma_sim_message message{
        &request, sizeof(request), sges, number * sizeof(*sges), nullptr, 0, 0, -1};
    return number > 1000 ? EINVAL : rdma_sim_call(&message);
}

} // namespace

int sim::destroy(uint32_t handle, Destroy::Reply &reply) {
    Destroy request;
    request.handle = handle;
    return call(request, reply);
}

extern "C" {

ibv_device **ibv_get_device_list(int *num_devices) {
    pthread_mutex_lock(&lock);
    ibv_device **const list =
        static_cast<ibv_device **>(calloc(MAX_DEVICES + 1, sizeof(ibv_device *)));
    int count = 0, error = list ? 0 : ENOMEM;
    for (uint32_t i = 0; !error && i < MAX_DEVICES; i++) {
        error = describe_device(i, list[count]);
        if (!error)
            count++;
        else if (error == ENODEV) // removed, or after the last one
            error = 0;
    }
    pthread_mutex_unlock(&lock);
    if (num_devices)
        *num_devices = error ? 0 : count;
    if (!error)
        return list;
    free(list);
    return fail<ibv_device *>(error);
}

void ibv_free_device_list(ibv_device **list) {
    discard(list);
}

const char *ibv_get_device_name(ibv_device *device) {
    return device->name;
}

__be64 ibv_get_device_guid(ibv_device *device) {
    return shim_of(device)->info.node_guid;
}

int ibv_get_device_index(ibv_device *device) {
    return static_cast<int>(shim_of(device)->info.index);
}

ibv_context *ibv_open_device(ibv_device *device) {
    OpenContext request;
    request.device = shim_of(device)->info.index;
    OpenContext::Reply reply;
    int fd;
    // Programs pass it to ibv_import_device(), or poll it; no byte is read from it.
    const int command = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (command < 0)
        return nullptr;
    ShimContext *const made = create<ShimContext>(request, reply, &fd);
    if (!made) {
        const int error = errno;
        close(command);
        return fail<ibv_context>(error);
    }
    made->handle = reply.context;
    made->async_channel = reply.async_channel;
    verbs_context &verbs = made->verbs;
    verbs.sz = sizeof(verbs);
    verbs.query_device_ex = query_device_ex;
    verbs.query_port = query_port;
    verbs.query_rt_values = query_rt_values;
    verbs.advise_mr = advise_mr;
    set_unsupported(verbs);
    if (shim_of(device)->info.has_xrc)
        set_xrc(verbs);
    verbs.create_cq_ex = create_cq_ex;
    verbs.create_qp_ex = create_qp_ex;
    ibv_context &context = verbs.context;
    context.device = device;
    context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    context.cmd_fd = command;
    context.async_fd = fd;
    context.num_comp_vectors = static_cast<int>(shim_of(device)->info.vectors);
    pthread_mutex_init(&context.mutex, nullptr);
    context.ops._compat_query_port = query_port_compat;
    context.ops.alloc_mw = alloc_mw;
    context.ops.dealloc_mw = dealloc_mw;
    context.ops.bind_mw = bind_mw;
    context.ops.poll_cq = poll_cq;
    context.ops.req_notify_cq = req_notify_cq;
    context.ops.post_send = post_send;
    context.ops.post_recv = post_recv;
    context.ops.post_srq_recv = post_srq_recv;
    return &context;
}

int ibv_close_device(ibv_context *context) {
    ShimContext *const shim = shim_of(context);
    Destroy::Reply reply;
    (void)destroy(shim->handle, reply);
    close(context->async_fd);
    close(context->cmd_fd);
    pthread_mutex_destroy(&context->mutex);
    discard(shim);
    return 0;
}

int ibv_get_async_event(ibv_context *context, ibv_async_event *event) {
    TakeEvent::Reply taken;
    if (rdma_sim_take_event(context->async_fd, shim_of(context)->async_channel, &taken, nullptr,
                            0, "ibv_get_async_event"))
        return -1;
    event->event_type = static_cast<ibv_event_type>(static_cast<int>(taken.type));
    if (taken.cookie)
        event->element.cq = reinterpret_cast<ibv_cq *>(taken.cookie);
    else
        event->element.port_num = static_cast<int>(taken.port);
    return 0;
}

// rdma-core 56, libibverbs/device.c, ibv_ack_async_event(): counts, and wakes the destruction.
void ibv_ack_async_event(ibv_async_event *event) {
    const auto acknowledge = [](auto *object, uint32_t &completed) {
        pthread_mutex_lock(&object->mutex);
        completed++;
        pthread_cond_signal(&object->cond);
        pthread_mutex_unlock(&object->mutex);
    };
    const sim_about about = sim_about_of(event->event_type);
    if (about == SIM_ABOUT_CQ)
        acknowledge(event->element.cq, event->element.cq->async_events_completed);
    else if (about == SIM_ABOUT_SRQ)
        acknowledge(event->element.srq, event->element.srq->events_completed);
    else if (about == SIM_ABOUT_QP)
        acknowledge(event->element.qp, event->element.qp->events_completed);
}

int ibv_query_device(ibv_context *context, ibv_device_attr *attr) {
    return query_device_ex(context, nullptr, reinterpret_cast<ibv_device_attr_ex *>(attr),
                           sizeof(*attr));
}

#undef ibv_query_port
int ibv_query_port(ibv_context *context, uint8_t port, _compat_ibv_port_attr *attr) {
    return query_port_compat(context, port, attr);
}

// Entries without a GID are ENODATA, as in rdma-core 56, libibverbs/cmd_device.c.
int _ibv_query_gid_ex(ibv_context *context, uint32_t port, uint32_t index, ibv_gid_entry *entry,
                      uint32_t flags, size_t size) {
    if (flags)
        return EOPNOTSUPP;
    const DeviceInfo::Reply &info = shim_of(context->device)->info;
    if (port == 1 && index >= info.gid_count && index < info.gid_entries)
        return ENODATA; // without a request, because programs walk through the table
    QueryGid request;
    request.context = shim_of(context)->handle;
    request.port = port;
    request.index = index;
    QueryGid::Reply reply;
    if (const int error = call(request, reply))
        return error;
    ibv_gid_entry full = {};
    full.gid = reply.gid;
    full.gid_index = index;
    full.port_num = port;
    full.gid_type = reply.type == 0 ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
    full.ndev_ifindex = reply.ifindex;
    memset(entry, 0, size);
    memcpy(entry, &full, size < sizeof(full) ? size : sizeof(full));
    return 0;
}

// Linux 7.3, drivers/infiniband/core/cache.c, rdma_query_gid_table(): EINVAL if an entry has no
// room.
ssize_t _ibv_query_gid_table(ibv_context *context, ibv_gid_entry *entries, size_t max,
                             uint32_t flags, size_t size) {
    for (size_t count = 0;; count++) {
        ibv_gid_entry entry;
        const int error = _ibv_query_gid_ex(context, 1, static_cast<uint32_t>(count), &entry,
                                            flags, sizeof(entry));
        if (error == EINVAL || error == ENODATA)
            return static_cast<ssize_t>(count);
        if (error || count == max)
            return -(error ? error : EINVAL);
        char *const to = reinterpret_cast<char *>(entries) + count * size;
        memset(to, 0, size);
        memcpy(to, &entry, size < sizeof(entry) ? size : sizeof(entry));
    }
}

int ibv_query_gid(ibv_context *context, uint8_t port, int index, ibv_gid *gid) {
    ibv_gid_entry entry;
    const int error = _ibv_query_gid_ex(context, port, static_cast<uint32_t>(index), &entry, 0,
                                        sizeof(entry));
    if (error == ENODATA) { // rdma-core 56, libibverbs/verbs.c, ibv_query_gid()
        *gid = {};
        return 0;
    }
    if (error) {
        errno = error;
        return -1;
    }
    *gid = entry.gid;
    return 0;
}

int ibv_query_gid_type(ibv_context *context, uint8_t port, unsigned index, unsigned *type);
int ibv_query_gid_type(ibv_context *context, uint8_t port, unsigned index, unsigned *type) {
    ibv_gid_entry entry = {};
    const int error = _ibv_query_gid_ex(context, port, index, &entry, 0, sizeof(entry));
    if (error && error != ENODATA) { // libibverbs/verbs.c, ibv_query_gid_type()
        errno = error;
        return -1;
    }
    *type = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    return 0;
}

int ibv_query_pkey(ibv_context *, uint8_t port, int index, __be16 *pkey) {
    if (port != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = 0xffff;
    return 0;
}

int ibv_get_pkey_index(ibv_context *, uint8_t port, __be16 pkey) {
    if (port == 1 && pkey == 0xffff)
        return 0;
    errno = EINVAL;
    return -1;
}

// The fabric accesses memory by process and address, so fork() needs no preparation.
int ibv_fork_init(void) {
    return 0;
}
enum ibv_fork_status ibv_is_fork_initialized(void) {
    return IBV_FORK_UNNEEDED;
}
int ibv_dontfork_range(void *, size_t);
int ibv_dontfork_range(void *, size_t) {
    return 0;
}
int ibv_dofork_range(void *, size_t);
int ibv_dofork_range(void *, size_t) {
    return 0;
}

const char *ibv_get_sysfs_path(void);
const char *ibv_get_sysfs_path(void) {
    return "/sys";
}

// rdma-core 56, libibverbs/sysfs.c, ibv_read_sysfs_file(): a final end of line is removed.
int ibv_read_sysfs_file(const char *directory, const char *file, char *text, size_t size);
int ibv_read_sysfs_file(const char *directory, const char *file, char *text, size_t size) {
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", directory, file);
    FILE *const opened = fopen(path, "re");
    if (!opened)
        return -1;
    size_t length = fread(text, 1, size - 1, opened);
    fclose(opened);
    if (length > 0 && text[length - 1] == '\n')
        length--;
    text[length] = '\0';
    return static_cast<int>(length);
}

// The fabric needs no MAC address, because it finds devices by GID.
int ibv_resolve_eth_l2_from_gid(ibv_context *, ibv_ah_attr *, uint8_t mac[6], uint16_t *vlan) {
    memset(mac, 0, 6);
    if (vlan)
        *vlan = 0xffff;
    return 0;
}

// rdma-core 56, libibverbs/verbs.c, ibv_query_ece(): without support, all zeros.
int ibv_query_ece(ibv_qp *, ibv_ece *ece) {
    memset(ece, 0, sizeof(*ece));
    return 0;
}
int ibv_query_qp_data_in_order(ibv_qp *, enum ibv_wr_opcode, uint32_t) {
    return 0;
}
}
