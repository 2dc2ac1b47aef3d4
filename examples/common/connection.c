// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connection.c -- devices, connections, and their private data

#include "common.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define REPLY_TIMEOUT_MS 60000
#define ENDED_TIMEOUT_MS 1000 // for completions after the end of a connection

static uint8_t example; // the number of this example

// The connection of establish(), and the event of its end if await_readable() has taken it.
static struct rpma_conn *watched;
static enum rpma_conn_event end_event;

void set_example(unsigned char number) {
    example = number;
}

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
    const uint8_t numbers[] = {example, (uint8_t)offer->number};
    struct rpma_peer_cfg *pcfg;

    CALL(rpma_peer_cfg_new(&pcfg));
    CALL(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, offer->direct_write));
    if (offer->peer)
        CALL(rpma_peer_cfg_set_served_by(pcfg, offer->peer));
    CALL(rpma_conn_private_data_pack(&offer->mr, offer->mr ? 1 : 0, pcfg, numbers,
                                     offer->number ? 2 : 1, pdata));
    CALL(rpma_peer_cfg_delete(&pcfg));
}

bool is_offer(const struct rpma_conn_private_data *pdata, unsigned *number) {
    const void *bytes;
    uint32_t size;
    if (rpma_conn_private_data_unpack(pdata, NULL, NULL, NULL, &bytes, &size) || size < 1)
        return false;
    const uint8_t *numbers = bytes;
    if (number)
        *number = size == 2 ? numbers[1] : 0;
    return size <= 2 && numbers[0] == example;
}

struct rpma_mr_remote *find_memory(struct rpma_conn *conn, bool *direct_write) {
    struct rpma_conn_private_data pdata;
    struct rpma_mr_remote *mr = NULL;
    struct rpma_peer_cfg *pcfg = NULL;
    uint32_t count = 1;

    if (rpma_conn_get_private_data(conn, &pdata) || !is_offer(&pdata, NULL) ||
        rpma_conn_private_data_unpack(&pdata, &mr, &count, &pcfg, NULL, NULL))
        return NULL;
    if (!pcfg || rpma_conn_apply_remote_peer_cfg(conn, pcfg))
        CALL(rpma_mr_remote_delete(&mr));
    else if (direct_write)
        CALL(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, direct_write));
    CALL(rpma_peer_cfg_delete(&pcfg));
    return count ? mr : NULL;
}

struct rpma_mr_remote *offered_memory(struct rpma_conn *conn, bool *direct_write) {
    struct rpma_mr_remote *mr = find_memory(conn, direct_write);
    if (!mr)
        fail("the other side offers no memory");
    return mr;
}

// RPMA_E_NO_EVENT: there is no event yet, because the descriptor of a request that
// rpma_ep_next_incoming() has returned does not block, or the link address of this side has
// changed, for example of a bond, which does not affect the connection.
enum rpma_conn_event next_event(struct rpma_conn *conn) {
    struct pollfd poll_fd = {.events = POLLIN};
    enum rpma_conn_event event;
    int ret;
    CALL(rpma_conn_get_event_fd(conn, &poll_fd.fd));
    while ((ret = rpma_conn_next_event(conn, &event)) == RPMA_E_NO_EVENT)
        if (poll(&poll_fd, 1, -1) < 0 && errno != EINTR)
            fail("poll: %s", strerror(errno));
    check_call(ret, "rpma_conn_next_event");
    return event;
}

void refuse_request(struct rpma_conn_req *req, const char *reason) {
    printf("server: refused a client: %s\n", reason);
    (void)rpma_conn_req_delete(&req); // also rejects it
}

// No queues are created for a program of another example. They cannot be created if the client
// has gone.
int take_request(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
                 struct rpma_conn_req **req) {
    struct rpma_conn_private_data pdata;
    int ret = rpma_ep_next_incoming(ep, req);
    if (ret)
        return ret;
    CALL(rpma_conn_req_get_private_data(*req, &pdata));
    if (is_offer(&pdata, NULL) && !rpma_conn_req_setup(*req, cfg))
        return 0;
    refuse_request(*req, is_offer(&pdata, NULL) ? "it has gone, or there is no queue for it"
                                                : "it is not of this example");
    *req = NULL;
    return RPMA_E_NO_EVENT;
}

struct rpma_conn_req *next_request(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg) {
    struct rpma_conn_req *req;
    int ret;
    while ((ret = take_request(ep, cfg, &req)) == RPMA_E_NO_EVENT)
        ;
    check_call(ret, "rpma_ep_next_incoming");
    return req;
}

static void expect_event(struct rpma_conn *conn, enum rpma_conn_event expected) {
    enum rpma_conn_event event =
        conn == watched && end_event != RPMA_CONN_UNDEFINED ? end_event : next_event(conn);
    if (event != expected)
        fail("'%s' instead of '%s'%s", rpma_utils_conn_event_2str(event),
             rpma_utils_conn_event_2str(expected),
             event == RPMA_CONN_REJECTED ? ": is the server listening? Is it of this example?"
                                         : "");
}

// The operations that have not completed when the other side has ended the connection complete
// with an error after the disconnection of this side, but not the receives of a shared queue.
static void take_end(void) {
    enum rpma_conn_event event;
    int ret = rpma_conn_next_event(watched, &event);
    if (ret == RPMA_E_NO_EVENT)
        return;
    end_event = ret ? RPMA_CONN_LOST : event;
    (void)rpma_conn_disconnect(watched);
}

void await_readable(int fd) {
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.events = POLLIN}};
    while (!fds[0].revents) {
        bool is_open = watched && end_event == RPMA_CONN_UNDEFINED;
        fds[1].fd = -1;
        if (is_open)
            CALL(rpma_conn_get_event_fd(watched, &fds[1].fd));
        int ready = poll(fds, 2, is_open ? REPLY_TIMEOUT_MS : ENDED_TIMEOUT_MS);
        if (ready < 0 && errno != EINTR)
            fail("poll: %s", strerror(errno));
        if (ready == 0)
            fail(is_open ? "the other side does not reply"
                         : "the other side has ended the connection");
        if (ready > 0 && !fds[0].revents)
            take_end();
    }
}

int begin_connection(struct rpma_conn_req **req, const struct offer *offer,
                     struct rpma_conn **conn) {
    char bytes[PRIVATE_DATA_SIZE];
    struct rpma_conn_private_data pdata = {.ptr = bytes, .len = sizeof(bytes)};
    const struct offer nothing = {.peer = NULL};
    pack_offer(offer ? offer : &nothing, &pdata);
    return rpma_conn_req_connect(req, &pdata, conn);
}

static struct rpma_conn *watch_connection(struct rpma_conn *conn) {
    watched = conn;
    end_event = RPMA_CONN_UNDEFINED;
    return conn;
}

struct rpma_conn *establish(struct rpma_conn_req **req, const struct offer *offer) {
    struct rpma_conn_private_data pdata;
    struct rpma_conn *conn;
    CALL(begin_connection(req, offer, &conn));
    expect_event(conn, RPMA_CONN_ESTABLISHED);
    CALL(rpma_conn_get_private_data(conn, &pdata));
    if (!is_offer(&pdata, NULL))
        fail("the other side is not of this example");
    return watch_connection(conn);
}

struct rpma_conn *try_accept(struct rpma_conn_req **req, const struct offer *offer) {
    struct rpma_conn *conn = NULL;
    int ret = begin_connection(req, offer, &conn);
    enum rpma_conn_event event = ret ? RPMA_CONN_LOST : next_event(conn);
    if (event == RPMA_CONN_ESTABLISHED)
        return watch_connection(conn);
    printf("server: lost a client while it connected: %s\n",
           ret ? rpma_err_2str(ret) : rpma_utils_conn_event_2str(event));
    CALL(rpma_conn_delete(&conn));
    return NULL;
}

struct rpma_conn *accept_client(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
                                const struct offer *offer) {
    struct rpma_conn *conn = NULL;
    while (!conn) {
        struct rpma_conn_req *req = next_request(ep, cfg);
        conn = try_accept(&req, offer);
    }
    return conn;
}

struct rpma_conn *connect_to_server(struct rpma_peer *peer, const struct arguments *args,
                                    const struct rpma_conn_cfg *cfg,
                                    const struct offer *offer) {
    struct rpma_conn_req *req;
    CALL(rpma_conn_req_new(peer, args->addr, args->port, cfg, &req));
    return establish(&req, offer);
}

static void end_connection(struct rpma_conn **conn) {
    watched = NULL;
    CALL(rpma_conn_delete(conn));
}

void disconnect(struct rpma_conn **conn) {
    CALL(rpma_conn_disconnect(*conn));
    expect_event(*conn, RPMA_CONN_CLOSED);
    end_connection(conn);
}

// Disconnect on this side as well: otherwise the other side gets the event only after a
// timeout.
void await_disconnect(struct rpma_conn **conn) {
    expect_event(*conn, RPMA_CONN_CLOSED);
    CALL(rpma_conn_disconnect(*conn));
    end_connection(conn);
}
