// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.cc -- exports: messages, before and after the connection is up

#include "api/list.hh"
#include "core/conn_req.hh"
#include "core/srq.hh"

using namespace rpma;

namespace {

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
template <class Queue, class Function>
[[gnu::always_inline]] inline int
post_receive(const char *function, const char *name, Function post, Queue *queue,
             const char *setting, ibv_sge *sges, int num_sge, const void *op_context) {
    ibv_recv_wr wr = {context_id(op_context), nullptr, sges, num_sge};
    ibv_recv_wr *bad;
    const int result = post(queue, &wr, &bad);
    return result == 0 ? 0 : receive_failed(function, name, setting, wr, result);
}

// Into one piece of local memory, or none for a message without bytes.
template <class Queue, class Function>
[[gnu::always_inline]] inline int receive(const char *function, const char *name, Function post,
                                          Queue *queue, const char *setting,
                                          const rpma_mr_local *dst, size_t offset, size_t len,
                                          const void *op_context) {
    if (dst == nullptr) [[unlikely]]
        return post_receive(function, name, post, queue, setting, nullptr, 0, op_context);
    ibv_sge sge = slice(*dst, offset, len);
    return post_receive(function, name, post, queue, setting, &sge, 1, op_context);
}

// Into the elements of a memory list; max_setting asks for more of them than most.
template <class Queue, class Function>
[[gnu::always_inline]] inline int
receive_list(const char *function, const char *name, Function post, Queue *queue,
             const char *setting, const rpma_sge *sgl, int nsge, uint32_t most,
             const char *max_setting, const void *op_context) {
    if (!is_list(sgl, nsge, most)) [[unlikely]]
        return refuse_list(function, sgl, nsge, most, most, max_setting);
    auto *sges = static_cast<ibv_sge *>(__builtin_alloca(room_for(nsge)));
    const int used = gather(function, sgl, nsge, sges);
    if (used < 0) [[unlikely]]
        return RPMA_E_INVAL;
    return post_receive(function, name, post, queue, setting, sges, used, op_context);
}

} // namespace

int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
              size_t len, int flags, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(src == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    return message(__func__, Post(conn), IBV_WR_SEND, src, offset, len, flags, 0, op_context);
}

int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
                       size_t len, int flags, uint32_t imm, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(src == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    return message(__func__, Post(conn), IBV_WR_SEND_WITH_IMM, src, offset, len, flags, imm,
                   op_context);
}

int rpma_sendv(struct rpma_conn *conn, const struct rpma_sge *sgl, int nsge, int flags,
               const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return message_list(__func__, Post(conn), IBV_WR_SEND, sgl, nsge, flags, 0, op_context);
}

int rpma_sendv_with_imm(struct rpma_conn *conn, const struct rpma_sge *sgl, int nsge, int flags,
                        uint32_t imm, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return message_list(__func__, Post(conn), IBV_WR_SEND_WITH_IMM, sgl, nsge, flags, imm,
                        op_context);
}

int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
              const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(dst == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    return receive(__func__, "ibv_post_recv", ibv_post_recv, conn->qp,
                   "rpma_conn_cfg_set_rq_size", dst, offset, len, op_context);
}

int rpma_recvv(struct rpma_conn *conn, const struct rpma_sge *sgl, int nsge,
               const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    return receive_list(__func__, "ibv_post_recv", ibv_post_recv, conn->qp,
                        "rpma_conn_cfg_set_rq_size", sgl, nsge, conn->max_sge(), CONN_SETTING,
                        op_context);
}

int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
                       size_t len, const void *op_context) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(len > UINT32_MAX);
    return receive(__func__, "ibv_post_recv", ibv_post_recv, &req->qp(),
                   "rpma_conn_cfg_set_rq_size", dst, offset, len, op_context);
}

int rpma_conn_req_recvv(struct rpma_conn_req *req, const struct rpma_sge *sgl, int nsge,
                        const void *op_context) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE(nsge == 0);
    return receive_list(__func__, "ibv_post_recv", ibv_post_recv, &req->qp(),
                        "rpma_conn_cfg_set_rq_size", sgl, nsge, req->max_sge(), CONN_SETTING,
                        op_context);
}

int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
                  const void *op_context) {
    RPMA_REFUSE(srq == NULL);
    RPMA_REFUSE(dst == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    return receive(__func__, "ibv_post_srq_recv", ibv_post_srq_recv, srq->queue(),
                   "rpma_srq_cfg_set_rq_size", dst, offset, len, op_context);
}

int rpma_srq_recvv(struct rpma_srq *srq, const struct rpma_sge *sgl, int nsge,
                   const void *op_context) {
    RPMA_REFUSE(srq == NULL);
    return receive_list(__func__, "ibv_post_srq_recv", ibv_post_srq_recv, srq->queue(),
                        "rpma_srq_cfg_set_rq_size", sgl, nsge, srq->max_sge(), SRQ_SETTING,
                        op_context);
}
