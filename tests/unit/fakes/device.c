// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// device.c -- two devices with their contexts: the tables behind the inline verbs.

#include "internal.h"

#include <errno.h>
#include <string.h>

// Bits of device_cap_flags_ex, by value: older kernel headers lack the names.
#define CAP_ATOMIC_WRITE (1ULL << 40)

uint64_t fake_flush_caps(void) {
    const struct fake_device *device = fake_device();
    if (device->flush_caps)
        return device->flush_caps;
    return device->native_flush ? FAKE_CAP_FLUSH_GLOBAL | FAKE_CAP_FLUSH_PERSISTENT : 0;
}

static void fill(struct ibv_device_attr_ex *attr) {
    const struct fake_device *device = fake_device();
    attr->orig_attr.max_qp_wr = (int)device->max_wr;
    attr->orig_attr.max_srq_wr = (int)device->max_wr;
    attr->orig_attr.max_cqe = device->max_cqe;
    attr->orig_attr.max_sge = device->max_sge;
    attr->orig_attr.max_sge_rd = device->max_sge_rd;
    attr->orig_attr.max_srq_sge = device->max_srq_sge;
    attr->orig_attr.atomic_cap = device->atomic_cap;
    if (device->odp) {
        attr->odp_caps.general_caps = IBV_ODP_SUPPORT;
        attr->odp_caps.per_transport_caps.rc_odp_caps =
            IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    }
    if (device->odp_general || device->odp_rc) {
        attr->odp_caps.general_caps = device->odp_general;
        attr->odp_caps.per_transport_caps.rc_odp_caps = (uint32_t)device->odp_rc;
    }
    attr->device_cap_flags_ex |= fake_flush_caps();
    if (device->native_atomic_write)
        attr->device_cap_flags_ex |= CAP_ATOMIC_WRITE;
}

static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t attr_size) {
    (void)input;
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_query_device_ex", context);
    if (call->failed)
        return call->error;
    struct ibv_device_attr_ex full;
    memset(&full, 0, sizeof(full));
    fill(&full);
    memset(attr, 0, attr_size);
    memcpy(attr, &full, attr_size < sizeof(full) ? attr_size : sizeof(full));
    return 0;
}

// rdma-core 56, libibverbs/verbs.h, ibv_query_device_ex(), falls back to this function when the
// extended call returns EOPNOTSUPP.
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_query_device", context);
    if (call->failed) {
        errno = call->error;
        return call->error;
    }
    memset(attr, 0, sizeof(*attr));
    return 0;
}

// rdma-core 56, libibverbs/verbs.h, ibv_advise_mr(): returns an error number. mlx5 has it
// (providers/mlx5/verbs.c, mlx5_advise_mr()); the EOPNOTSUPP of rdma_rxe is a fault here.
static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge *sg_list, uint32_t num_sge) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_advise_mr", pd);
    call->advise.advice = (int)advice;
    call->advise.flags = flags;
    call->advise.sge = sg_list[0];
    fake_touch(&call->advise.sge, sizeof(call->advise.sge));
    if (num_sge != 1)
        fake_misuse("ibv_advise_mr: %u ranges", num_sge);
    return call->failed ? call->error : 0;
}

// Linux 7.3, drivers/infiniband/hw/mlx5/cq.c, mlx5_ib_modify_cq(): the period has 12 bits.
// rdma_rxe and siw have no such call, and rdma-core 56, libibverbs/verbs.h, ibv_modify_cq(),
// answers EOPNOTSUPP in its place.
static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_modify_cq", cq);
    fake_touch(attr, sizeof(*attr));
    call->modify_cq = *attr;
    if (call->failed || !fake_find(FAKE_CQ, cq, "ibv_modify_cq"))
        return call->failed ? call->error : EINVAL;
    return attr->moderate.cq_period > 0xfff ? EINVAL : 0;
}

struct ibv_context *fake_context(int number) {
    static struct ibv_device devices[2];
    static struct verbs_context contexts[2];
    struct verbs_context *verbs = &contexts[number];
    // The library reads these fields without the lock, so unchanged ones are not rewritten.
    if (devices[number].transport_type != fake_device()->transport)
        devices[number].transport_type = fake_device()->transport;
    if (verbs->context.num_comp_vectors != fake_device()->vectors)
        verbs->context.num_comp_vectors = fake_device()->vectors;
    int (*const modify)(struct ibv_cq *, struct ibv_modify_cq_attr *) =
        fake_device()->moderates ? modify_cq : NULL;
    if (verbs->modify_cq != modify)
        verbs->modify_cq = modify;
    if (verbs->sz == sizeof(*verbs))
        return &verbs->context;
    devices[number].node_type = IBV_NODE_CA;
    strcpy(devices[number].name, number ? "fake1" : "fake0");
    verbs->sz = sizeof(*verbs);
    verbs->query_device_ex = query_device_ex;
    verbs->advise_mr = advise_mr;
    verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    verbs->context.device = &devices[number];
    verbs->context.ops.poll_cq = fake_poll_cq;
    verbs->context.ops.req_notify_cq = fake_req_notify_cq;
    verbs->context.ops.post_send = fake_post_send;
    verbs->context.ops.post_recv = fake_post_recv;
    verbs->context.ops.post_srq_recv = fake_post_srq_recv;
    verbs->context.cmd_fd = -1;
    verbs->context.async_fd = fake_async_open(number);
    return &verbs->context;
}

// The list of devices is not recorded, because the library reads it only to describe them.
// rdma-core 56, libibverbs/device.c, ibv_get_device_list(): the number is 0 when it fails;
// ibv_free_device_list() reads the list, so NULL would crash it.
struct ibv_device **ibv_get_device_list(int *num_devices) {
    FAKE_LOCKED;
    const int count = 2 - fake_device()->unlisted;
    if (num_devices)
        *num_devices = count;
    if (count == 0)
        return NULL;
    struct {
        struct fake_object object;
        struct ibv_device *devices[3];
    } *made = fake_create(FAKE_DEVICE_LIST, sizeof(*made), sizeof(struct fake_object));
    for (int i = 0; i < count; i++)
        made->devices[i] = fake_context((unsigned)i)->device;
    return made->devices;
}

void ibv_free_device_list(struct ibv_device **list) {
    FAKE_LOCKED;
    struct fake_object *object = fake_find(FAKE_DEVICE_LIST, list, "ibv_free_device_list");
    if (object)
        fake_destroy(object);
}

const char *ibv_get_device_name(struct ibv_device *device) {
    return device->name;
}

const char *ibv_wc_status_str(enum ibv_wc_status status) {
    return status == IBV_WC_SUCCESS ? "success" : "failure";
}
