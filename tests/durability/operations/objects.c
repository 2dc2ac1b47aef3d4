// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// objects.c -- the objects of the client: its request, completion queues of the program, and
// calls that must not change any of them

#include "client.h"
#include "random.h"

#include <poll.h>

static struct rpma_cq *queues[2]; // NULL: the connection has its own

static void open_queue(struct rpma_peer *peer, struct rpma_cq **cq) {
    struct rpma_cq_cfg *cfg;
    CALL(rpma_cq_cfg_new(&cfg));
    CALL(rpma_cq_cfg_set_size(cfg, 2 * WORK_MAX));
    CALL(rpma_cq_new(peer, cfg, cq));
    CALL(rpma_cq_cfg_delete(&cfg));
}

void open_queues(struct rpma_peer *peer, struct rpma_conn_cfg *cfg, bool shared_channel) {
    const unsigned which = shared_channel ? 0 : below(4);
    queues[OPERATION] = queues[RECEIVE] = NULL; // those of a program that was killed
    if (which & 1) {
        open_queue(peer, &queues[OPERATION]);
        CALL(rpma_conn_cfg_set_cq(cfg, queues[OPERATION]));
    }
    if (which & 2) {
        open_queue(peer, &queues[RECEIVE]);
        CALL(rpma_conn_cfg_set_rcq(cfg, queues[RECEIVE]));
    }
}

void close_queues(void) {
    for (unsigned i = 0; i < 2; i++)
        CALL(rpma_cq_delete(&queues[i]));
}

struct rpma_conn_req *make_request(struct rpma_peer *peer, const struct arguments *args,
                                   const struct rpma_conn_cfg *cfg) {
    struct pollfd event = {.events = POLLIN};
    struct rpma_conn_req *req;
    int ret;
    if (below(2)) {
        CALL(rpma_conn_req_new(peer, args->addr, args->port, cfg, &req));
        return req;
    }
    CALL(rpma_conn_req_start(peer, args->addr, args->port, cfg, &req));
    CALL(rpma_conn_req_get_event_fd(req, &event.fd));
    while ((ret = rpma_conn_req_resolve(req)) == RPMA_E_AGAIN)
        (void)poll(&event, 1, -1);
    check_call(ret, "rpma_conn_req_resolve");
    CALL(rpma_conn_req_setup(req, cfg));
    return req;
}

struct rpma_cq *await_queue(struct completions *completions, struct rpma_cq *cq) {
    struct rpma_cq *ready = cq;
    bool is_receive = false;
    int fd, ret;
    if (completions->shared_channel) {
        CALL(rpma_conn_get_compl_fd(conn, &fd));
        await_readable(fd);
        ret = rpma_conn_wait(conn, 0, &ready, &is_receive);
        if (ret == 0 && ready != completions->cq[is_receive ? RECEIVE : OPERATION])
            report_broken("a wait reports another queue than the one with an event");
    } else {
        CALL(rpma_cq_get_fd(cq, &fd));
        await_readable(fd);
        if (below(2)) {
            ret = rpma_cq_wait(cq);
        } else {
            ret = rpma_cq_take_event(cq);
            if (ret == 0)
                ret = rpma_cq_arm(cq, false);
        }
    }
    if (ret == RPMA_E_NO_COMPLETION)
        return NULL;
    check_call(ret, "waiting for a completion");
    return ready;
}

void check_objects(struct rpma_peer *peer) {
    struct rpma_peer *deleted = peer;
    struct rpma_cq *own, *cq;
    if (rpma_peer_delete(&deleted) != RPMA_E_PROVIDER || deleted != peer)
        report_broken("a peer is deleted before its connections");
    for (unsigned i = 0; i < 2; i++) {
        cq = queues[i];
        if (cq && (rpma_cq_delete(&cq) != RPMA_E_PROVIDER || cq != queues[i]))
            report_broken("a queue is deleted before its connection");
    }
    CALL(rpma_conn_get_cq(conn, &own));
    cq = own;
    if (queues[OPERATION] ? own != queues[OPERATION]
                          : rpma_cq_delete(&cq) != RPMA_E_INVAL || cq != own)
        report_broken("a connection has another queue than its configuration");
    (void)rpma_mr_advise(mr, 0, LOCAL, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                         IBV_ADVISE_MR_FLAG_FLUSH);
}
