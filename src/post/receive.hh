// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// receive.hh -- the queues for receives

#pragma once

#include "core/conn.hh"
#include "core/conn_req.hh"
#include "core/srq.hh"
#include "post/refused.hh"

namespace rpma {

inline constexpr ReceiveQueue CONN_RECEIVES = {"ibv_post_recv", "rpma_conn_cfg_set_rq_size"};
inline constexpr ReceiveQueue SRQ_RECEIVES = {"ibv_post_srq_recv", "rpma_srq_cfg_set_rq_size"};

// The number of receives that the device has room for. The queue is looked up only after it has
// rejected a receive: keeping its handle across the provider's call would cost an instruction.
template <class Handle> uint32_t room_for_receives(const Handle &handle) {
    return handle.rq_size();
}
inline uint32_t room_for_receives(const ibv_qp &qp) {
    return static_cast<const rpma_conn *>(handle_of(&qp))->rq_size();
}
inline uint32_t room_for_receives(const ibv_srq &srq) {
    return static_cast<const rpma_srq *>(handle_of(&srq))->rq_size();
}

// Logs that the queue of owner rejected wr, and returns the code; result is the provider's.
template <class Owner>
[[gnu::cold, gnu::noinline]] int
refused_receive(const char *function, const ReceiveQueue &names, const Owner &owner,
                ibv_recv_wr wr, int result, const Part *part = nullptr) {
    return refuse_receive(function, names, room_for_receives(owner), wr, result, part);
}

} // namespace rpma
