// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure_table.c -- the failures that the original knows as well, and the calls that cause
// them

#include "failure_lines.h"

#include <netdb.h>

CALL(new_peer, rpma_peer_new(fake_context(0), &w.h.peer))
CALL(is_odp_capable, rpma_utils_ibv_context_is_odp_capable(fake_context(0), &w.h.odp))
CALL(local_device,
     rpma_utils_get_ibv_context("here", RPMA_UTIL_IBV_CONTEXT_LOCAL, &w.h.context))
CALL(remote_device,
     rpma_utils_get_ibv_context("there", RPMA_UTIL_IBV_CONTEXT_REMOTE, &w.h.context))
CALL(reg, rpma_mr_reg(w.h.peer, w.memory + 8, 24,
                      RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC, &w.h.mr))
CALL(dereg, rpma_mr_dereg(&w.h.mr))
CALL(advise, rpma_mr_advise(w.h.mr, 8, 16, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0))
CALL(listen_there, rpma_ep_listen(w.h.peer, "there", "7205", &w.h.ep))
CALL(shutdown_ep, rpma_ep_shutdown(&w.h.ep))
CALL(next_request, rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req))
CALL(delete_request, rpma_conn_req_delete(&w.h.req))
CALL(next_event, rpma_conn_next_event(w.h.conn, &w.h.event))
CALL(disconnect, rpma_conn_disconnect(w.h.conn))
CALL(delete_conn, rpma_conn_delete(&w.h.conn))
CALL(wait_cq, rpma_cq_wait(world_cq(&w)))
CALL(wait_conn, rpma_conn_wait(w.h.conn, 0, &w.h.fired, NULL))
CALL(poll, rpma_cq_get_wc(world_cq(&w), 1, &w.h.wc, NULL))
CALL(new_srq, rpma_srq_new(w.h.peer, w.h.srq_cfg, &w.h.srq))
CALL(read_it, rpma_read(w.h.conn, w.h.mr, 16, w.h.remote, 8, 24, RPMA_F_COMPLETION_ALWAYS,
                        (void *)0x1122))
CALL(write_it, rpma_write(w.h.conn, w.h.remote, 8, w.h.mr, 16, 24, RPMA_F_COMPLETION_ON_ERROR,
                          (void *)0x1122))
CALL(write_imm, rpma_write_with_imm(w.h.conn, w.h.remote, 8, w.h.mr, 16, 24,
                                    RPMA_F_COMPLETION_ALWAYS, 5, (void *)0x1122))
CALL(write_atomically, rpma_atomic_write(w.h.conn, w.h.remote, 8, (const char *)w.memory,
                                         RPMA_F_COMPLETION_ALWAYS, (void *)0x1122))
CALL(flush_visibly, rpma_flush(w.h.conn, w.h.remote, 8, 24, RPMA_FLUSH_TYPE_VISIBILITY,
                               RPMA_F_COMPLETION_ALWAYS, (void *)0x1122))
CALL(flush_persistently, rpma_flush(w.h.conn, w.h.remote, 8, 24, RPMA_FLUSH_TYPE_PERSISTENT,
                                    RPMA_F_COMPLETION_ALWAYS, (void *)0x1122))
CALL(send_it, rpma_send(w.h.conn, w.h.mr, 16, 24, RPMA_F_COMPLETION_ALWAYS, (void *)0x1122))
CALL(receive, rpma_recv(w.h.conn, w.h.mr, 16, 24, (void *)0x1122))
CALL(receive_early, rpma_conn_req_recv(w.h.req, w.h.mr, 16, 24, (void *)0x1122))
CALL(delete_nothing, rpma_mr_remote_delete(NULL))

// InfiniBand and RoCE carry 56 bytes with a request, 196 with an acceptance.
static int connect_with(uint8_t length) {
    static char data[197];
    const struct rpma_conn_private_data private_data = {data, length};
    return rpma_conn_req_connect(&w.h.req, &private_data, &w.h.conn);
}
CALL(connect_it, connect_with(57))
CALL(accept_it, connect_with(197))

CALL(delete_peer, rpma_mr_dereg(&w.h.mr) == 0 ? rpma_peer_delete(&w.h.peer) : -1)

static int flush_without_direct_write(void) {
    (void)rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, false);
    (void)rpma_conn_apply_remote_peer_cfg(w.h.conn, w.h.pcfg);
    logged_forget();
    return flush_persistently();
}

static bool has_srq(const char *fault, int error) {
    if (!w.h.srq && rpma_srq_new(w.h.peer, NULL, &w.h.srq) != 0)
        return false;
    fake_fail(fault, 1, error);
    logged_forget();
    return true;
}
CALL(receive_shared, has_srq("ibv_post_srq_recv", ENOMEM)
                         ? rpma_srq_recv(w.h.srq, w.h.mr, 16, 24, (void *)0x1122)
                         : -1)
CALL(delete_srq, has_srq("ibv_destroy_srq", EBUSY) ? rpma_srq_delete(&w.h.srq) : -1)

static int large_srq(void) {
    (void)rpma_srq_cfg_new(&w.h.srq_cfg);
    (void)rpma_srq_cfg_set_rq_size(w.h.srq_cfg, 5000000);
    return new_srq();
}

int request(void) {
    return rpma_conn_req_new(w.h.peer, "there", "7205", w.h.cfg, &w.h.req);
}

int request_with(int (*set)(struct rpma_conn_cfg *, uint32_t), uint32_t value) {
    (void)rpma_conn_cfg_new(&w.h.cfg);
    (void)set(w.h.cfg, value);
    return request();
}
CALL(large_cq, request_with(rpma_conn_cfg_set_cq_size, 5000000))
CALL(large_sq, request_with(rpma_conn_cfg_set_sq_size, 5000000))
CALL(large_rq, request_with(rpma_conn_cfg_set_rq_size, 5000000))
CALL(large_rcq, request_with(rpma_conn_cfg_set_rcq_size, 5000000))

static int own_rcq_and_shared_channel(void) {
    (void)rpma_srq_new(w.h.peer, NULL, &w.h.srq); // makes its own receive CQ by default
    (void)rpma_conn_cfg_new(&w.h.cfg);
    (void)rpma_conn_cfg_set_compl_channel(w.h.cfg, true);
    (void)rpma_conn_cfg_set_srq(w.h.cfg, w.h.srq);
    return request();
}

static int arm_fails(void) {
    fake_notify(world_qp(&w)->send_cq);
    fake_fail("ibv_req_notify_cq", 1, EIO);
    return wait_cq();
}

static int foreign_cq(void) {
    int fd = -1;
    (void)rpma_conn_get_compl_fd(w.h.conn, &fd);
    fake_foreign_event(fd);
    return wait_conn();
}

static int poll_gives(int number) {
    fake_poll_returns(number);
    return poll();
}
CALL(poll_fails, poll_gives(-2))
CALL(poll_gives_more, poll_gives(3))

static int event(enum rdma_cm_event_type type, int status) {
    fake_cm_event_status(world_event_fd(&w), type, status, NULL, 0);
    return next_event();
}
CALL(nobody_listens, event(RDMA_CM_EVENT_REJECTED, 8))
CALL(program_rejects, event(RDMA_CM_EVENT_REJECTED, 28))
CALL(stale, event(RDMA_CM_EVENT_REJECTED, 10))
// iWARP, drivers/infiniband/hw of Linux 5.19. A rejection by the program: irdma/cm.c,
// irdma_cm_event_handler(), cxgb4/cm.c, process_mpa_reply(). Nobody listens: irdma/cm.c,
// irdma_event_connect_error(), cxgb4/cm.c, status2errno().
CALL(rejected_on_iwarp, event(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED))
CALL(reset_on_iwarp, event(RDMA_CM_EVENT_REJECTED, -ECONNRESET))
CALL(unreachable, event(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT))
CALL(connect_error, event(RDMA_CM_EVENT_CONNECT_ERROR, -ECONNABORTED))
CALL(established, event(RDMA_CM_EVENT_ESTABLISHED, 0))
CALL(removed, event(RDMA_CM_EVENT_DEVICE_REMOVAL, 0))
CALL(strange_event, event(RDMA_CM_EVENT_ADDR_CHANGE, 0))

static int ack_fails(void) {
    fake_fail("rdma_ack_cm_event", 1, EINVAL);
    return event(RDMA_CM_EVENT_DISCONNECTED, 0);
}

static int strange_request(void) {
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_ADDR_CHANGE, NULL, 0);
    return next_request();
}

static int get_request(void) {
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, "abc", 3);
    return next_request();
}

static int decode(const void *desc, size_t size) {
    (void)rpma_mr_remote_delete(&w.h.remote);
    logged_forget();
    return rpma_mr_remote_from_descriptor(desc, size, &w.h.remote);
}
static const unsigned char no_usage[21] = {1};
CALL(decode_short, decode(no_usage, 20))
CALL(decode_unused, decode(no_usage, 21))

static int decode_region(void) {
    unsigned char desc[21];
    world_descriptor(desc, FAILING_REMOTE_ADDR, FAILING_REMOTE_SIZE, FAILING_RKEY, 1);
    return decode(desc, sizeof(desc));
}
static const unsigned char direct_write[1] = {1};
static int decode_cfg(void) {
    (void)rpma_peer_cfg_delete(&w.h.pcfg);
    return rpma_peer_cfg_from_descriptor(direct_write, 1, &w.h.pcfg);
}
CALL(decode_short_cfg, rpma_peer_cfg_from_descriptor(direct_write, 0, &w.h.pcfg))

#define DEVICE(name, member, value)                \
    static void name(struct fake_device *device) { \
        device->member = value;                    \
    }
DEVICE(without_device, no_device, true)
DEVICE(without_list, unlisted, 2)
DEVICE(unknown_name, gai_error, EAI_NONAME)
DEVICE(on_second_device, other_device, 1)

const struct failure failures[] = {
    {"pd: refused", NOTHING, "ibv_alloc_pd", EACCES, new_peer, 0, NULL},
    {"pd: no memory", NOTHING, "ibv_alloc_pd", ENOMEM, new_peer, 0, NULL},
    {"pd: no reason", NOTHING, "ibv_alloc_pd", 0, new_peer, 0, NULL},
    {"peer: device query", NOTHING, "ibv_query_device_ex", EIO, new_peer, 0, NULL},
    {"peer: in use", PEER, "ibv_dealloc_pd", EBUSY, delete_peer, 0, NULL},
    {"odp: device query", NOTHING, "ibv_query_device_ex", EIO, is_odp_capable, 0, NULL},
    {"local: no device", NOTHING, NULL, 0, local_device, 0, without_device},
    {"local: no ID", NOTHING, "rdma_create_id", ENODEV, local_device, 0, without_list},
    {"local: rdma_cm closed", NOTHING, "rdma_create_id", ENOMEM, local_device, 0, NULL},
    {"local: name", NOTHING, "getaddrinfo rdma_getaddrinfo", EIO, local_device, 0, NULL},
    {"local: bind", NOTHING, "rdma_bind_addr", ENODEV, local_device, 0, NULL},
    {"remote: name", NOTHING, "getaddrinfo rdma_getaddrinfo", EIO, remote_device, 0, NULL},
    {"remote: resolve", NOTHING, "rdma_resolve_addr", ENODEV, remote_device, 0, NULL},
    {"mr: RLIMIT_MEMLOCK", PEER, "ibv_reg_mr", ENOMEM, reg, 0, NULL},
    {"mr: refused", PEER, "ibv_reg_mr", EFAULT, reg, 0, NULL},
    {"mr: FS-DAX without paging", PEER, "ibv_reg_mr", EOPNOTSUPP, reg, 0, NULL},
    {"mr: dereg", PEER, "ibv_dereg_mr", EBUSY, dereg, 0, NULL},
    {"mr: advise", PEER, "ibv_advise_mr", EFAULT, advise, 0, NULL},
    {"mr: advise unknown", PEER, "ibv_advise_mr", EOPNOTSUPP, advise, 0, NULL},
    {"mr: NULL", NOTHING, NULL, 0, delete_nothing, 0, NULL},
    {"remote region", PEER, NULL, 0, decode_region, 0, NULL},
    {"remote region: short", PEER, NULL, 0, decode_short, 0, NULL},
    {"remote region: no usage", PEER, NULL, 0, decode_unused, 0, NULL},
    {"peer configuration", PEER, NULL, 0, decode_cfg, 0, NULL},
    {"peer configuration: short", NOTHING, NULL, 0, decode_short_cfg, 0, NULL},
    {"listen: channel", PEER, "rdma_create_event_channel", EMFILE, listen_there, 0, NULL},
    {"listen: ID", PEER, "rdma_create_id", ENODEV, listen_there, 0, NULL},
    {"listen: name", PEER, "getaddrinfo rdma_getaddrinfo", EIO, listen_there, 0, NULL},
    {"listen: bind", PEER, "rdma_bind_addr", EADDRNOTAVAIL, listen_there, 0, NULL},
    {"listen: port taken", PEER, "rdma_bind_addr", EADDRINUSE, listen_there, 0, NULL},
    {"listen: port", PEER, "rdma_listen", EADDRINUSE, listen_there, 0, NULL},
    {"shutdown", LISTENING, "rdma_destroy_id", EBUSY, shutdown_ep, 0, NULL},
    {"next request: none", LISTENING, "rdma_get_cm_event", EAGAIN, next_request, 0, NULL},
    {"next request: fails", LISTENING, "rdma_get_cm_event", EIO, next_request, 0, NULL},
    {"next request: event", LISTENING, NULL, 0, strange_request, 0, NULL},
    {"next request: cq", LISTENING, "ibv_create_cq", ENOMEM, get_request, 0, NULL},
    {"next request: another device", LISTENING, NULL, 0, get_request, 0, on_second_device},
    {"next request: qp", LISTENING, "rdma_create_qp_ex", ENOMEM, get_request, 0, NULL},
    {"request: ID", PEER, "rdma_create_id", ENODEV, request, 0, NULL},
    {"request: name", PEER, "getaddrinfo rdma_getaddrinfo", EIO, request, 0, NULL},
    {"request: unknown name", PEER, NULL, 0, request, 0, unknown_name},
    {"request: IBACM", PEER, "rdma_getaddrinfo", EIO, request, 0, NULL},
    {"request: resolve", PEER, "rdma_resolve_addr", ENODEV, request, 0, NULL},
    {"request: loopback", PEER, "rdma_resolve_route", ENODEV, request, 0, NULL},
    {"request: no route", PEER, "rdma_resolve_addr", ETIMEDOUT, request, 0, NULL},
    {"request: no descriptor", PEER, "rdma_create_id", ENOMEM, request, 0, NULL},
    {"request: no network", PEER, "rdma_resolve_addr", ENETUNREACH, request, 0, NULL},
    {"request: channel", PEER, "ibv_create_comp_channel", EMFILE, request, 0, NULL},
    {"request: cq", PEER, "ibv_create_cq", ENOMEM, request, 0, NULL},
    {"request: cq too large", PEER, NULL, 0, large_cq, 0, NULL},
    {"request: arm", PEER, "ibv_req_notify_cq", EIO, request, 0, NULL},
    {"request: qp", PEER, "rdma_create_qp_ex", ENOMEM, request, 0, NULL},
    {"request: sq too large", PEER, NULL, 0, large_sq, 0, NULL},
    {"request: rq too large", PEER, NULL, 0, large_rq, 0, NULL},
    {"request: rcq too large", PEER, NULL, 0, large_rcq, 0, NULL},
    {"request: channels", PEER, NULL, 0, own_rcq_and_shared_channel, 0, NULL},
    {"request: delete", OUTGOING, "rdma_destroy_id", EIO, delete_request, 0, NULL},
    {"request: delete cq", OUTGOING, "ibv_destroy_cq", EBUSY, delete_request, 0, NULL},
    {"request: delete channel", OUTGOING, "ibv_destroy_comp_channel", EBUSY, delete_request, 0,
     NULL},
    {"request: reject", INCOMING, "rdma_reject", EIO, delete_request, 0, NULL},
    {"connect: channel", OUTGOING, "rdma_create_event_channel", EMFILE, connect_it, 0, NULL},
    {"connect: migrate", OUTGOING, "rdma_migrate_id", EIO, connect_it, 0, NULL},
    {"connect", OUTGOING, NULL, 0, connect_it, 0, NULL},
    {"accept", INCOMING, NULL, 0, accept_it, 0, NULL},
    {"event: none", CONNECTED, "rdma_get_cm_event", EAGAIN, next_event, 0, NULL},
    {"event: fails", CONNECTED, "rdma_get_cm_event", EIO, next_event, 0, NULL},
    {"event: signal", CONNECTED, "rdma_get_cm_event", EINTR, next_event, 0, NULL},
    {"event: established", CONNECTED, NULL, 0, established, 0, NULL},
    {"event: ack", CONNECTED, NULL, 0, ack_fails, 0, NULL},
    {"event: strange", CONNECTED, NULL, 0, strange_event, 0, NULL},
    {"rejected: nobody listens", CONNECTED, NULL, 0, nobody_listens, 0, NULL},
    {"rejected: program", CONNECTED, NULL, 0, program_rejects, 0, NULL},
    {"rejected: stale", CONNECTED, NULL, 0, stale, 0, NULL},
    {"rejected: iWARP", CONNECTED, NULL, 0, rejected_on_iwarp, 0, NULL},
    {"rejected: iWARP reset", CONNECTED, NULL, 0, reset_on_iwarp, 0, NULL},
    {"unreachable", CONNECTED, NULL, 0, unreachable, 0, NULL},
    {"connect error", CONNECTED, NULL, 0, connect_error, 0, NULL},
    {"device removed", CONNECTED, NULL, 0, removed, 0, NULL},
    {"disconnect", CONNECTED, "rdma_disconnect", EINVAL, disconnect, 0, NULL},
    {"delete: ID", CONNECTED, "rdma_destroy_id", EIO, delete_conn, 0, NULL},
    {"delete: cq", CONNECTED, "ibv_destroy_cq", EBUSY, delete_conn, 0, NULL},
    {"cq: no event", CONNECTED, "ibv_get_cq_event", EAGAIN, wait_cq, 0, NULL},
    {"cq: arm", CONNECTED, NULL, 0, arm_fails, 0, NULL},
    {"cq: shared channel", SHARING, NULL, 0, wait_cq, 0, NULL},
    {"cq: channel not shared", CONNECTED, NULL, 0, wait_conn, 0, NULL},
    {"cq: foreign", SHARING, NULL, 0, foreign_cq, 0, NULL},
    {"cq: empty", CONNECTED, NULL, 0, poll, 0, NULL},
    {"cq: poll", CONNECTED, NULL, 0, poll_fails, 0, NULL},
    {"cq: poll gives more", CONNECTED, NULL, 0, poll_gives_more, 0, NULL},
    {"srq: refused", PEER, "ibv_create_srq", ENOMEM, new_srq, 0, NULL},
    {"srq: too large", PEER, NULL, 0, large_srq, 0, NULL},
    {"srq: delete", PEER, NULL, 0, delete_srq, 0, NULL},
    {"srq: receive", PEER, NULL, 0, receive_shared, 0, NULL},
    {"read", CONNECTED, "ibv_post_send", ENOMEM, read_it, 0, NULL},
    {"write", CONNECTED, "ibv_post_send", ENOMEM, write_it, 0, NULL},
    {"write with imm", CONNECTED, "ibv_post_send", ENOMEM, write_imm, 0, NULL},
    {"atomic write", CONNECTED, "ibv_post_send", ENOMEM, write_atomically, 0, NULL},
    {"flush", CONNECTED, "ibv_post_send", ENOMEM, flush_visibly, 0, NULL},
    {"flush: no direct write", CONNECTED, NULL, 0, flush_without_direct_write, 0, NULL},
    {"flush: persistent usage", CONNECTED, NULL, 0, flush_persistently, 0x10, NULL},
    {"flush: visible usage", CONNECTED, NULL, 0, flush_visibly, 0x20, NULL},
    {"send", CONNECTED, "ibv_post_send", ENOMEM, send_it, 0, NULL},
    {"send: another process", CONNECTED, "ibv_post_send", EACCES, send_it, 0, NULL},
    {"receive", CONNECTED, "ibv_post_recv", ENOMEM, receive, 0, NULL},
    {"receive early", OUTGOING, "ibv_post_recv", ENOMEM, receive_early, 0, NULL},
};
const size_t failure_count = LENGTH(failures);
