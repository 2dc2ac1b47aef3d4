/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/*
 * settings.c -- two sides with settings, of which one uses a link that is cut; settings.py runs
 * it
 *
 * settings SIDE ACTION SETTING=VALUE...
 * SIDE: server, client. ACTION: "wait": until the file "end" exists; "read": reads until the
 * link is cut, then creates the file "waited" 400 ms later and expects that the read succeeds;
 * "send": sends a message without a receive, and expects that the connection ends. The first
 * read or message creates the file "connected".
 */

#include <arpa/inet.h>
#include <librpma.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DESCRIPTOR = 21, LIMIT_MS = 10000, TICK_MS = 2, WAIT_MS = 400 };

static struct rpma_conn *conn;
static struct rpma_cq *cq;

static void create(const char *name) {
    FILE *file = fopen(name, "w");
    if (file != NULL)
        (void)fclose(file);
}

static void fail(const char *what) {
    printf("settings: %s failed: %s\n", what, rpma_err_last_failure(NULL));
    create("end");
    exit(1);
}

static void must(int succeeded, const char *what) {
    if (!succeeded)
        fail(what);
}

static void sleep_ms(int ms) {
    (void)poll(NULL, 0, ms);
}

static void set_value(struct rpma_conn_cfg *cfg, const char *setting) {
    const int value = atoi(strchr(setting, '=') + 1);
    int ret = -1;
    if (strncmp(setting, "ack=", 4) == 0)
        ret = rpma_conn_cfg_set_ack_timeout(cfg, value);
    if (strncmp(setting, "retry=", 6) == 0)
        ret = rpma_conn_cfg_set_retry_count(cfg, (uint32_t)value);
    if (strncmp(setting, "rnr=", 4) == 0)
        ret = rpma_conn_cfg_set_rnr_retry_count(cfg, (uint32_t)value);
    if (strncmp(setting, "timer=", 6) == 0)
        ret = rpma_conn_cfg_set_rnr_timer(cfg, value);
    must(ret == 0, setting);
}

/* Returns whether the next operation has completed within the time. */
static int completes(int ms) {
    struct ibv_wc wc;
    int ret = RPMA_E_NO_COMPLETION;
    for (int spent = 0; spent <= ms && ret == RPMA_E_NO_COMPLETION; spent += TICK_MS) {
        ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
        if (ret == RPMA_E_NO_COMPLETION)
            sleep_ms(TICK_MS);
    }
    if (ret == 0 && wc.status != IBV_WC_SUCCESS) {
        printf("settings: status %d\n", (int)wc.status);
        fail("an operation");
    }
    must(ret == 0 || ret == RPMA_E_NO_COMPLETION, "rpma_cq_get_wc()");
    return ret == 0;
}

static void read_over_a_cut(struct rpma_mr_local *mr, struct rpma_mr_remote *remote) {
    int reads = 0;
    do {
        must(rpma_read(conn, mr, 0, remote, 0, 8, RPMA_F_COMPLETION_ALWAYS, NULL) == 0,
             "rpma_read()");
        if (reads++ == 0)
            create("connected");
    } while (completes(50));
    must(!completes(WAIT_MS), "a read over a cut link: it");
    create("waited");
    must(completes(LIMIT_MS), "a read over a link that is joined again");
}

static void send_without_receive(struct rpma_mr_local *mr) {
    enum rpma_conn_event event;
    struct pollfd ready = {.events = POLLIN};
    must(rpma_conn_get_event_fd(conn, &ready.fd) == 0 &&
             rpma_send(conn, mr, 0, 8, RPMA_F_COMPLETION_ON_ERROR, NULL) == 0,
         "rpma_send()");
    must(poll(&ready, 1, LIMIT_MS) == 1 && rpma_conn_next_event(conn, &event) == 0 &&
             event == RPMA_CONN_CLOSED,
         "RPMA_CONN_CLOSED after a message without a receive");
}

int main(int argc, char **argv) {
    static char memory[8], mine[DESCRIPTOR];
    const int is_server = strcmp(argv[1], "server") == 0;
    const struct rpma_conn_private_data data = {mine, sizeof(mine)};
    struct rpma_conn_private_data theirs;
    struct rpma_conn_cfg *cfg;
    struct rpma_conn_req *req;
    struct rpma_mr_remote *remote;
    struct rpma_mr_local *mr;
    struct rpma_peer *peer;
    struct rpma_ep *ep;
    struct ibv_context *context;
    enum rpma_conn_event event;
    must(rpma_utils_get_ibv_context("10.77.0.1",
                                    is_server ? RPMA_UTIL_IBV_CONTEXT_LOCAL
                                              : RPMA_UTIL_IBV_CONTEXT_REMOTE,
                                    &context) == 0 &&
             rpma_peer_new(context, &peer) == 0 && rpma_conn_cfg_new(&cfg) == 0 &&
             rpma_mr_reg(peer, memory, sizeof(memory),
                         RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND,
                         &mr) == 0 &&
             rpma_mr_get_descriptor(mr, mine) == 0,
         "the preparation");
    for (int i = 3; i < argc; i++)
        set_value(cfg, argv[i]);
    if (is_server)
        must(rpma_ep_listen(peer, "10.77.0.1", "7204", &ep) == 0 &&
                 rpma_ep_next_conn_req(ep, cfg, &req) == 0,
             "rpma_ep_next_conn_req()");
    else
        must(rpma_conn_req_new(peer, "10.77.0.1", "7204", cfg, &req) == 0,
             "rpma_conn_req_new()");
    must(rpma_conn_req_connect(&req, &data, &conn) == 0 &&
             rpma_conn_next_event(conn, &event) == 0 && event == RPMA_CONN_ESTABLISHED &&
             rpma_conn_get_private_data(conn, &theirs) == 0 &&
             rpma_mr_remote_from_descriptor(theirs.ptr, DESCRIPTOR, &remote) == 0 &&
             rpma_conn_get_cq(conn, &cq) == 0,
         "the connection");
    if (strcmp(argv[2], "read") == 0)
        read_over_a_cut(mr, remote);
    if (strcmp(argv[2], "send") == 0)
        send_without_receive(mr);
    if (strcmp(argv[2], "wait") == 0)
        while (access("end", F_OK) != 0)
            sleep_ms(TICK_MS);
    else
        create("end");
    return 0;
}
