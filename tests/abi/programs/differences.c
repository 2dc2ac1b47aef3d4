// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// differences.c -- differences that a program of an old release can notice, as listed in
// docs/compatibility.md.
//
// Compiled for each release, so for each version node; only uses functions of every release.

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fake.h"
#include "life.h"

enum { REJECTED = 3, UNREACHABLE = 4 }; // some releases do not have them yet

static enum rpma_conn_event next_event(struct life *life) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    MUST(rpma_conn_next_event(life->client.conn, &event));
    return event;
}

static void check_events(struct life *life) {
    loopback_rejected(life_fd(life->client.conn));
    CHECK((int)next_event(life) == REJECTED);
    loopback_unreachable(life_fd(life->client.conn));
    CHECK((int)next_event(life) == UNREACHABLE);
    const char *unknown = rpma_utils_conn_event_2str((enum rpma_conn_event)99);
    CHECK(strcmp(rpma_utils_conn_event_2str((enum rpma_conn_event)REJECTED), unknown) != 0);
    CHECK(strcmp(rpma_utils_conn_event_2str((enum rpma_conn_event)UNREACHABLE), unknown) != 0);
}

static void check_texts(void) {
    CHECK(strcmp(rpma_err_2str(0), "Success") == 0);
    CHECK(strcmp(rpma_err_2str(RPMA_E_AGAIN), "Temporary error, try again") == 0);
}

// The operations that may have no bytes, and the one that may not.
static void check_null_buffers(struct rpma_conn *conn) {
    const int flags = RPMA_F_COMPLETION_ALWAYS;
    MUST(rpma_read(conn, NULL, 0, NULL, 0, 0, flags, NULL));
    CHECK(fake_last("ibv_post_send")->send.num_sge == 0);
    MUST(rpma_write(conn, NULL, 0, NULL, 0, 0, flags, NULL));
    MUST(rpma_send(conn, NULL, 0, 0, flags, NULL));
    MUST(rpma_recv(conn, NULL, 0, 0, NULL));
    CHECK(rpma_read(conn, NULL, 0, NULL, 0, 8, flags, NULL) == RPMA_E_INVAL);
}

static void check_posts(struct life *life) {
    const struct side *side = &life->client;
    MUST(rpma_flush(side->conn, side->other, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
                    RPMA_F_COMPLETION_ON_ERROR, NULL));
    CHECK(!(fake_last("ibv_post_send")->send.flags & IBV_SEND_SIGNALED));
    CHECK(fake_last("ibv_post_send")->send.opcode == IBV_WR_RDMA_READ);
    CHECK(fake_count("rdma_create_qp") == 0);
    CHECK(fake_last("rdma_create_qp_ex")->qp.cap.max_inline_data == 8);
#ifdef HAVE_WRITE_ATOMIC
    MUST(rpma_write_atomic(side->conn, side->other, 0, side->mr, 0, RPMA_F_COMPLETION_ALWAYS,
                           NULL));
    CHECK(fake_last("ibv_post_send")->send.flags == (IBV_SEND_FENCE | IBV_SEND_SIGNALED));
#endif
}

static void check_iwarp(struct life *life) {
    struct rpma_mr_local *mr = NULL;
    struct rpma_peer *peer = NULL;
    fake_device()->transport = IBV_TRANSPORT_IWARP;
    MUST(rpma_peer_new(fake_context(0), &peer));
    MUST(rpma_mr_reg(peer, life->client.memory, 8, RPMA_MR_USAGE_READ_DST, &mr));
    CHECK(fake_last("ibv_reg_mr")->reg_mr.access ==
          (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    MUST(rpma_mr_dereg(&mr));
    MUST(rpma_peer_delete(&peer));
    fake_device()->transport = IBV_TRANSPORT_IB;
}

// The provider refuses once: the object stays, and the second call succeeds.
static void check_refused_deletions(struct life *life) {
    struct rpma_mr_local *mr = NULL;
    struct rpma_peer *peer = NULL;
    struct rpma_ep *ep = NULL;
    MUST(rpma_peer_new(fake_context(0), &peer));
    MUST(rpma_mr_reg(peer, life->client.memory, 8, RPMA_MR_USAGE_READ_DST, &mr));
    MUST(rpma_ep_listen(peer, life->address, "1", &ep));
    fake_fail("ibv_dereg_mr", 1, EBUSY);
    CHECK(rpma_mr_dereg(&mr) == RPMA_E_PROVIDER && mr != NULL);
    fake_fail("rdma_destroy_id", 1, EBUSY);
    CHECK(rpma_ep_shutdown(&ep) == RPMA_E_PROVIDER && ep != NULL);
    MUST(rpma_ep_shutdown(&ep));
    MUST(rpma_mr_dereg(&mr));
    fake_fail("ibv_dealloc_pd", 1, EBUSY);
    CHECK(rpma_peer_delete(&peer) == RPMA_E_PROVIDER && peer != NULL);
    MUST(rpma_peer_delete(&peer));
}

static struct rpma_conn_req *incoming(struct life *life, struct rpma_ep *ep) {
    struct rpma_conn_req *req = NULL;
    int fd = -1;
    MUST(rpma_ep_get_fd(ep ? ep : life->ep, &fd));
    loopback_request(fd, "hello", 5);
    MUST(rpma_ep_next_conn_req(ep ? ep : life->ep, NULL, &req));
    return req;
}

// A failed connect consumes the request; a waiting request does not block the endpoint.
static void check_requests(struct life *life) {
    struct rpma_conn_private_data nothing = {NULL, 0};
    struct rpma_conn *conn = NULL;
    struct rpma_ep *ep = NULL;
    struct rpma_conn_req *req = incoming(life, NULL);
    CHECK(rpma_conn_req_connect(&req, NULL, NULL) == RPMA_E_INVAL && req == NULL);
    req = incoming(life, NULL);
    CHECK(rpma_conn_req_connect(&req, &nothing, &conn) == RPMA_E_INVAL && req == NULL);

    MUST(rpma_ep_listen(life->peer, life->address, "1", &ep));
    const unsigned acknowledged = fake_count("rdma_ack_cm_event");
    req = incoming(life, ep);
    CHECK(fake_count("rdma_ack_cm_event") == acknowledged + 1);
    MUST(rpma_ep_shutdown(&ep));
    CHECK(rpma_conn_req_recv(req, NULL, 0, 0, NULL) == RPMA_E_INVAL);
    MUST(rpma_conn_req_delete(&req));
    CHECK(fake_count("rdma_reject") == 3);
}

static unsigned logged;

static void count_messages(enum rpma_log_level level, const char *file_name, const int line_no,
                           const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)message_format;
    logged += strcmp(function_name, "rpma_mr_remote_from_descriptor") == 0;
}

static void check_log(struct life *life) {
    enum rpma_log_level level = RPMA_LOG_LEVEL_FATAL;
    struct rpma_mr_remote *remote = NULL;
    unsigned char desc[21];
    MUST(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level));
    CHECK(level == RPMA_LOG_LEVEL_WARNING);
    MUST(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &level));
    CHECK(level == RPMA_LOG_DISABLED);
    MUST(rpma_mr_get_descriptor(life->client.mr, desc));
    MUST(rpma_log_set_function(count_messages));
    MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_INFO));
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote));
    CHECK(logged == 0);
    MUST(rpma_mr_remote_delete(&remote));
}

static void check_configuration(void) {
    struct rpma_conn_cfg *cfg = NULL;
    uint32_t cq_size = 0, sq_size = 0, rq_size = 0;
    int timeout = 0;
    MUST(rpma_conn_cfg_new(&cfg));
    MUST(rpma_conn_cfg_get_timeout(cfg, &timeout));
    MUST(rpma_conn_cfg_get_cq_size(cfg, &cq_size));
    MUST(rpma_conn_cfg_get_sq_size(cfg, &sq_size));
    MUST(rpma_conn_cfg_get_rq_size(cfg, &rq_size));
    CHECK(timeout == 1000 && cq_size == 10 && sq_size == 10 && rq_size == 10);
    MUST(rpma_conn_cfg_delete(&cfg));
}

int main(int argc, char *argv[]) {
    struct life life;
    life_open(&life, argc, argv);
    life_connect(&life, NULL, NULL);
    check_texts();
    check_configuration();
    check_log(&life);
    check_events(&life);
    check_null_buffers(life.client.conn);
    check_posts(&life);
    check_requests(&life);
    check_refused_deletions(&life);
    check_iwarp(&life);
    life_close(&life);
    return 0;
}
