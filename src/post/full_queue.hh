// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// full_queue.hh -- tells a full send queue from other failures of a post

#pragma once

#include <cerrno>

#include "base/probes.hh"
#include "core/conn.hh"

namespace rpma {

// The result of mthca for each failed post, and of mlx4 for a receive of an SRQ
// (mthca_tavor_post_send(), mlx4_post_srq_recv() of rdma-core 44 to 64): the queue is full, or
// the request has an opcode or a number of SGEs or inline bytes that librpma does not post.
inline constexpr int NO_ERROR_NUMBER = -1;

// The error number of a post that returned result; 0 if result is no error number. Most
// providers return an error number; cxgb4, erdma, qedr and siw return it negated
// (c4iw_post_send(), siw_post_send() of rdma-core 44 to 64). -1 is no error number, see
// NO_ERROR_NUMBER.
inline int post_error(int result) {
    if (result > 0) [[likely]]
        return result;
    return result == NO_ERROR_NUMBER ? 0 : -result;
}

// Returns true if a post failed with a result of a full queue. It may have another cause.
inline bool is_full_queue_error(int result) {
    return post_error(result) == ENOMEM || post_error(result) == ENOSPC ||
           result == NO_ERROR_NUMBER;
}

inline uint64_t bytes_of(const ibv_send_wr &wr) {
    uint64_t bytes = 0;
    for (int i = 0; i < wr.num_sge; i++)
        bytes += wr.sg_list[i].length;
    return bytes;
}

// The number of bytes that the provider copies during the call.
inline uint64_t inline_bytes(const ibv_send_wr &wr) {
    return (wr.send_flags & IBV_SEND_INLINE) != 0 ? bytes_of(wr) : 0;
}

inline bool is_iwarp(const ibv_qp &qp) {
    return qp.context->device->transport_type == IBV_TRANSPORT_IWARP;
}

// librdmacm makes the queue pair ready, by ibv_modify_qp(), which sets the state
// (ucma_modify_qp_rts()). On iWARP the kernel does, and the state remains
// (iwcm_init_qp_rts_attr() of Linux).
inline bool is_ready_to_send(const ibv_qp &qp) {
    return qp.state >= IBV_QPS_RTS || is_iwarp(qp);
}

// Providers use the error numbers of a full queue for other causes, too, which polling does not
// remove: too many inline bytes (mlx5; wr_set_inline_data() of rxe: ENOSPC), and mlx5 a queue
// pair that is not ready to send (set_qp_operational_state()). The number of SGEs, for which
// mlx5, mlx4 and bnxt_re use them, is checked before the post. A call takes 9 instructions
// more.
inline bool is_would_block(const rpma_conn &conn, int result, uint64_t bytes) {
    return is_full_queue_error(result) && bytes <= conn.granted().max_inline_data &&
           is_ready_to_send(*conn.qp);
}

// Returns true if ibv_post_send() rejected a request because the queue is full, and no line
// reports it: a program may post until the queue is full. Only the probe is fired.
[[gnu::always_inline]] inline bool is_quiet_full_queue(const char *function,
                                                       const rpma_conn &conn,
                                                       const ibv_send_wr &wr, int result) {
    if (is_logged(RPMA_LOG_LEVEL_DEBUG) || !is_would_block(conn, result, inline_bytes(wr)))
        return false;
    probe::post_refused(function, &conn, wr.opcode, wr.wr_id, result);
    return true;
}

} // namespace rpma
