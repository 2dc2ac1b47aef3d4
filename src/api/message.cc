// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.cc -- exports: messages, before and after the connection is up

#include <arpa/inet.h>

#include "api/post.hh"
#include "core/conn.hh"
#include "core/conn_req.hh"
#include "core/srq.hh"

namespace {

// A buffer is a slice of a region, or nothing at all for a message without bytes.
[[gnu::always_inline]] inline int send(const char *function, ibv_wr_opcode opcode,
                                       rpma_conn *conn, const rpma_mr_local *src, size_t offset,
                                       size_t len, int flags, uint32_t imm,
                                       const void *op_context) {
    const unsigned send_flags = rpma::signaled(flags);
    if (src == nullptr) [[unlikely]]
        return rpma::api::post_empty(function, conn->qp, opcode, send_flags, imm, op_context);
    ibv_sge sge = rpma::slice(*src, offset, len);
    ibv_send_wr wr;
    rpma::describe(wr, opcode, &sge, send_flags, op_context);
    if (opcode == IBV_WR_SEND_WITH_IMM)
        wr.imm_data = htonl(imm);
    return rpma::api::post_send(function, conn->qp, wr);
}

// Post is ibv_post_recv() or ibv_post_srq_recv().
template <class Queue, class Post>
[[gnu::always_inline]] inline int receive(const char *function, const char *call, Post post,
                                          Queue *queue, const rpma_mr_local *dst, size_t offset,
                                          size_t len, const void *op_context) {
    ibv_sge sge;
    ibv_recv_wr wr;
    wr.wr_id = rpma::context_id(op_context);
    wr.next = nullptr;
    if (dst != nullptr) [[likely]] {
        sge = rpma::slice(*dst, offset, len);
        wr.sg_list = &sge;
        wr.num_sge = 1;
    } else {
        wr.sg_list = nullptr;
        wr.num_sge = 0;
    }
    ibv_recv_wr *bad;
    const int error = post(queue, &wr, &bad);
    return error == 0 ? 0 : rpma::api::post_failed(function, call, error);
}

} // namespace

int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
              size_t len, int flags, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(src == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    return send(__func__, IBV_WR_SEND, conn, src, offset, len, flags, 0, op_context);
}

int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
                       size_t len, int flags, uint32_t imm, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(src == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    return send(__func__, IBV_WR_SEND_WITH_IMM, conn, src, offset, len, flags, imm, op_context);
}

int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
              const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(dst == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    return receive(__func__, "ibv_post_recv()", ibv_post_recv, conn->qp, dst, offset, len,
                   op_context);
}

int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
                       size_t len, const void *op_context) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(len > UINT32_MAX);
    return receive(__func__, "ibv_post_recv()", ibv_post_recv, &req->qp(), dst, offset, len,
                   op_context);
}

int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
                  const void *op_context) {
    RPMA_REFUSE(srq == NULL);
    RPMA_REFUSE(dst == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    return receive(__func__, "ibv_post_srq_recv()", ibv_post_srq_recv, srq->queue(), dst,
                   offset, len, op_context);
}
