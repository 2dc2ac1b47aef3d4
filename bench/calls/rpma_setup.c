// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma_setup.c -- connections and memory of the loops over librpma, on the do-nothing provider

#include "rpma_setup.h"

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

static struct rpma_peer *open_device(const char *remote_address) {
    struct ibv_context *device;
    struct rpma_peer *new_peer;
    must(rpma_utils_get_ibv_context(remote_address, RPMA_UTIL_IBV_CONTEXT_REMOTE, &device) == 0,
         "rpma_utils_get_ibv_context");
    must(rpma_peer_new(device, &new_peer) == 0, "rpma_peer_new");
    return new_peer;
}

static void register_memory(void) {
    static char memory[4096];
    const int all_usages = 0xff; // RPMA_MR_USAGE_*
    must(rpma_mr_reg(peer, memory, sizeof(memory), all_usages, &local) == 0, "rpma_mr_reg");
    char descriptor[64];
    size_t size;
    must(rpma_mr_get_descriptor_size(local, &size) == 0 && size <= sizeof(descriptor),
         "rpma_mr_get_descriptor_size");
    must(rpma_mr_get_descriptor(local, descriptor) == 0, "rpma_mr_get_descriptor");
    must(rpma_mr_remote_from_descriptor(descriptor, size, &remote) == 0,
         "rpma_mr_remote_from_descriptor");
}

static void allow_persistent_flush(struct rpma_conn *new_conn) {
    struct rpma_peer_cfg *pcfg;
    must(rpma_peer_cfg_new(&pcfg) == 0, "rpma_peer_cfg_new");
    must(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true) == 0,
         "rpma_peer_cfg_set_direct_write_to_pmem");
    must(rpma_conn_apply_remote_peer_cfg(new_conn, pcfg) == 0,
         "rpma_conn_apply_remote_peer_cfg");
    rpma_peer_cfg_delete(&pcfg);
}

static struct rpma_conn *connect_to(struct rpma_peer *from, const char *to,
                                    const struct rpma_conn_cfg *cfg) {
    struct rpma_conn_req *req;
    struct rpma_conn *new_conn;
    enum rpma_conn_event event;
    must(rpma_conn_req_new(from, to, "7204", cfg, &req) == 0, "rpma_conn_req_new");
    must(rpma_conn_req_connect(&req, NULL, &new_conn) == 0, "rpma_conn_req_connect");
    must(rpma_conn_next_event(new_conn, &event) == 0 && event == RPMA_CONN_ESTABLISHED,
         "rpma_conn_next_event");
    return new_conn;
}

struct rpma_conn *connect_one(void) {
    return connect_to(peer, address, NULL);
}

static struct rpma_conn_cfg *new_cfg(void) {
    struct rpma_conn_cfg *cfg;
    must(rpma_conn_cfg_new(&cfg) == 0, "rpma_conn_cfg_new");
    add_settings(cfg);
    return cfg;
}

static struct rpma_conn *connect_with_cq(struct rpma_peer *from, const char *to,
                                         uint32_t entries, struct rpma_cq **conn_cq) {
    struct rpma_conn_cfg *cfg = new_cfg();
    must(rpma_conn_cfg_set_cq_size(cfg, entries) == 0, "rpma_conn_cfg_set_cq_size");
    // A native list that exceeds the send queue would be posted in parts.
    must(rpma_conn_cfg_set_sq_size(cfg, 1024) == 0, "rpma_conn_cfg_set_sq_size");
    struct rpma_conn *new_conn = connect_to(from, to, cfg);
    rpma_conn_cfg_delete(&cfg);
    must(rpma_conn_get_cq(new_conn, conn_cq) == 0, "rpma_conn_get_cq");
    allow_persistent_flush(new_conn);
    return new_conn;
}

static struct rpma_conn *connect_with_settings(uint32_t sq_size, bool shared_channel) {
    struct rpma_conn_cfg *cfg = new_cfg();
    must(rpma_conn_cfg_set_sq_size(cfg, sq_size) == 0, "rpma_conn_cfg_set_sq_size");
    must(rpma_conn_cfg_set_compl_channel(cfg, shared_channel) == 0,
         "rpma_conn_cfg_set_compl_channel");
    struct rpma_conn *new_conn = connect_to(peer, address, cfg);
    rpma_conn_cfg_delete(&cfg);
    return new_conn;
}

// Does nothing: only the library's own instructions for a log line are counted.
static void discard_message(enum rpma_log_level level, const char *file, const int line,
                            const char *function, const char *format, ...) {
    (void)level, (void)file, (void)line, (void)function, (void)format;
}

void create_objects(void) {
    rpma_log_set_function(discard_message);
    peer = open_device(address);
    register_memory();
    connect_with_cq(peer, address, PROVIDER_EMPTY_CQ, &empty_cq);
    conn = connect_with_cq(peer, address, 1, &cq);
    full_conn = connect_with_settings(PROVIDER_FULL_SQ, false);
    shared_conn = connect_with_settings(PROVIDER_FULL_SQ + 1, true);
#ifdef PROVIDER_NATIVE
    struct rpma_cq *native_cq;
    native_conn = connect_with_cq(open_device(PROVIDER_NATIVE_ADDRESS), PROVIDER_NATIVE_ADDRESS,
                                  1, &native_cq);
#endif
}
