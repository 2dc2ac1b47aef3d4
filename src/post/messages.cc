// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// messages.cc -- exports: single sends, single receives and arrays of receives

#include <algorithm>
#include <iterator>

#include "core/conn_req.hh"
#include "core/srq.hh"
#include "post/list.hh"

using namespace rpma;

namespace {

// Slow path of a message: an argument is not valid, or the message is empty.
int message_slow(const CallSite &site, rpma_work_type type, rpma_conn *conn,
                 const rpma_sge &src, int flags, uint32_t imm, const void *op_context) {
    RPMA_REFUSE_AS(site, src.mr == nullptr && (src.offset | src.len) != 0, RPMA_NO_MEMORY,
                   "src", src.offset, src.len);
    RPMA_REFUSE_AS(site, src.len > UINT32_MAX, RPMA_TOO_LONG, "len", src.len);
    rpma_work work = make_work(type, nullptr, 0, op_context);
    work.local = src;
    work.imm = imm;
    return post_slow(site, conn, work, flags);
}

// The slow paths have the parameters of the exported functions, so that the tail call moves no
// register.
[[gnu::cold, gnu::noinline]] int send_slow(rpma_conn *conn, const rpma_mr_local *src,
                                           size_t offset, size_t len, int flags,
                                           const void *op_context) {
    return message_slow({.function = "rpma_send"}, RPMA_WORK_SEND, conn, {src, offset, len},
                        flags, 0, op_context);
}

[[gnu::cold, gnu::noinline]] int send_with_imm_slow(rpma_conn *conn, const rpma_mr_local *src,
                                                    size_t offset, size_t len, int flags,
                                                    uint32_t imm, const void *op_context) {
    return message_slow({.function = "rpma_send_with_imm"}, RPMA_WORK_SEND_WITH_IMM, conn,
                        {src, offset, len}, flags, imm, op_context);
}

[[gnu::always_inline]] inline int send_message(const char *function, const rpma_conn &conn,
                                               ibv_wr_opcode opcode, const rpma_mr_local &src,
                                               size_t offset, size_t len, int flags,
                                               uint32_t imm, const void *op_context) {
    Request request;
    set_wr(request.wr, opcode, 1, message_flags(flags), imm, op_context);
    clear_remote(request.wr);
    return post_request(function, conn, request, make_sge(src, offset, len));
}

} // namespace

RPMA_POST int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
                        size_t len, int flags, const void *op_context) {
    if (conn == nullptr || src == nullptr || len >> 32 != 0 || flags == 0) [[unlikely]]
        return send_slow(conn, src, offset, len, flags, op_context);
    return send_message(__func__, *conn, IBV_WR_SEND, *src, offset, len, flags, 0, op_context);
}

RPMA_POST int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src,
                                 size_t offset, size_t len, int flags, uint32_t imm,
                                 const void *op_context) {
    if (conn == nullptr || src == nullptr || len >> 32 != 0 || flags == 0) [[unlikely]]
        return send_with_imm_slow(conn, src, offset, len, flags, imm, op_context);
    return send_message(__func__, *conn, IBV_WR_SEND_WITH_IMM, *src, offset, len, flags, imm,
                        op_context);
}

namespace {

// The size of a queue for receives, for the log. It is looked up only after the queue has
// rejected a receive: keeping its handle across the provider's call would cost an instruction.
uint32_t rq_size_of(const rpma_conn_req &req) {
    return req.rq_size();
}
uint32_t rq_size_of(const ibv_qp &qp) {
    return static_cast<const rpma_conn *>(handle_of(&qp))->rq_size();
}
uint32_t rq_size_of(const ibv_srq &srq) {
    return static_cast<const rpma_srq *>(handle_of(&srq))->rq_size();
}

template <class Owner>
[[gnu::cold, gnu::noinline]] int fail_one_receive(const char *function,
                                                  const ReceiveQueue &names, const Owner &owner,
                                                  RejectedReceive wr, int result) {
    return fail_receive(function, names, rq_size_of(owner), wr, result);
}

// One receive, and the owner of its queue, see tuned.hh.
template <class Owner> struct ReceiveRequest {
    ibv_sge sge;
    ibv_recv_wr wr;
    const Owner *owner;
};

// Receives into one SGE, or into none for an empty message. post is ibv_post_recv() or
// ibv_post_srq_recv(); owner is the queue or the request, see rq_size_of().
template <class Owner, class Queue, class Post>
[[gnu::always_inline]] inline int post_receive(const char *function, const ReceiveQueue &names,
                                               Post post, const Owner *owner, Queue *queue,
                                               const rpma_mr_local *dst, size_t offset,
                                               size_t len, const void *op_context) {
    ReceiveRequest<Owner> request;
    request.wr.wr_id = wr_id_of(op_context);
    request.wr.next = nullptr;
    request.wr.sg_list = &request.sge;
    request.owner = owner;
    // Instantiated per branch: the number of SGEs is a constant in each.
    const auto post_with = [&](int number) __attribute__((always_inline)) {
        request.wr.num_sge = number;
        ibv_recv_wr *bad;
        const int result = post(queue, &request.wr, &bad);
        return result == 0 ? 0
                           : fail_one_receive(function, names, *request.owner,
                                              {request.wr.wr_id, request.sge}, result);
    };
    if (dst == nullptr) [[unlikely]] {
        request.sge = {};
        return post_with(0);
    }
    request.sge = make_sge(*dst, offset, len);
    return post_with(1);
}

// Without this check, the driver bnxt_re of rdma-core 44 to 56 dereferences the missing queue
// (bnxt_re_post_recv(), jrqq).
#define RPMA_USES_SRQ                                                                    \
    "the connection uses a shared receive queue: post its receives with rpma_srq_recv()" \
    " or rpma_srq_recv_many()"

// Slow path of a receive whose length is not below the limit.
[[gnu::cold, gnu::noinline]] int refuse_receive(const char *function, const rpma_conn &,
                                                size_t len) {
    RPMA_REFUSE_AS(function, len > UINT32_MAX, RPMA_TOO_LONG, "len", len);
    return refuse(function, __FILE_NAME__, __LINE__, RPMA_USES_SRQ);
}
[[gnu::cold, gnu::noinline]] int refuse_receive(const char *function, const rpma_conn_req &req,
                                                size_t len) {
    RPMA_REFUSE_AS(function, len > UINT32_MAX, RPMA_TOO_LONG, "len", len);
    RPMA_REFUSE_AS(function, !req.is_set_up(), "%s", req.not_set_up_reason());
    return refuse(function, __FILE_NAME__, __LINE__, RPMA_USES_SRQ);
}

constexpr char ARRAY[] = "receives";

// The fast path of a receive with one SGE. Returns false for all others.
[[gnu::always_inline]] inline bool encode_receive(ibv_recv_wr &wr, ibv_sge *sges,
                                                  const ibv_sge *end,
                                                  const rpma_receive &receive) {
    const rpma_sge &local = receive.local;
    if ((receive.reserved | receive.nsge | reinterpret_cast<uintptr_t>(receive.sgl)) != 0 ||
        local.mr == nullptr || local.len - 1 >= UINT32_MAX || sges == end) [[unlikely]]
        return false;
    *sges = make_sge(*local.mr, local.offset, local.len);
    wr = {wr_id_of(receive.op_context), &wr + 1, sges, 1};
    return true;
}

// Builds any receive. Returns 0 or RPMA_E_INVAL, which is logged unless site.is_later is set;
// it then may also mean that too few SGEs are left.
[[gnu::noinline]] int build_receive(const CallSite &site, ibv_recv_wr &wr, ibv_sge *sges,
                                    const ibv_sge *end, const rpma_receive &receive,
                                    const SgeLimit &limit) {
    RPMA_REFUSE_AS(site, receive.reserved != 0, RPMA_RESERVED("receive.reserved"),
                   uint64_t{receive.reserved});
    const SgeList list = choose_sges(site, receive.local, receive.sgl, receive.nsge);
    if (list.sgl == nullptr || (list.nsge <= limit.max && list.nsge > end - sges))
        return RPMA_E_INVAL;
    const int number = build_sges(site, list, limit, sges);
    if (number < 0)
        return RPMA_E_INVAL;
    wr = {wr_id_of(receive.op_context), &wr + 1, sges, number};
    return 0;
}

// Posts an array of receives to the queue of owner with post, ibv_post_recv() or
// ibv_post_srq_recv().
template <class Owner, class Queue, class Post>
int post_receives(const char *function, const ReceiveQueue &names, Post post,
                  const Owner &owner, Queue *queue, const SgeLimit &limit,
                  const rpma_receive *receives, uint32_t count, uint32_t *posted) {
    ibv_recv_wr wrs[MAX_CHUNK];
    ibv_sge sges[MAX_SGE];
    uint32_t done = 0;
    int code = 0;
    while (done < count) {
        const rpma_receive *next = receives + done;
        const rpma_receive *const end = next + std::min(count - done, MAX_CHUNK);
        ibv_recv_wr *wr = wrs;
        ibv_sge *sge = sges;
        for (; next != end; next++, wr++) {
            if (!encode_receive(*wr, sge, std::end(sges), *next)) [[unlikely]] {
                const auto index = static_cast<uint32_t>(next - receives);
                code = build_receive({function, ARRAY, index, wr != wrs}, *wr, sge,
                                     std::end(sges), *next, limit);
                if (code != 0)
                    break;
            }
            sge += wr->num_sge;
        }
        if (wr == wrs)
            break;
        code = 0; // a receive rejected after earlier ones is validated again as the first
        wr[-1].next = nullptr;
        ibv_recv_wr *refused = wrs;
        const int result = post(queue, wrs, &refused);
        if (result == 0) {
            done += static_cast<uint32_t>(wr - wrs);
            continue;
        }
        // rxe_post_recv() of rxe stores none if the queue pair has a shared receive queue.
        if (refused == nullptr)
            refused = wrs;
        done += static_cast<uint32_t>(refused - wrs);
        const Part part = {ARRAY, done, done, ""};
        const ibv_sge first = refused->num_sge > 0 ? refused->sg_list[0] : ibv_sge{};
        code = fail_receive(function, names, owner.rq_size(), {refused->wr_id, first}, result,
                            &part);
        break;
    }
    if (posted != nullptr)
        *posted = done;
    return code;
}

} // namespace

RPMA_POST int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset,
                        size_t len, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE_AS(__func__, dst == NULL && (offset | len) != 0, RPMA_NO_MEMORY, "dst", offset,
                   len);
    if (len >= conn->receive_limit) [[unlikely]]
        return refuse_receive(__func__, *conn, len);
    return post_receive(__func__, CONN_RECEIVES, ibv_post_recv, conn->qp, conn->qp, dst, offset,
                        len, op_context);
}

RPMA_POST int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst,
                                 size_t offset, size_t len, const void *op_context) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE(dst == NULL);
    if (len >= req->receive_limit) [[unlikely]]
        return refuse_receive(__func__, *req, len);
    return post_receive(__func__, CONN_RECEIVES, ibv_post_recv, req, req->qp, dst, offset, len,
                        op_context);
}

RPMA_POST int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset,
                            size_t len, const void *op_context) {
    RPMA_REFUSE(srq == NULL);
    RPMA_REFUSE_AS(__func__, dst == NULL && (offset | len) != 0, RPMA_NO_MEMORY, "dst", offset,
                   len);
    RPMA_REFUSE_AS(__func__, len > UINT32_MAX, RPMA_TOO_LONG, "len", len);
    return post_receive(__func__, SRQ_RECEIVES, ibv_post_srq_recv, srq->queue(), srq->queue(),
                        dst, offset, len, op_context);
}

int rpma_recv_many(struct rpma_conn *conn, const struct rpma_receive *receives, uint32_t count,
                   uint32_t *posted) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(receives == NULL && count != 0);
    RPMA_REFUSE_AS(__func__, conn->receive_limit == 0, RPMA_USES_SRQ);
    return post_receives(__func__, CONN_RECEIVES, ibv_post_recv, *conn, conn->qp,
                         {conn->max_sge, conn->max_sge, CONN_SGE_SETTER}, receives, count,
                         posted);
}

int rpma_conn_req_recv_many(struct rpma_conn_req *req, const struct rpma_receive *receives,
                            uint32_t count, uint32_t *posted) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE(receives == NULL && count != 0);
    RPMA_REFUSE_AS(__func__, !req->is_set_up(), "%s", req->not_set_up_reason());
    RPMA_REFUSE_AS(__func__, req->receive_limit == 0, RPMA_USES_SRQ);
    return post_receives<rpma_conn>(__func__, CONN_RECEIVES, ibv_post_recv, *req, req->qp,
                                    {req->max_sge, req->max_sge, CONN_SGE_SETTER}, receives,
                                    count, posted);
}

int rpma_srq_recv_many(struct rpma_srq *srq, const struct rpma_receive *receives,
                       uint32_t count, uint32_t *posted) {
    RPMA_REFUSE(srq == NULL);
    RPMA_REFUSE(receives == NULL && count != 0);
    return post_receives(__func__, SRQ_RECEIVES, ibv_post_srq_recv, *srq, srq->queue(),
                         {srq->max_sge(), srq->max_sge(), SRQ_SGE_SETTER}, receives, count,
                         posted);
}
