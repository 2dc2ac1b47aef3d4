// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// registration.c -- tries whether and how a memory registers with a device

#include <errno.h>
#include <string.h>

#include "info.h"

/* From libibverbs/verbs.h of rdma-core; Debian 12's headers lack the name. */
#define ACCESS_FLUSH_PERSISTENT (1U << 9)
#define ACCESS \
    (unsigned)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define PLAIN                                                                    \
    (RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | \
     RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV)

/* Returns 0, or the error number of the provider. */
static int error_of(struct ibv_pd *pd, const struct memory *memory, unsigned access) {
    struct ibv_mr *region = ibv_reg_mr(pd, memory->base, memory->mapped, access);
    if (region == NULL)
        return errno != 0 ? errno : EIO;
    (void)ibv_dereg_mr(region);
    return 0;
}

static char *help_for(int error, const struct memory *memory, bool paging) {
    if (error == ENOMEM && !may_lock_all())
        return text_of(
            "raise the limit of locked memory: ulimit -l, or LimitMEMLOCK= of systemd");
    if (error == EOPNOTSUPP && memory->kind == MEMORY_FSDAX && !paging)
        return text_of("use device DAX, or a device with on-demand paging");
    if (error == EFAULT && memory->kind == MEMORY_FILE)
        return text_of(
            "Linux 6.5 and later pin no page of the page cache for writing: use tmpfs, "
            "FS-DAX or device DAX");
    return text_of("rpma_mr_reg(3) says what devices ask of memory");
}

static void add_attempt(tree *found, const char *key, int error, const struct memory *memory,
                        bool paging) {
    if (error == 0)
        add_yes(found, key);
    else
        add_no(found, key, text_of("the device refuses it: %s (%d)", strerror(error), error),
               help_for(error, memory, paging));
}

/* Tries rpma_mr_reg() as a program calls it. */
static int add_usage(tree *found, const char *key, struct rpma_peer *peer, int usage,
                     const struct memory *memory, bool paging) {
    struct rpma_mr_local *region = NULL;
    errno = 0;
    const int ret = rpma_mr_reg(peer, memory->base, memory->mapped, usage, &region);
    const int error = errno;
    if (ret == 0)
        add_yes(found, key);
    else if (ret == RPMA_E_PROVIDER)
        add_attempt(found, key, error != 0 ? error : EIO, memory, paging);
    else
        add_no(found, key, text_of("rpma_mr_reg: %s", rpma_err_2str(ret)),
               help_for(0, memory, paging));
    (void)rpma_mr_dereg(&region);
    return ret;
}

/* soft-RoCE and soft-iWARP copy arriving data with the processor (rxe_mr.c, siw_qp_rx.c of the
 * kernel), so that the data stays in caches which only a native flush writes back. */
static bool is_software(const tree *device) {
    const char *driver = text_at(device, "driver");
    return strcmp(driver, "rdma_rxe") == 0 || strcmp(driver, "siw") == 0;
}

static void add_honesty(tree *found, const tree *device, const struct memory *memory,
                        bool grants_native) {
    static const char key[] = "persistent_flush";
    const bool saved = grants_native || strcmp(memory->domain, "cpu_cache") == 0;
    if (memory->kind == MEMORY_DEVDAX ? !memory->nvdimm : !memory->map_sync)
        add_persistence(found, key, memory);
    else if (!is_yes(found, "usage_persistent"))
        add_no(found, key, text_of("the memory does not register for it"),
               text_of("see the answer about the registration"));
    else if (saved && !memory->behind_cxl)
        add_yes(found, key);
    else if (!saved && is_software(device))
        add_no(
            found, key,
            text_of("the driver writes through the caches of the processor, which an emulated "
                    "flush leaves as they are"),
            text_of("a program on this machine that persists the data, or native flush: "
                    "soft-RoCE of Linux 6.2 or later, and a librpma built for it"));
    else if (memory->behind_cxl)
        add_power_unknown(found, key);
    else
        add_unknown(
            found, key,
            text_of("an emulated flush is persistent only where writes of the device pass "
                    "by the caches; no program can find that out"),
            text_of("switch DDIO off for the device, and state it with "
                    "rpma_peer_cfg_set_direct_write_to_pmem(3)"));
}

static void add_remark(tree *remarks, const char *remark) {
    json_object_array_add(remarks, json_object_new_string(remark));
}

static void add_remarks(tree *found, const tree *device, bool paged, bool grants_native) {
    tree *remarks = add_list(found, "remarks");
    if (paged && strcmp(text_at(device, "driver"), "rdma_rxe") == 0)
        add_remark(remarks,
                   "rdma_rxe pages this memory on demand, and misplaces transfers that do "
                   "not begin at a multiple of 4,096: let all of them begin there, and "
                   "give the network device an MTU of 4,200 or more");
    if (grants_native)
        add_remark(remarks, "the other side has to flush natively, too: state with "
                            "rpma_peer_cfg_set_served_by(3) that this side does, and set no "
                            "RPMA_FLUSH=emulated there");
}

void add_registration(tree *device, struct rpma_peer *peer, const struct memory *memory) {
    tree *found = add_object(device, "registration");
    const tree *operations = child(device, "operations");
    const bool paging = is_yes(operations, "on_demand_paging");
    const bool native = is_yes(operations, "native_flush");
    const unsigned on_demand = ACCESS | IBV_ACCESS_ON_DEMAND;
    struct ibv_pd *pd = NULL;
    (void)rpma_peer_get_ibv_pd(peer, &pd);
    add_usage(found, "usage_plain", peer, PLAIN, memory, paging);
    add_usage(found, "usage_visibility", peer, PLAIN | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
              memory, paging);
    add_usage(found, "usage_persistent", peer, PLAIN | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
              memory, paging);
    const int pinned = error_of(pd, memory, ACCESS);
    add_attempt(found, "pinned", pinned, memory, paging);
    if (paging)
        add_attempt(found, "on_demand", error_of(pd, memory, on_demand), memory, paging);
    else
        add_no(found, "on_demand", text_of("the device has no on-demand paging"),
               text_of("see the answer about on-demand paging"));
    /* rpma_mr_reg() uses on-demand paging only for memory that the device cannot pin. */
    const bool paged = pinned == EOPNOTSUPP && is_yes(found, "usage_plain");
    const unsigned access = (paged ? on_demand : ACCESS) | ACCESS_FLUSH_PERSISTENT;
    const bool grants_native = native && error_of(pd, memory, access) == 0;
    add_bool(found, "native_persistent_flush", grants_native);
    add_honesty(found, device, memory, grants_native);
    add_remarks(found, device, paged, grants_native);
}
