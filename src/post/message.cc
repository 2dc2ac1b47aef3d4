// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.cc -- exports: sends and receives, one at a time

#include "post/receive.hh"
#include "post/send.hh"

using namespace rpma;

namespace {

// Sends a message from one SGE, or from none.
[[gnu::always_inline]] inline int send_message(const char *function, const rpma_conn &conn,
                                               ibv_wr_opcode opcode, const rpma_mr_local *src,
                                               size_t offset, size_t len, int flags,
                                               uint32_t imm, const void *op_context) {
    if (src == nullptr) [[unlikely]]
        return send_empty(function, conn, opcode, announcing(flags), imm, op_context);
    Request request;
    request.sge = slice(*src, offset, len);
    describe(request.wr, opcode, 1, announcing(flags), imm, op_context);
    request.wr.wr.rdma.remote_addr = 0; // init_send_wqe() of rxe copies it
    return send(function, conn, request);
}

// Receives into one SGE, or into none for a message without data. post is ibv_post_recv() or
// ibv_post_srq_recv(); owner is the queue itself, or owns it.
template <class Owner, class Queue, class Post>
[[gnu::always_inline]] inline int receive(const char *function, const ReceiveQueue &names,
                                          Post post, const Owner *owner, Queue *queue,
                                          const rpma_mr_local *dst, size_t offset, size_t len,
                                          const void *op_context) {
    ibv_sge sge;
    ibv_recv_wr wr;
    wr.wr_id = context_id(op_context);
    wr.next = nullptr;
    wr.sg_list = &sge;
    // Instantiated per branch: the number of SGEs is a constant in each.
    const auto go = [&](int number) __attribute__((always_inline)) {
        wr.num_sge = number;
        ibv_recv_wr *bad;
        // Kept in memory for the log: a register would have to be saved across the call.
        const Owner *const volatile kept = owner;
        const int result = post(queue, &wr, &bad);
        return result == 0 ? 0 : refused_receive(function, names, *kept, wr, result);
    };
    if (dst == nullptr) [[unlikely]]
        return go(0);
    sge = slice(*dst, offset, len);
    return go(1);
}

} // namespace

RPMA_POST int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
                        size_t len, int flags, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE_FLAGS(__func__, flags);
    RPMA_REFUSE_AS(__func__, src == NULL && (offset | len) != 0, RPMA_NO_MEMORY, "src", offset,
                   len);
    RPMA_REFUSE_LENGTH(__func__, len);
    return send_message(__func__, *conn, IBV_WR_SEND, src, offset, len, flags, 0, op_context);
}

RPMA_POST int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src,
                                 size_t offset, size_t len, int flags, uint32_t imm,
                                 const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE_FLAGS(__func__, flags);
    RPMA_REFUSE_AS(__func__, src == NULL && (offset | len) != 0, RPMA_NO_MEMORY, "src", offset,
                   len);
    RPMA_REFUSE_LENGTH(__func__, len);
    return send_message(__func__, *conn, IBV_WR_SEND_WITH_IMM, src, offset, len, flags, imm,
                        op_context);
}

RPMA_POST int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset,
                        size_t len, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE_AS(__func__, dst == NULL && (offset | len) != 0, RPMA_NO_MEMORY, "dst", offset,
                   len);
    RPMA_REFUSE_LENGTH(__func__, len);
    return receive(__func__, CONN_RECEIVES, ibv_post_recv, conn->qp, conn->qp, dst, offset, len,
                   op_context);
}

RPMA_POST int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst,
                                 size_t offset, size_t len, const void *op_context) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE_LENGTH(__func__, len);
    RPMA_REFUSE_AS(__func__, !req->is_set_up(), "%s", req->obstacle());
    return receive(__func__, CONN_RECEIVES, ibv_post_recv, req, &req->qp(), dst, offset, len,
                   op_context);
}

RPMA_POST int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset,
                            size_t len, const void *op_context) {
    RPMA_REFUSE(srq == NULL);
    RPMA_REFUSE_AS(__func__, dst == NULL && (offset | len) != 0, RPMA_NO_MEMORY, "dst", offset,
                   len);
    RPMA_REFUSE_LENGTH(__func__, len);
    return receive(__func__, SRQ_RECEIVES, ibv_post_srq_recv, srq->queue(), srq->queue(), dst,
                   offset, len, op_context);
}
