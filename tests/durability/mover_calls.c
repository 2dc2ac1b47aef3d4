// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mover_calls.c -- the functions of librpma and of the C library that the programs of example
// 15 call, besides those of calls.c and services.c. The linker's --wrap replaces them

#include "calls.h"

#include <librpma.h>
#include <rdma-sim.h>
#include <sys/epoll.h>

// ---- the port
//
// All messages of the connection manager share a queue pair, which fails on soft-RoCE if one of
// them cannot be sent. So a program queries its port before each message.

#define CONNECTIONS_MAX 64

static struct ibv_context *device;
static bool has_queried, has_lost_message;
static const struct rpma_conn *established[CONNECTIONS_MAX];

static bool is_port_down(void) {
    struct ibv_port_attr attr;
    return device && !ibv_query_port(device, 1, &attr) && attr.state != IBV_PORT_ACTIVE;
}

// Returns false if the connection is not in the list.
static bool replace_connection(const struct rpma_conn *old, const struct rpma_conn *by) {
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
        if (established[i] == old) {
            established[i] = by;
            return true;
        }
    return false;
}

WRAPS(int, rpma_peer_new, struct ibv_context *context, struct rpma_peer **peer) {
    device = context;
    return __real_rpma_peer_new(context, peer);
}

WRAPS(int, rpma_peer_delete, struct rpma_peer **peer) {
    device = NULL;
    return __real_rpma_peer_delete(peer);
}

WRAPS(int, rpma_peer_get_ibv_pd, const struct rpma_peer *peer, struct ibv_pd **pd) {
    has_queried = true;
    return __real_rpma_peer_get_ibv_pd(peer, pd);
}

WRAPS(int, rpma_conn_req_connect, struct rpma_conn_req **req,
      const struct rpma_conn_private_data *pdata, struct rpma_conn **conn) {
    const bool was_down = !has_queried && is_port_down();
    const int ret = __real_rpma_conn_req_connect(req, pdata, conn);
    has_lost_message |= !ret && was_down && is_port_down();
    has_queried = false;
    return ret;
}

WRAPS(int, rpma_conn_delete, struct rpma_conn **conn) {
    const struct rpma_conn *const deleted = *conn;
    const bool sends = deleted && replace_connection(deleted, NULL);
    const bool was_down = sends && !has_queried && is_port_down();
    const int ret = __real_rpma_conn_delete(conn);
    handle_delete(this_program, deleted);
    has_lost_message |= was_down && is_port_down();
    has_queried &= !sends;
    return ret;
}

// The side that gets the event of the end sends no message when it deletes its connection.
WRAPS(int, rpma_conn_next_event, struct rpma_conn *conn, enum rpma_conn_event *event) {
    const int ret = __real_rpma_conn_next_event(conn, event);
    if (!ret && *event == RPMA_CONN_ESTABLISHED)
        replace_connection(NULL, conn);
    else if (!ret)
        replace_connection(conn, NULL);
    return ret;
}

// ---- waits

#define WATCHED_MAX 64

static struct watched {
    int fd;
    struct epoll_event event;
} watched[WATCHED_MAX];
static unsigned watched_count, next_early;

WRAPS(int, epoll_ctl, int epoll, int operation, int fd, struct epoll_event *event) {
    const int ret = __real_epoll_ctl(epoll, operation, fd, event);
    unsigned i = 0; // a closed descriptor has the same number
    while (i < watched_count && watched[i].fd != fd)
        i++;
    if (!ret && operation == EPOLL_CTL_ADD && i < WATCHED_MAX) {
        watched[i] = (struct watched){fd, *event};
        watched_count += i == watched_count;
    }
    return ret;
}

// A descriptor that is reported may not be ready when the program reads it: poll(2). The kernel
// refuses to modify one that was closed or is no longer watched.
static bool reports_early(int epoll, struct epoll_event *event) {
    if (watched_count == 0 || rdma_sim_random() % 8 != 0)
        return false;
    struct watched *const early = &watched[next_early++ % watched_count];
    if (early->fd == signals_fd ||
        __real_epoll_ctl(epoll, EPOLL_CTL_MOD, early->fd, &early->event))
        return false;
    *event = early->event;
    return true;
}

// -Depoll_wait=wait_for_events
int wait_for_events(int epoll, struct epoll_event *events, int maximum, int milliseconds);
int wait_for_events(int epoll, struct epoll_event *events, int maximum, int milliseconds) {
    handle_wait(this_program, is_port_down);
    has_queried = false;
    if (reports_early(epoll, events))
        return 1;
    return rdma_sim_epoll_wait(epoll, events, maximum, milliseconds);
}

// ---- queues and messages

WRAPS(int, rpma_srq_cfg_set_rq_size, struct rpma_srq_cfg *cfg, uint32_t size) {
    handle_srq(this_program, size);
    return __real_rpma_srq_cfg_set_rq_size(cfg, size);
}

WRAPS(int, rpma_srq_recv, struct rpma_srq *srq, struct rpma_mr_local *mr, size_t offset,
      size_t size, const void *context) {
    const int ret = __real_rpma_srq_recv(srq, mr, offset, size, context);
    handle_receive(this_program, ret ? NULL : context);
    return ret;
}

WRAPS(int, rpma_conn_req_start, struct rpma_peer *peer, const char *addr, const char *port,
      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req) {
    handle_connect(this_program, addr, has_lost_message);
    return __real_rpma_conn_req_start(peer, addr, port, cfg, req);
}

WRAPS(int, rpma_conn_req_setup, struct rpma_conn_req *req, const struct rpma_conn_cfg *cfg) {
    handle_setup(this_program);
    return __real_rpma_conn_req_setup(req, cfg);
}

WRAPS(int, rpma_conn_get_qp_num, const struct rpma_conn *conn, uint32_t *number) {
    const int ret = __real_rpma_conn_get_qp_num(conn, number);
    if (!ret)
        handle_qp_num(this_program, conn, *number);
    return ret;
}

WRAPS(int, rpma_batch_set, struct rpma_batch *batch, uint32_t index,
      const struct rpma_work *work) {
    void *memory;
    if (work->type == RPMA_WORK_SEND && !rpma_mr_get_ptr(work->local.mr, &memory))
        handle_send(this_program, batch, (char *)memory + work->local.offset);
    return __real_rpma_batch_set(batch, index, work);
}
