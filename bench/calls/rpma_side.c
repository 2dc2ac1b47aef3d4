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
struct rpma_conn *full_conn, *shared_conn;
struct rpma_cq *cq, *empty_cq;
struct rpma_peer *peer;
struct rpma_mr_local *local;
struct rpma_mr_remote *remote;

static const char *const address = "127.0.0.1";

static struct rpma_peer *open_device(const char *behind) {
    struct ibv_context *device;
    struct rpma_peer *opened;
    must(rpma_utils_get_ibv_context(behind, RPMA_UTIL_IBV_CONTEXT_REMOTE, &device) == 0,
         "rpma_utils_get_ibv_context");
    must(rpma_peer_new(device, &opened) == 0, "rpma_peer_new");
    return opened;
}

static void register_memory(void) {
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

static struct rpma_conn *connect_to(struct rpma_peer *from, const char *to,
                                    const struct rpma_conn_cfg *cfg) {
    struct rpma_conn_req *req;
    struct rpma_conn *made;
    enum rpma_conn_event event;
    must(rpma_conn_req_new(from, to, "7204", cfg, &req) == 0, "rpma_conn_req_new");
    must(rpma_conn_req_connect(&req, NULL, &made) == 0, "rpma_conn_req_connect");
    must(rpma_conn_next_event(made, &event) == 0 && event == RPMA_CONN_ESTABLISHED,
         "rpma_conn_next_event");
    return made;
}

struct rpma_conn *connect_one(void) {
    return connect_to(peer, address, NULL);
}

static struct rpma_conn_cfg *new_cfg(void) {
    struct rpma_conn_cfg *cfg;
    must(rpma_conn_cfg_new(&cfg) == 0, "rpma_conn_cfg_new");
    adapt_side(cfg);
    return cfg;
}

static struct rpma_conn *connect_with_cq(struct rpma_peer *from, const char *to,
                                         uint32_t entries, struct rpma_cq **its_cq) {
    struct rpma_conn_cfg *cfg = new_cfg();
    must(rpma_conn_cfg_set_cq_size(cfg, entries) == 0, "rpma_conn_cfg_set_cq_size");
    // A native list that is longer than the queue would go in parts.
    must(rpma_conn_cfg_set_sq_size(cfg, 1024) == 0, "rpma_conn_cfg_set_sq_size");
    struct rpma_conn *made = connect_to(from, to, cfg);
    rpma_conn_cfg_delete(&cfg);
    must(rpma_conn_get_cq(made, its_cq) == 0, "rpma_conn_get_cq");
    allow_persistent_flush(made);
    return made;
}

static struct rpma_conn *connect_otherwise(uint32_t sq_size, bool shared_channel) {
    struct rpma_conn_cfg *cfg = new_cfg();
    must(rpma_conn_cfg_set_sq_size(cfg, sq_size) == 0, "rpma_conn_cfg_set_sq_size");
    must(rpma_conn_cfg_set_compl_channel(cfg, shared_channel) == 0,
         "rpma_conn_cfg_set_compl_channel");
    struct rpma_conn *made = connect_to(peer, address, cfg);
    rpma_conn_cfg_delete(&cfg);
    return made;
}

// Does nothing, so that only the library's own work for a log line is counted.
static void log_nothing(enum rpma_log_level level, const char *file, const int line,
                        const char *function, const char *format, ...) {
    (void)level, (void)file, (void)line, (void)function, (void)format;
}

void connect_side(void) {
    rpma_log_set_function(log_nothing);
    peer = open_device(address);
    register_memory();
    connect_with_cq(peer, address, PROVIDER_EMPTY_CQ, &empty_cq);
    conn = connect_with_cq(peer, address, 1, &cq);
    full_conn = connect_otherwise(PROVIDER_FULL_SQ, false);
    shared_conn = connect_otherwise(PROVIDER_FULL_SQ + 1, true);
#ifdef PROVIDER_NATIVE
    struct rpma_cq *native_cq;
    native_conn = connect_with_cq(open_device(PROVIDER_NATIVE_ADDRESS), PROVIDER_NATIVE_ADDRESS,
                                  1, &native_cq);
#endif
}
