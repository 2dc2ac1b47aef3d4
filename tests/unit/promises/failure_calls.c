// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure_calls.c -- the calls of failure_lines.tsv that the original knows as well

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

CALLED(flush_without_direct_write) {
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

SHARED_QUEUE(large_srq, rq_size, 5000000)

CALL(request, ask_for_connection())

int ask_for_connection(void) {
    return rpma_conn_req_new(w.h.peer, "there", "7205", w.h.cfg, &w.h.req);
}
REQUEST(large_cq, cq_size, 5000000)
REQUEST(large_sq, sq_size, 5000000)
REQUEST(large_rq, rq_size, 5000000)
REQUEST(large_rcq, rcq_size, 5000000)

CALLED(own_rcq_and_shared_channel) {
    (void)rpma_srq_new(w.h.peer, NULL, &w.h.srq); // makes its own receive CQ by default
    (void)rpma_conn_cfg_new(&w.h.cfg);
    (void)rpma_conn_cfg_set_compl_channel(w.h.cfg, true);
    (void)rpma_conn_cfg_set_srq(w.h.cfg, w.h.srq);
    return ask_for_connection();
}

CALLED(arm_fails) {
    fake_notify(world_qp(&w)->send_cq);
    fake_fail("ibv_req_notify_cq", 1, EIO);
    return wait_cq();
}

CALLED(foreign_cq) {
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

CALLED(ack_fails) {
    fake_fail("rdma_ack_cm_event", 1, EINVAL);
    return event(RDMA_CM_EVENT_DISCONNECTED, 0);
}

CALLED(strange_request) {
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_ADDR_CHANGE, NULL, 0);
    return next_request();
}

CALLED(get_request) {
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

CALLED(decode_region) {
    unsigned char desc[21];
    world_descriptor(desc, FAILING_REMOTE_ADDR, FAILING_REMOTE_SIZE, FAILING_RKEY, 1);
    return decode(desc, sizeof(desc));
}
static const unsigned char direct_write[1] = {1};
CALLED(decode_cfg) {
    (void)rpma_peer_cfg_delete(&w.h.pcfg);
    return rpma_peer_cfg_from_descriptor(direct_write, 1, &w.h.pcfg);
}
CALL(decode_short_cfg, rpma_peer_cfg_from_descriptor(direct_write, 0, &w.h.pcfg))

BEFORE(without_device, fake_device()->no_device = true)
BEFORE(without_list, fake_device()->unlisted = 2)
BEFORE(unknown_name, fake_device()->gai_error = EAI_NONAME)
BEFORE(on_second_device, fake_device()->other_device = 1)
BEFORE(persistent_only, failing_usage = RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)
BEFORE(visible_only, failing_usage = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)
