// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma_side.c -- connections over the provider that does nothing, and memory for transfers

#include "rpma_side.h"

#include "../provider/provider.h"
#include "loops.h"

struct rpma_conn *conn;
#ifdef PROVIDER_NATIVE
struct rpma_conn *native_conn;
#endif
struct rpma_cq *cq, *empty_cq;
struct rpma_mr_local *local;
struct rpma_mr_remote *remote;

static struct rpma_peer *open_device(const char *address) {
    struct ibv_context *device;
    struct rpma_peer *peer;
    must(rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_REMOTE, &device) == 0,
         "rpma_utils_get_ibv_context");
    must(rpma_peer_new(device, &peer) == 0, "rpma_peer_new");
    return peer;
}

static void register_memory(struct rpma_peer *peer) {
    static char memory[4096];
    const int everything = 0xff; // RPMA_MR_USAGE_*
    must(rpma_mr_reg(peer, memory, sizeof(memory), everything, &local) == 0, "rpma_mr_reg");
    char descriptor[64];
    size_t size;
    must(rpma_mr_get_descriptor_size(local, &size) == 0 && size <= sizeof(descriptor),
         "rpma_mr_get_descriptor_size");
    must(rpma_mr_get_descriptor(local, descriptor) == 0, "rpma_mr_get_descriptor");
    must(rpma_mr_remote_from_descriptor(descriptor, size, &remote) == 0,
         "rpma_mr_remote_from_descriptor");
}

static void allow_persistent_flush(struct rpma_conn *made) {
    struct rpma_peer_cfg *pcfg;
    must(rpma_peer_cfg_new(&pcfg) == 0, "rpma_peer_cfg_new");
    must(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true) == 0,
         "rpma_peer_cfg_set_direct_write_to_pmem");
    must(rpma_conn_apply_remote_peer_cfg(made, pcfg) == 0, "rpma_conn_apply_remote_peer_cfg");
    rpma_peer_cfg_delete(&pcfg);
}

static struct rpma_conn *connect_with_cq(struct rpma_peer *peer, const char *address,
                                         uint32_t entries, struct rpma_cq **its_cq) {
    struct rpma_conn_cfg *cfg;
    struct rpma_conn_req *req;
    struct rpma_conn *made;
    enum rpma_conn_event event;
    must(rpma_conn_cfg_new(&cfg) == 0, "rpma_conn_cfg_new");
    must(rpma_conn_cfg_set_cq_size(cfg, entries) == 0, "rpma_conn_cfg_set_cq_size");
    must(rpma_conn_req_new(peer, address, "7204", cfg, &req) == 0, "rpma_conn_req_new");
    rpma_conn_cfg_delete(&cfg);
    must(rpma_conn_req_connect(&req, NULL, &made) == 0, "rpma_conn_req_connect");
    must(rpma_conn_next_event(made, &event) == 0 && event == RPMA_CONN_ESTABLISHED,
         "rpma_conn_next_event");
    must(rpma_conn_get_cq(made, its_cq) == 0, "rpma_conn_get_cq");
    allow_persistent_flush(made);
    return made;
}

void connect_side(void) {
    const char *address = "127.0.0.1";
    struct rpma_peer *peer = open_device(address);
    register_memory(peer);
    connect_with_cq(peer, address, PROVIDER_EMPTY_CQ, &empty_cq);
    conn = connect_with_cq(peer, address, 1, &cq);
#ifdef PROVIDER_NATIVE
    struct rpma_cq *native_cq;
    native_conn = connect_with_cq(open_device(PROVIDER_NATIVE_ADDRESS), PROVIDER_NATIVE_ADDRESS,
                                  1, &native_cq);
#endif
}
