/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* ping-pong.h -- common definitions of the client and the server */

#ifndef PING_PONG_H
#define PING_PONG_H 1

#include "common.h"

#define ROUNDS 10
#define USAGE (RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV)

struct messages {
    uint64_t incoming, outgoing; /* big-endian; the reply to N is N + 1 */
};

/* The shared receive queue of the variant; otherwise receives belong to the connection. */
static inline struct rpma_srq *open_srq(struct side *side, struct rpma_conn_cfg *cfg,
                                        bool wanted) {
    struct rpma_srq *srq = NULL;
    if (wanted) {
        CALL(rpma_srq_new(side->peer, NULL, &srq));
        CALL(rpma_conn_cfg_set_srq(cfg, srq));
    }
    return srq;
}

/* Posts the receive for the next message, before the connection is established (req) or later
 * (conn). */
static inline void post_receive(struct side *side, struct rpma_srq *srq,
                                struct rpma_conn_req *req, struct rpma_conn *conn) {
    size_t offset = offsetof(struct messages, incoming);
    if (srq)
        CALL(rpma_srq_recv(srq, side->mr, offset, sizeof(uint64_t), NULL));
    else if (req)
        CALL(rpma_conn_req_recv(req, side->mr, offset, sizeof(uint64_t), NULL));
    else
        CALL(rpma_recv(conn, side->mr, offset, sizeof(uint64_t), NULL));
}

static inline void send_message(struct side *side, struct rpma_conn *conn) {
    CALL(rpma_send(conn, side->mr, offsetof(struct messages, outgoing), sizeof(uint64_t),
                   RPMA_F_COMPLETION_ALWAYS, NULL));
}

#endif
