// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// driver.c -- the name of a driver in rpma_devices(7), and the traps that this page explains

#include <string.h>

#include "info.h"

#define NO_FENCE \
    "writes are not fenced: wait for the completion of a flush before rpma_atomic_write()"
#define NO_INLINE                                                                     \
    "no inline data, and no error says so: rpma_atomic_write() and RPMA_F_INLINE do " \
    "not work, use rpma_write_atomic()"
#define NO_TIMEOUT \
    "rpma_conn_cfg_set_ack_timeout() has no effect: let the program keep a clock of its own"
#define NO_SRQ "no shared receive queue: post receives for each connection"
#define NO_SEND_IMM "messages have no immediate data"
#define NO_WRITE_IMM "writes have no immediate data"

/* kernel: the driver of the device's parent in sysfs; transport: NULL for all transports */
static const struct {
    const char *kernel, *transport, *name, *traps[4];
} drivers[] = {
    {"mlx5_core",
     NULL,
     "mlx5",
     {"the firmware may repeat operations after times of its own, whatever "
      "rpma_conn_cfg_set_ack_timeout() sets"}},
    {"mlx4_core", NULL, "mlx4", {NULL}},
    {"ice", "InfiniBand", "irdma", {NO_TIMEOUT, NO_SRQ}},
    {"idpf", "InfiniBand", "irdma", {NO_TIMEOUT}},
    {"ice", "iWARP", "irdma", {NO_TIMEOUT, NO_SRQ, NO_SEND_IMM}},
    {"i40e", "iWARP", "irdma", {NO_TIMEOUT, NO_SRQ, NO_SEND_IMM}},
    {"bnxt_en", NULL, "bnxt_re", {NULL}},
    {"cxgb4",
     NULL,
     "cxgb4",
     {NO_FENCE, NO_TIMEOUT, NO_SEND_IMM,
      "a batch of one write and one message of 16 bytes ignores RPMA_F_INLINE: post the two "
      "one "
      "by one"}},
    {"hns3",
     NULL,
     "hns",
     {"HIP08 ignores an rpma_conn_cfg_set_ack_timeout() above 4.3 seconds"}},
    {"erdma",
     NULL,
     "erdma",
     {NO_TIMEOUT, NO_SRQ, "rpma_read() without regions ends the program"}},
    {"mana", NULL, "mana", {NO_INLINE, NO_SRQ}},
    {"ionic", NULL, "ionic", {NO_SRQ}},
    {"qede", "iWARP", "qedr", {NO_TIMEOUT}},
    {"qede", NULL, "qedr", {NULL}},
    {"efa", NULL, "efa", {"no reliable connections: librpma cannot use it"}},
    {"rdma_rxe",
     NULL,
     "rxe",
     {"rpma_conn_cfg_set_retry_count() of 7, the default, means without end",
      "a lost packet fails native flushes, and blocks native atomic writes"}},
    {"siw", NULL, "siw", {NO_TIMEOUT, NO_SEND_IMM, NO_WRITE_IMM}},
};

void add_traps(tree *device) {
    const char *kernel = text_at(device, "driver"), *transport = text_at(device, "transport");
    size_t i = 0;
    while (i < sizeof(drivers) / sizeof(drivers[0]) &&
           (strcmp(drivers[i].kernel, kernel) != 0 ||
            (drivers[i].transport != NULL && strcmp(drivers[i].transport, transport) != 0)))
        i++;
    const bool known = i < sizeof(drivers) / sizeof(drivers[0]);
    if (known)
        add_text(device, "rpma_devices", "%s", drivers[i].name);
    else
        add_null(device, "rpma_devices");
    tree *traps = add_list(device, "traps");
    for (size_t j = 0; known && j < 4 && drivers[i].traps[j] != NULL; j++)
        json_object_array_add(traps, json_object_new_string(drivers[i].traps[j]));
}
