// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// packed.c -- commands for packed private data

#include "peer.h"

/* Packs count= regions from mr= on, a configuration with the direct write to PMem of direct= if
 * that is given, and the bytes of bytes=. served=1 states what the peer serves. */
static int do_pack(const struct args *args) {
    const struct rpma_mr_local *mrs[MAX_REGIONS];
    unsigned char bytes[UINT8_MAX], data[UINT8_MAX];
    struct rpma_conn_private_data pdata = {data, (uint8_t)arg_number_or(args, "room", 255)};
    size_t first = arg_slot(args, "mr", MAX_REGIONS);
    uint32_t count = (uint32_t)arg_number_or(args, "count", 1);
    size_t len = arg_bytes(args, "bytes", bytes, sizeof(bytes));
    bool is_stated = arg_text_or(args, "direct", NULL) != NULL;
    struct rpma_peer_cfg *pcfg = NULL;
    int ret = is_stated ? rpma_peer_cfg_new(&pcfg) : 0;
    for (uint32_t i = 0; i < count; i++)
        mrs[i] = world.mr[first + i];
    if (ret == 0 && is_stated)
        ret = rpma_peer_cfg_set_direct_write_to_pmem(pcfg, arg_number(args, "direct") != 0);
    if (ret == 0 && arg_number_or(args, "served", 0) != 0)
        ret = rpma_peer_cfg_set_served_by(pcfg, world.peer);
    if (ret == 0)
        ret = rpma_conn_private_data_pack(mrs, count, pcfg, bytes, (uint32_t)len, &pdata);
    if (ret == 0)
        reply_bytes("packed", pdata.ptr, pdata.len);
    rpma_peer_cfg_delete(&pcfg);
    return ret;
}

static int take(const struct args *args, struct rpma_peer_cfg *pcfg) {
    bool direct = false, is_stated = false, flush = false, atomic_write = false;
    int ret = rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct);
    if (ret == 0)
        ret = rpma_peer_cfg_get_served(pcfg, &is_stated, &flush, &atomic_write);
    reply("direct=%d stated=%d flush=%d atomic=%d", direct, is_stated, flush, atomic_write);
    if (ret == 0 && arg_number_or(args, "apply", 0) != 0)
        ret = rpma_conn_apply_remote_peer_cfg(the_conn(args), pcfg);
    rpma_peer_cfg_delete(&pcfg);
    return ret;
}

/* Unpacks packed=, or else the connection's private data: makes the remote regions from rmr=
 * on, and answers with the rest. apply=1: the connection applies the configuration. */
static int do_unpack(const struct args *args) {
    unsigned char data[UINT8_MAX];
    struct rpma_conn_private_data pdata = {
        data, (uint8_t)arg_bytes(args, "packed", data, sizeof(data))};
    size_t first = arg_slot(args, "rmr", MAX_REGIONS);
    uint32_t count = (uint32_t)(MAX_REGIONS - first), len = 0;
    struct rpma_peer_cfg *pcfg = NULL;
    const void *bytes = NULL;
    int ret = pdata.len == 0 ? rpma_conn_get_private_data(the_conn(args), &pdata) : 0;
    if (ret == 0)
        ret = rpma_conn_private_data_unpack(&pdata, &world.remote[first], &count, &pcfg, &bytes,
                                            &len);
    if (ret != 0)
        return ret;
    reply("regions=%u", count);
    reply_bytes("bytes", bytes, len);
    return pcfg != NULL ? take(args, pcfg) : 0;
}

const struct command packed_commands[] = {
    {"pack", do_pack},
    {"unpack", do_unpack},
    {NULL, NULL},
};
