// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// qp_state.cc -- a queue pair fails, is reset or is deleted.

#include "qp_state.hh"
#include "comp.hh"
#include "counters.hh"
#include "resp.hh"
#include "word_order.hh"

namespace sim {

void fail_qp(Fabric &fabric, Qp &qp) {
    if (qp.attr.qp_state == IBV_QPS_ERR)
        return;
    end_attempts(fabric, qp);
    withdraw_credit(qp);
    qp.attr.qp_state = IBV_QPS_ERR;
    fabric.cancel(qp.timer);
    qp.timer = 0;
    complete_sends(fabric, qp);
    flush_receives(fabric, qp);
    fabric.no_receive.erase(qp.number);
    if (qp.srq && !is_iwarp(qp))
        fabric.raise_async(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
    if (!is_iwarp(qp))
        return;
    fabric.cm().qp_failed(qp);
    if (Qp *const peer = fabric.peer_of(qp))
        fail_qp(fabric, *peer);
}

// Fails the QP in a timer, because it may be completing a request now.
void fail_qp_later(Fabric &fabric, uint32_t number) {
    fabric.at(fabric.now(), [&fabric, number] {
        if (const auto found = fabric.qps.find(number); found != fabric.qps.end())
            fail_qp(fabric, *found->second);
    });
}

// Linux 7.3, drivers/infiniband/sw/siw/siw_qp_tx.c, siw_qp_sq_process(): a local error ends the
// connection; later requests stay in the queue until the QP fails.
void disconnect_iwarp(Fabric &fabric, Qp &qp) {
    Qp *const peer = fabric.peer_of(qp);
    withdraw_credit(qp);
    fabric.raise_async(qp, IBV_EVENT_QP_FATAL);
    qp.iwarp_peer = 0;
    fabric.cm().qp_failed(qp);
    if (peer)
        fail_qp(fabric, *peer);
}

void reset_qp(Fabric &fabric, Qp &qp) {
    show_received(fabric, qp);
    withdraw_credit(qp);
    if (qp.context->device->profile->reset_removes_completions)
        remove_completions(fabric, qp);
    qp.was_reset = true;
    fabric.cancel(qp.timer);
    end_attempts(fabric, qp);
    const ibv_qp_cap cap = qp.attr.cap;
    qp.attr = {};
    qp.attr.cap = cap;
    qp.sends.clear();
    qp.landing = 0;
    qp.unreported.clear();
    qp.receives.clear();
    qp.sent = qp.received = {};
    for (Cq *const cq : {qp.send_cq, qp.recv_cq})
        if (cq)
            for (Unpolled &each : cq->unpolled)
                if (each.qp == qp.number && each.srq == 0)
                    each.qp = 0;
    qp.written.clear();
    qp.retries_end_at = qp.rnr_retry_at = 0;
    qp.rnr_retries_left = 0;
    qp.iwarp_peer = 0;
    qp.is_idle = false;
    fabric.no_receive.erase(qp.number);
}

void release_qp(Fabric &fabric, Qp &qp) {
    show_received(fabric, qp); // the program may use its memory for something else
    fabric.cm().qp_destroyed(qp);
    if (is_iwarp(qp))
        if (Qp *const peer = fabric.peer_of(qp)) {
            qp.iwarp_peer = 0;
            fail_qp(fabric, *peer);
        }
    fabric.cancel(qp.timer);
    end_attempts(fabric, qp);
    fabric.no_receive.erase(qp.number);
    fabric.qps.erase(qp.number);
    if (qp.context->device->profile->destroy_removes_completions)
        remove_completions(fabric, qp);
    if (qp.credit)
        *qp.credit = {};
    while (!qp.groups.empty())
        (void)fabric.detach(qp, ibv_gid(qp.groups.back()));
    for (Object *const used : {static_cast<Object *>(qp.pd), static_cast<Object *>(qp.send_cq),
                               static_cast<Object *>(qp.recv_cq), static_cast<Object *>(qp.srq),
                               static_cast<Object *>(qp.xrcd)})
        if (used)
            used->users--;
}

} // namespace sim
