// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// device.c -- two devices and three contexts, two of the first device. The contexts have the
// function tables of the inline verbs.

#include "internal.h"

#include <errno.h>
#include <string.h>

void fake_device_reset(void) {
    fake_device_state =
        (struct fake_device){.profile = *sim_find_profile("rxe"), .addresses = 1, .pmem = true};
    struct sim_profile *profile = fake_profile();
    profile->has_odp = profile->has_native_flush = profile->has_native_atomic_write = false;
    // Arbitrary numbers, all different, so that a test can distinguish them.
    profile->attr.max_pd = 1001;
    profile->attr.max_mr = 1002;
    profile->attr.max_cq = 1003;
    profile->attr.max_qp = 1004;
    profile->attr.max_srq = 1005;
}

static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t attr_size) {
    (void)input;
    FAKE_CALL_OF("ibv_query_device_ex", context);
    if (call->failed)
        return call->error;
    struct ibv_device_attr_ex full;
    sim_describe_device(fake_profile(), &full);
    full.device_cap_flags_ex |= fake_device()->flush_caps;
    full.odp_caps.general_caps |= fake_device()->odp_general;
    full.odp_caps.per_transport_caps.rc_odp_caps |= fake_device()->odp_rc;
    memcpy(attr, &full, attr_size); // an older header has a shorter structure
    return 0;
}

// rdma-core 56, libibverbs/verbs.h, ibv_query_device_ex(), falls back to this function when the
// extended call returns EOPNOTSUPP.
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
    FAKE_CALL(context);
    (void)attr; // already cleared by ibv_query_device_ex()
    return fake_error(call, 0);
}

// rdma-core 56, libibverbs/verbs.h, ibv_advise_mr(): returns an error number. mlx5 implements
// it (providers/mlx5/verbs.c, mlx5_advise_mr()); a fault injects the EOPNOTSUPP of rdma_rxe.
static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge *sg_list, uint32_t num_sge) {
    FAKE_CALL_OF("ibv_advise_mr", pd);
    call->advise.advice = (int)advice;
    call->advise.flags = flags;
    fake_copy(&call->advise.sge, sg_list, sizeof(*sg_list));
    if (num_sge != 1)
        fake_misuse("%u ranges", num_sge);
    return fake_error(call, 0);
}

// Linux 7.3, drivers/infiniband/hw/mlx5/cq.c, mlx5_ib_modify_cq(): the period has 12 bits.
// rdma_rxe and siw lack this call, so that ibv_modify_cq() (rdma-core 56, libibverbs/verbs.h)
// returns EOPNOTSUPP.
static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr) {
    FAKE_CALL_OF("ibv_modify_cq", cq);
    fake_copy(&call->modify_cq, attr, sizeof(*attr));
    const bool wrong = !fake_find(FAKE_CQ, cq) || attr->moderate.cq_period > 0xfff;
    return fake_error(call, wrong ? EINVAL : 0);
}

struct ibv_context *fake_context(int number) {
    static struct ibv_device devices[] = {{.name = "fake0"}, {.name = "fake1"}};
    static struct verbs_context contexts[] = {
        [0 ... 2] = {.sz = sizeof(struct verbs_context),
                     .query_device_ex = query_device_ex,
                     .advise_mr = advise_mr,
                     .modify_cq = modify_cq,
                     .context = {.abi_compat = __VERBS_ABI_IS_EXTENDED,
                                 .ops = {.poll_cq = fake_poll_cq,
                                         .req_notify_cq = fake_req_notify_cq,
                                         .post_send = fake_post_send,
                                         .post_recv = fake_post_recv,
                                         .post_srq_recv = fake_post_srq_recv}}}};
    struct ibv_context *context = &contexts[number].context;
    // The library reads these fields without the lock, so unchanged ones are not rewritten.
    if (!context->device) {
        context->device = &devices[number % 2];
        context->async_fd = fake_async_open(number);
    }
    const enum ibv_transport_type transport =
        fake_device()->transport_type            ? fake_device()->transport_type
        : fake_profile()->transport == SIM_IWARP ? IBV_TRANSPORT_IWARP
                                                 : IBV_TRANSPORT_IB;
    if (context->device->transport_type != transport)
        context->device->transport_type = transport;
    if (context->num_comp_vectors != (int)fake_profile()->vectors)
        context->num_comp_vectors = (int)fake_profile()->vectors;
    return context;
}

struct device_list {
    struct fake_object object;
    struct ibv_device *devices[64];
};

// These calls are not recorded, because the library lists devices only to describe them.
// rdma-core 56, libibverbs/device.c, ibv_get_device_list(): the number is 0 when it fails;
// ibv_free_device_list() reads the list, so NULL would crash it.
struct ibv_device **ibv_get_device_list(int *num_devices) {
    FAKE_LOCKED;
    static struct ibv_device more = {.name = "a_device_with_a_long_name"};
    const int known = 2 - fake_device()->unlisted, count = known + fake_device()->more_devices;
    if (num_devices)
        *num_devices = count;
    if (count == 0)
        return NULL;
    struct device_list *made = FAKE_NEW(FAKE_DEVICE_LIST, struct device_list, devices);
    for (int i = 0; i < count; i++)
        made->devices[i] = i < known ? fake_context(i)->device : &more;
    return made->devices;
}

void ibv_free_device_list(struct ibv_device **list) {
    FAKE_LOCKED;
    struct fake_object *object = fake_find(FAKE_DEVICE_LIST, list);
    if (object)
        fake_destroy(object);
}

const char *ibv_get_device_name(struct ibv_device *device) {
    return device->name;
}

const char *ibv_wc_status_str(enum ibv_wc_status status) {
    return status == IBV_WC_SUCCESS ? "success" : "failure";
}
