// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.cc -- exports: messages, before and after the connection is up

#include "api/post.hh"
#include "core/conn_req.hh"
#include "core/srq.hh"

using namespace rpma;

namespace {

// A buffer is a slice of a region, or nothing at all for a message without bytes.
[[gnu::always_inline]] inline int send(const char *function, ibv_wr_opcode opcode,
                                       const rpma_conn *conn, const rpma_mr_local *src,
                                       size_t offset, size_t len, int flags, uint32_t imm,
                                       const void *op_context) {
    const uint64_t send_flags = signaled(flags);
    if (src == nullptr) [[unlikely]]
        return post_empty(function, conn, opcode, send_flags, imm, op_context);
    ibv_sge sge = slice(*src, offset, len);
    ibv_send_wr wr;
    describe(wr, opcode, &sge, send_flags, imm, op_context);
    wr.wr.rdma.remote_addr = 0; // init_send_wqe() of rxe copies it
    return post_send(function, conn, wr);
}

// The request comes by value: its address would be kept over the provider's call.
[[gnu::cold, gnu::noinline]] int receive_failed(const char *function, const char *post,
                                                const char *setting, ibv_recv_wr wr,
                                                int result) {
    Call call(function);
    const ibv_sge none = {};
    const ibv_sge &sge = wr.num_sge > 0 ? wr.sg_list[0] : none;
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, post_error(result),
                       post_advice(result, "receive", 0, setting).chars,
                       "%s(addr=0x%" PRIx64 ", length=%" PRIu32 ", wr_id=0x%" PRIx64 ")", post,
                       sge.addr, sge.length, wr.wr_id);
    return call.finish();
}

// post is ibv_post_recv() or ibv_post_srq_recv(), setting what gave the queue its size.
template <class Queue, class Post>
[[gnu::always_inline]] inline int
receive(const char *function, const char *name, Post post, Queue *queue, const char *setting,
        const rpma_mr_local *dst, size_t offset, size_t len, const void *op_context) {
    ibv_sge sge;
    ibv_recv_wr wr;
    wr.wr_id = context_id(op_context);
    wr.next = nullptr;
    if (dst != nullptr) [[likely]] {
        sge = slice(*dst, offset, len);
        wr.sg_list = &sge;
        wr.num_sge = 1;
    } else {
        wr.sg_list = nullptr;
        wr.num_sge = 0;
    }
    ibv_recv_wr *bad;
    const int result = post(queue, &wr, &bad);
    return result == 0 ? 0 : receive_failed(function, name, setting, wr, result);
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
    return receive(__func__, "ibv_post_recv", ibv_post_recv, conn->qp,
                   "rpma_conn_cfg_set_rq_size", dst, offset, len, op_context);
}

int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
                       size_t len, const void *op_context) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(len > UINT32_MAX);
    return receive(__func__, "ibv_post_recv", ibv_post_recv, &req->qp(),
                   "rpma_conn_cfg_set_rq_size", dst, offset, len, op_context);
}

int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
                  const void *op_context) {
    RPMA_REFUSE(srq == NULL);
    RPMA_REFUSE(dst == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    return receive(__func__, "ibv_post_srq_recv", ibv_post_srq_recv, srq->queue(),
                   "rpma_srq_cfg_set_rq_size", dst, offset, len, op_context);
}
