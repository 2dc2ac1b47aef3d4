// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- writes to the memory of the server, and flushes it

#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
must(int ret, const char *what)
{
    if (ret) {
        fprintf(stderr, "%s: %s\n", what, rpma_err_2str(ret));
        exit(EXIT_FAILURE);
    }
}

static enum rpma_conn_event
wait_for_event(struct rpma_conn *conn)
{
    enum rpma_conn_event event;
    int ret;
    while ((ret = rpma_conn_next_event(conn, &event)) ==
           RPMA_E_NO_EVENT)
        ; /* the link address changed: wait again */
    must(ret, "event");
    return event;
}

static void
wait_for_completion(struct rpma_conn *conn, struct ibv_wc *wc)
{
    struct rpma_cq *cq = NULL;
    int ret;
    must(rpma_conn_get_cq(conn, &cq), "CQ");
    while ((ret = rpma_cq_get_wc(cq, 1, wc, NULL)) ==
           RPMA_E_NO_COMPLETION) {
        ret = rpma_cq_wait(cq);
        if (ret != RPMA_E_NO_COMPLETION)
            must(ret, "wait");
    }
    must(ret, "completion");
}

int
main(int argc, char *argv[])
{
    static char memory[] = "written from afar";
    struct ibv_context *device = NULL;
    struct rpma_peer *peer = NULL;
    struct rpma_mr_local *src = NULL;
    struct rpma_mr_remote *dst = NULL;
    struct rpma_peer_cfg *pcfg = NULL;
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    struct rpma_conn_private_data offer;
    uint32_t regions = 1;
    enum rpma_conn_event event;
    struct ibv_wc wc;

    const char *flush = argc == 4 ? argv[3] : "visible";
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: %s ADDRESS PORT "
                "[visible|persistent|none]\n", argv[0]);
        return EXIT_FAILURE;
    }

    /* the device that leads to the server, and something to write */
    must(rpma_utils_get_ibv_context(argv[1],
             RPMA_UTIL_IBV_CONTEXT_REMOTE, &device), "device");
    must(rpma_peer_new(device, &peer), "peer");
    must(rpma_mr_reg(peer, memory, sizeof(memory),
             RPMA_MR_USAGE_WRITE_SRC, &src), "region");

    must(rpma_conn_req_new(peer, argv[1], argv[2], NULL, &req),
         "request");
    must(rpma_conn_req_connect(&req, NULL, &conn), "connect");
    event = wait_for_event(conn);
    if (event != RPMA_CONN_ESTABLISHED) {
        fprintf(stderr, "%s\n", rpma_utils_conn_event_2str(event));
        return EXIT_FAILURE;
    }

    /* the server sent its region, and how to flush it */
    must(rpma_conn_get_private_data(conn, &offer), "private data");
    must(rpma_conn_private_data_unpack(&offer, &dst, &regions, &pcfg,
             NULL, NULL), "offer");
    if (regions != 1 || pcfg == NULL) {
        fprintf(stderr, "unexpected private data\n");
        return EXIT_FAILURE;
    }
    must(rpma_conn_apply_remote_peer_cfg(conn, pcfg), "configuration");
    (void) rpma_peer_cfg_delete(&pcfg);

    /* one completion for both: the flush follows the write */
    bool has_flush = strcmp(flush, "none") != 0;
    must(rpma_write(conn, dst, 0, src, 0, sizeof(memory),
             has_flush ? RPMA_F_COMPLETION_ON_ERROR :
                         RPMA_F_COMPLETION_ALWAYS, NULL), "write");
    if (has_flush)
        must(rpma_flush(conn, dst, 0, sizeof(memory),
                 strcmp(flush, "persistent") == 0 ?
                     RPMA_FLUSH_TYPE_PERSISTENT :
                     RPMA_FLUSH_TYPE_VISIBILITY,
                 RPMA_F_COMPLETION_ALWAYS, NULL), "flush");
    wait_for_completion(conn, &wc);
    printf("%s\n", wc.status == IBV_WC_SUCCESS ? "done" : "failed");

    must(rpma_conn_disconnect(conn), "disconnect");
    (void) wait_for_event(conn);
    (void) rpma_conn_delete(&conn);
    (void) rpma_mr_remote_delete(&dst);
    (void) rpma_mr_dereg(&src);
    (void) rpma_peer_delete(&peer);
    return wc.status == IBV_WC_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
