// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connection.c -- devices, connections, and their private data

#include "common.h"

struct rpma_peer *open_peer(const char *addr, enum rpma_util_ibv_context_type type) {
    struct ibv_context *context;
    struct rpma_peer *peer;
    int ret = rpma_utils_get_ibv_context(addr, type, &context);
    if (ret)
        fail("no RDMA device for the address %s: %s", addr, rpma_err_2str(ret));
    CALL(rpma_peer_new(context, &peer));
    return peer;
}

// Plain memory is not persistent, so its registration does not allow persistent flushes.
struct side open_side(struct rpma_peer *peer, const char *file, size_t size, int usage) {
    struct side side = {.peer = peer, .memory = open_memory(file, size)};
    if (!side.memory.is_pmem)
        usage &= ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    CALL(rpma_mr_reg(peer, side.memory.ptr, size, usage, &side.mr));
    return side;
}

struct side open_server_side(const struct arguments *args, size_t size, int usage) {
    return open_side(open_peer(args->addr, RPMA_UTIL_IBV_CONTEXT_LOCAL), args->file, size,
                     usage);
}

struct side open_client_side(const struct arguments *args, size_t size, int usage) {
    return open_side(open_peer(args->addr, RPMA_UTIL_IBV_CONTEXT_REMOTE), args->file, size,
                     usage);
}

void close_side(struct side *side) {
    CALL(rpma_mr_dereg(&side->mr));
    CALL(rpma_peer_delete(&side->peer));
    close_memory(&side->memory);
}

struct rpma_conn_cfg *make_conn_cfg(uint32_t rcq_size, bool shared_channel) {
    struct rpma_conn_cfg *cfg;
    CALL(rpma_conn_cfg_new(&cfg));
    CALL(rpma_conn_cfg_set_rcq_size(cfg, rcq_size));
    CALL(rpma_conn_cfg_set_compl_channel(cfg, shared_channel));
    return cfg;
}

struct rpma_ep *start_listening(struct rpma_peer *peer, const struct arguments *args) {
    struct rpma_ep *ep;
    CALL(rpma_ep_listen(peer, args->addr, args->port, &ep));
    printf("server: listening on %s port %s\n", args->addr, args->port);
    return ep;
}

void pack_offer(const struct offer *offer, struct rpma_conn_private_data *pdata) {
    uint8_t number = (uint8_t)offer->number;
    struct rpma_peer_cfg *pcfg;

    CALL(rpma_peer_cfg_new(&pcfg));
    CALL(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, offer->direct_write));
    CALL(rpma_peer_cfg_set_served_by(pcfg, offer->peer));
    CALL(rpma_conn_private_data_pack(&offer->mr, offer->mr ? 1 : 0, pcfg, &number,
                                     number ? 1 : 0, pdata));
    CALL(rpma_peer_cfg_delete(&pcfg));
}

unsigned offered_number(const struct rpma_conn *conn) {
    struct rpma_conn_private_data pdata;
    const void *bytes;
    uint32_t size;

    CALL(rpma_conn_get_private_data(conn, &pdata));
    CALL(rpma_conn_private_data_unpack(&pdata, NULL, NULL, NULL, &bytes, &size));
    if (size != 1)
        fail("the other side sent no number");
    return *(const uint8_t *)bytes;
}

struct rpma_mr_remote *offered_memory(struct rpma_conn *conn, bool *direct_write) {
    struct rpma_conn_private_data pdata;
    struct rpma_mr_remote *mr;
    struct rpma_peer_cfg *pcfg;
    uint32_t count = 1;

    CALL(rpma_conn_get_private_data(conn, &pdata));
    CALL(rpma_conn_private_data_unpack(&pdata, &mr, &count, &pcfg, NULL, NULL));
    if (count == 0 || !pcfg)
        fail("the other side offers no memory");
    CALL(rpma_conn_apply_remote_peer_cfg(conn, pcfg));
    if (direct_write)
        CALL(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, direct_write));
    CALL(rpma_peer_cfg_delete(&pcfg));
    return mr;
}

// Here and below, RPMA_E_NO_EVENT means that the link address of this side has changed, for
// example of a bond: the connection or endpoint is not affected.
enum rpma_conn_event next_event(struct rpma_conn *conn) {
    enum rpma_conn_event event;
    int ret;
    while ((ret = rpma_conn_next_event(conn, &event)) == RPMA_E_NO_EVENT)
        ;
    check_call(ret, "rpma_conn_next_event");
    return event;
}

struct rpma_conn_req *next_request(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg) {
    struct rpma_conn_req *req;
    int ret;
    while ((ret = rpma_ep_next_conn_req(ep, cfg, &req)) == RPMA_E_NO_EVENT)
        ;
    check_call(ret, "rpma_ep_next_conn_req");
    return req;
}

static void expect_event(struct rpma_conn *conn, enum rpma_conn_event expected) {
    enum rpma_conn_event event = next_event(conn);
    if (event != expected)
        fail("'%s' instead of '%s'%s", rpma_utils_conn_event_2str(event),
             rpma_utils_conn_event_2str(expected),
             event == RPMA_CONN_REJECTED ? ": is the server listening?" : "");
}

struct rpma_conn *establish(struct rpma_conn_req **req, const struct offer *offer) {
    char bytes[PRIVATE_DATA_SIZE];
    struct rpma_conn_private_data pdata = {.ptr = bytes, .len = sizeof(bytes)};
    struct rpma_conn *conn;
    if (offer)
        pack_offer(offer, &pdata);
    CALL(rpma_conn_req_connect(req, offer ? &pdata : NULL, &conn));
    expect_event(conn, RPMA_CONN_ESTABLISHED);
    return conn;
}

struct rpma_conn *accept_client(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
                                const struct offer *offer) {
    struct rpma_conn_req *req = next_request(ep, cfg);
    return establish(&req, offer);
}

struct rpma_conn *connect_to_server(struct rpma_peer *peer, const struct arguments *args,
                                    const struct rpma_conn_cfg *cfg,
                                    const struct offer *offer) {
    struct rpma_conn_req *req;
    CALL(rpma_conn_req_new(peer, args->addr, args->port, cfg, &req));
    return establish(&req, offer);
}

void disconnect(struct rpma_conn **conn) {
    CALL(rpma_conn_disconnect(*conn));
    expect_event(*conn, RPMA_CONN_CLOSED);
    CALL(rpma_conn_delete(conn));
}

// Disconnect on this side as well: otherwise the other side gets the event only after a
// timeout.
void await_disconnect(struct rpma_conn **conn) {
    expect_event(*conn, RPMA_CONN_CLOSED);
    CALL(rpma_conn_disconnect(*conn));
    CALL(rpma_conn_delete(conn));
}
