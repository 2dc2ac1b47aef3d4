// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// receives.cc -- exports: many receives at once

#include <algorithm>

#include "post/pieces.hh"
#include "post/receive.hh"

using namespace rpma;

namespace {

constexpr char ARRAY[] = "receives";

// The receives of one call of the provider.
struct Receives {
    static constexpr uint32_t MOST = 16;

    ibv_recv_wr wrs[MOST];
    ibv_sge sges[MOST_PIECES];
    uint32_t used = 0; // of wrs
    uint32_t used_sges = 0;
};

void link(Receives &to, const rpma_receive &receive, uint32_t number) {
    ibv_recv_wr &wr = to.wrs[to.used];
    wr = {context_id(receive.op_context), nullptr, to.sges + to.used_sges,
          static_cast<int>(number)};
    if (to.used > 0)
        to.wrs[to.used - 1].next = &wr;
    to.used++;
    to.used_sges += number;
}

// Appends a receive. 0, or RPMA_E_INVAL, which is logged unless earlier receives are posted
// first; then nothing is appended, and RPMA_E_INVAL may also mean that there is no SGE left.
[[gnu::noinline]] int add(const Origin &origin, Receives &to, const rpma_receive &receive,
                          const MostPieces &limit) {
    RPMA_REFUSE_RESERVED(origin, receive.reserved);
    const Pieces pieces = choose_pieces(origin, receive.local, receive.sgl, receive.nsge);
    if (pieces.sgl == nullptr ||
        (pieces.nsge <= limit.most && pieces.nsge > MOST_PIECES - to.used_sges))
        return RPMA_E_INVAL;
    const int used = gather(origin, pieces, limit, to.sges + to.used_sges);
    if (used < 0)
        return RPMA_E_INVAL;
    link(to, receive, static_cast<uint32_t>(used));
    return 0;
}

// Fast path for a receive with one SGE.
[[gnu::always_inline]] inline bool add_usual(Receives &to, const rpma_receive &receive) {
    if ((receive.reserved | receive.nsge | reinterpret_cast<uintptr_t>(receive.sgl)) != 0 ||
        receive.local.mr == nullptr || receive.local.len == 0 ||
        receive.local.len > UINT32_MAX || to.used_sges == MOST_PIECES) [[unlikely]]
        return false;
    to.sges[to.used_sges] = slice(*receive.local.mr, receive.local.offset, receive.local.len);
    link(to, receive, 1);
    return true;
}

// Posts an array of receives to the queue of owner with post, ibv_post_recv() or
// ibv_post_srq_recv().
template <class Owner, class Queue, class Post>
int receive_many(const char *function, const ReceiveQueue &names, Post post, const Owner &owner,
                 Queue *queue, const MostPieces &limit, const rpma_receive *receives,
                 uint32_t count, uint32_t *posted) {
    uint32_t done = 0;
    int code = 0;
    while (code == 0 && done < count) {
        Receives some;
        while (code == 0 && some.used < std::min(count - done, Receives::MOST)) {
            const uint32_t index = done + some.used;
            if (!add_usual(some, receives[index]))
                code =
                    add({function, ARRAY, index, some.used > 0}, some, receives[index], limit);
        }
        if (some.used == 0)
            break;
        code = 0; // a receive rejected after earlier ones is validated again as the first
        ibv_recv_wr *refused = some.wrs;
        const int result = post(queue, some.wrs, &refused);
        if (result == 0) {
            done += some.used;
            continue;
        }
        // rxe_post_recv() of rxe stores none if the queue pair has a shared receive queue.
        if (refused == nullptr)
            refused = some.wrs;
        done += static_cast<uint32_t>(refused - some.wrs);
        const Part part = {ARRAY, done, done, ""};
        code = refused_receive(function, names, owner, *refused, result, &part);
    }
    if (posted != nullptr)
        *posted = done;
    return code;
}

} // namespace

int rpma_recv_many(struct rpma_conn *conn, const struct rpma_receive *receives, uint32_t count,
                   uint32_t *posted) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(receives == NULL && count != 0);
    return receive_many(__func__, CONN_RECEIVES, ibv_post_recv, *conn, conn->qp,
                        {conn->max_sge, conn->max_sge, CONN_PIECES}, receives, count, posted);
}

int rpma_conn_req_recv_many(struct rpma_conn_req *req, const struct rpma_receive *receives,
                            uint32_t count, uint32_t *posted) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE(receives == NULL && count != 0);
    RPMA_REFUSE_AS(__func__, !req->is_set_up(), "%s", req->obstacle());
    return receive_many(__func__, CONN_RECEIVES, ibv_post_recv, *req, &req->qp(),
                        {req->max_sge(), req->max_sge(), CONN_PIECES}, receives, count, posted);
}

int rpma_srq_recv_many(struct rpma_srq *srq, const struct rpma_receive *receives,
                       uint32_t count, uint32_t *posted) {
    RPMA_REFUSE(srq == NULL);
    RPMA_REFUSE(receives == NULL && count != 0);
    return receive_many(__func__, SRQ_RECEIVES, ibv_post_srq_recv, *srq, srq->queue(),
                        {srq->max_sge(), srq->max_sge(), SRQ_PIECES}, receives, count, posted);
}
