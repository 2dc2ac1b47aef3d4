// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// capability.c -- the operations that are native on a device, and the limits of the device

#include <stdlib.h>
#include <string.h>

#include "info.h"

/* From include/uapi/rdma/ib_user_verbs.h of the kernel; Debian 12's headers lack the names. */
#define DEVICE_FLUSH (UINT64_C(1) << 38 | UINT64_C(1) << 39)
#define DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)

#define MAX_INLINE 65536U

static void ask_served(const struct rpma_peer *peer, bool *flush, bool *atomic_write) {
    struct rpma_peer_cfg *configuration = NULL;
    bool is_stated;
    if (rpma_peer_cfg_new(&configuration) == 0 &&
        rpma_peer_cfg_set_served_by(configuration, peer) == 0)
        (void)rpma_peer_cfg_get_served(configuration, &is_stated, flush, atomic_write);
    (void)rpma_peer_cfg_delete(&configuration);
}

/* Adds why librpma emulates an operation: its build or the device has no native one. */
static void add_not_native(tree *operations, const char *key, const char *name, bool device_has,
                           const struct ibv_device_attr *limits) {
    if (device_has)
        add_no(
            operations, key,
            text_of("the device has %s, this build of librpma leaves it alone", name),
            text_of(
                "build librpma where the headers are of rdma-core 45 and Linux 6.2 or later"));
    else if (limits->vendor_id == VENDOR_RXE)
        add_no(operations, key, text_of("rdma_rxe of this kernel has no %s", name),
               text_of("Linux 6.2 or later has it"));
    else
        add_no(operations, key, text_of("the device has no %s", name),
               text_of("another device; librpma does the same with %s here",
                       strcmp(key, "native_flush") == 0 ? "a read behind the writes"
                                                        : "a fenced write of 8 bytes"));
}

static void add_flush(tree *operations, bool native, bool device_has,
                      const struct ibv_device_attr *limits) {
    const char *choice = getenv("RPMA_FLUSH");
    if (native && choice != NULL && strcmp(choice, "emulated") == 0)
        add_no(operations, "native_flush",
               text_of("RPMA_FLUSH=emulated stands in the environment"),
               text_of("take it out: unset RPMA_FLUSH"));
    else if (native)
        add_yes(operations, "native_flush");
    else
        add_not_native(operations, "native_flush", "FLUSH", device_has, limits);
}

void add_capabilities(tree *device, struct ibv_context *context, struct rpma_peer *peer,
                      const struct ibv_device_attr_ex *attributes) {
    tree *operations = add_object(device, "operations");
    const uint64_t has = attributes->device_cap_flags_ex;
    const struct ibv_device_attr *limits = &attributes->orig_attr;
    bool flush = false, atomic_write = false;
    int paging = 0;
    ask_served(peer, &flush, &atomic_write);
    add_flush(operations, flush, (has & DEVICE_FLUSH) == DEVICE_FLUSH, limits);
    if (atomic_write)
        add_yes(operations, "native_atomic_write");
    else
        add_not_native(operations, "native_atomic_write", "ATOMIC WRITE",
                       (has & DEVICE_ATOMIC_WRITE) != 0, limits);
    if (rpma_utils_ibv_context_is_odp_capable(context, &paging) == 0 && paging != 0)
        add_yes(operations, "on_demand_paging");
    else if (limits->vendor_id == VENDOR_RXE)
        add_no(operations, "on_demand_paging",
               text_of("rdma_rxe of this kernel has none, so files on FS-DAX do not register"),
               text_of("Linux 6.16 or later, or device DAX"));
    else
        add_no(operations, "on_demand_paging",
               text_of("the device has none, so files on FS-DAX may not register"),
               text_of("another device, or device DAX"));
}

static bool takes_inline(struct ibv_pd *pd, struct ibv_cq *cq, unsigned size) {
    struct ibv_qp_init_attr attributes = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 10,
                .max_recv_wr = 10,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = size},
    };
    struct ibv_qp *qp = ibv_create_qp(pd, &attributes);
    return qp != NULL && ibv_destroy_qp(qp) == 0;
}

/* No device attribute has the inline limit: queue pairs with librpma's defaults show it. */
static void add_inline(tree *limits, struct ibv_context *context) {
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = pd == NULL ? NULL : ibv_create_cq(context, 20, NULL, NULL, 0);
    unsigned taken = 0, refused = MAX_INLINE + 1;
    const bool works = cq != NULL && takes_inline(pd, cq, 0);
    while (works && refused - taken > 1) {
        const unsigned middle = taken + (refused - taken) / 2;
        if (takes_inline(pd, cq, middle))
            taken = middle;
        else
            refused = middle;
    }
    if (works)
        add_number(limits, "inline_size", taken);
    else
        add_null(limits, "inline_size");
    if (cq != NULL)
        (void)ibv_destroy_cq(cq);
    if (pd != NULL)
        (void)ibv_dealloc_pd(pd);
}

static void add_count(tree *limits, const char *key, int value) {
    add_number(limits, key, value < 0 ? 0 : (uint64_t)value);
}

void add_device_limits(tree *device, struct ibv_context *context,
                       const struct ibv_device_attr *limits) {
    tree *found = add_object(device, "limits");
    add_count(found, "cq_size", limits->max_cqe);
    add_count(found, "sq_size", limits->max_qp_wr);
    add_count(found, "rq_size", limits->max_qp_wr);
    add_count(found, "srq_size", limits->max_srq_wr);
    add_count(found, "max_sge", limits->max_sge);
    add_count(found, "max_read_sge", limits->max_sge_rd);
    add_count(found, "max_srq_sge", limits->max_srq_sge);
    add_inline(found, context);
    add_count(found, "queue_pairs", limits->max_qp);
    add_count(found, "completion_queues", limits->max_cq);
    add_count(found, "completion_vectors", context->num_comp_vectors);
    add_count(found, "regions", limits->max_mr);
    add_number(found, "region_size", limits->max_mr_size);
}
