// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma.c -- the loops as a user of librpma writes them; runs on any librpma.so.0

#include <librpma.h>

#include "../provider/provider.h"
#include "loops.h"

#include <stdlib.h>

static struct rpma_conn *conn;
#ifdef PROVIDER_NATIVE
static struct rpma_conn *native_conn;
#endif
static struct rpma_cq *cq, *empty_cq;
static struct rpma_mr_local *local;
static struct rpma_mr_remote *remote;

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

static void write_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_write(conn, remote, 0, local, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS,
                        NULL) == 0,
             "rpma_write");
}

static void read_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_read(conn, local, 0, remote, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS,
                       NULL) == 0,
             "rpma_read");
}

// Through a variable, as all loops: the caller's part of a count stays comparable.
static inline void flushes(struct rpma_conn **through, unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_flush(*through, remote, 0, TRANSFER_BYTES, RPMA_FLUSH_TYPE_PERSISTENT,
                        RPMA_F_COMPLETION_ALWAYS, NULL) == 0,
             "rpma_flush");
}

static void flush_loop(unsigned long times) {
    flushes(&conn, times);
}

static inline void atomic_writes(struct rpma_conn **through, unsigned long times) {
    static const char bytes[ATOMIC_BYTES];
    for (unsigned long i = 0; i < times; i++)
        must(rpma_atomic_write(*through, remote, 0, bytes, RPMA_F_COMPLETION_ALWAYS, NULL) == 0,
             "rpma_atomic_write");
}

static void atomic_write_loop(unsigned long times) {
    atomic_writes(&conn, times);
}

static void send_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_send(conn, local, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS, NULL) == 0,
             "rpma_send");
}

static void recv_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_recv(conn, local, 0, TRANSFER_BYTES, NULL) == 0, "rpma_recv");
}

static void poll_loop(unsigned long times) {
    struct ibv_wc wc;
    for (unsigned long i = 0; i < times; i++)
        must(rpma_cq_get_wc(cq, 1, &wc, NULL) == 0, "rpma_cq_get_wc");
}

static void poll_empty_loop(unsigned long times) {
    struct ibv_wc wc;
    for (unsigned long i = 0; i < times; i++)
        must(rpma_cq_get_wc(empty_cq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION, "rpma_cq_get_wc");
}

#ifdef PROVIDER_NATIVE
static void native_flush_loop(unsigned long times) {
    flushes(&native_conn, times);
}

static void native_atomic_write_loop(unsigned long times) {
    atomic_writes(&native_conn, times);
}
#endif

const struct loop loops[] = {
    {"write", write_loop},
    {"read", read_loop},
    {"flush", flush_loop},
    {"atomic_write", atomic_write_loop},
    {"send", send_loop},
    {"recv", recv_loop},
    {"poll", poll_loop},
    {"poll_empty", poll_empty_loop},
#ifdef PROVIDER_NATIVE
    {"native_flush", native_flush_loop},
    {"native_atomic_write", native_atomic_write_loop},
#endif
    {0},
};
