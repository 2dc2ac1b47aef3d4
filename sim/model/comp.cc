// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// comp.cc -- the completer: the completions of requests and receives.

#include "comp.hh"
#include "counters.hh"
#include "qp_state.hh"
#include "req.hh"
#include "resp.hh"

#include <utility>

namespace sim {

static ibv_wc_opcode completion_opcode(uint32_t opcode) {
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    case IBV_WR_BIND_MW:
        return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
        return IBV_WC_LOCAL_INV;
    case SIM_WR_FLUSH:
        return static_cast<ibv_wc_opcode>(WC_FLUSH);
    case SIM_WR_ATOMIC_WRITE:
        return static_cast<ibv_wc_opcode>(WC_ATOMIC_WRITE);
    default:
        return IBV_WC_SEND;
    }
}

// rdma-core 56, providers/mlx5/cq.c, mlx5_parse_cqe(): a send frees all earlier ones.
static void free_entries(Fabric &fabric, const Unpolled &polled) {
    const auto found = fabric.qps.find(polled.qp);
    Qp *const qp = found == fabric.qps.end() ? nullptr : found->second;
    if (polled.sends > 0 && qp)
        qp->sent.freed = polled.sends;
    else if (Srq *const srq = polled.srq ? fabric.find<Srq>(polled.srq) : nullptr)
        srq->received.freed++;
    else if (polled.sends == 0 && polled.srq == 0 && qp)
        qp->received.freed++;
}

void free_polled(Fabric &fabric, Cq &cq) {
    for (const uint32_t in_ring = cq.added - cq.taken(); cq.unpolled.size() > in_ring;
         cq.unpolled.pop_front())
        free_entries(fabric, cq.unpolled.front());
}

void overrun_cq(Fabric &fabric, Cq &cq) {
    cq.ring->overrun = 1;
    fabric.raise_async(cq, IBV_EVENT_CQ_ERR);
    if (!cq.context->device->profile->overrun_is_fatal)
        return;
    std::vector<uint32_t> failed;
    for (const auto &[number, qp] : fabric.qps)
        if (qp->send_cq == &cq || qp->recv_cq == &cq)
            failed.push_back(number);
    for (const uint32_t number : failed)
        fail_qp_later(fabric, number);
}

// Returns false if the queue is full. `members`: those that the driver writes.
static bool add_completion(Fabric &fabric, Cq &cq, const ibv_wc &wc, unsigned members,
                           bool is_solicited, const Unpolled &unpolled) {
    Ring &ring = *cq.ring;
    const sim_profile &profile = *cq.context->device->profile;
    if (ring.overrun && profile.overrun_is_fatal)
        return false;
    if (cq.added - cq.taken() >= cq.entries && !cq.ignores_overrun) {
        overrun_cq(fabric, cq);
        return false;
    }
    if (wc.status != IBV_WC_SUCCESS &&
        kind_of(Weakness::FAILED_COMPLETION).is_of_device(profile))
        (void)fabric.shows(Weakness::FAILED_COMPLETION);
    fabric.scheduler().completed(cq, wc);
    ring.first()[cq.added % cq.entries] = {wc, fabric.now(), members, 0};
    if (profile.frees_entries_in_poll) {
        free_polled(fabric, cq);
        cq.unpolled.push_back(unpolled);
    }
    cq.added++;
    fabric.publish(cq);
    if (sim_notifies(&profile, &cq.armed, wc.status, is_solicited) && cq.channel)
        fabric.push(*cq.channel, {&cq, cq.cookie, 0, 0, {}});
    return true;
}

static void complete_send(Fabric &fabric, Qp &qp, Send &send, ibv_wc_status status) {
    const sim_profile &profile = *qp.context->device->profile;
    const bool is_good = status == IBV_WC_SUCCESS;
    ibv_wc wc{};
    wc.wr_id = send.wr.wr_id;
    wc.opcode = completion_opcode(send.wr.opcode);
    wc.byte_len =
        (is_good ? profile.sent_length : profile.failed_length) == SIM_LENGTH_REQUESTED
            ? static_cast<uint32_t>(send.length)
            : send.byte_len;
    wc.wc_flags = profile.flags_sent_imm && has_imm(send.wr.opcode) ? IBV_WC_WITH_IMM : 0;
    wc.qp_num = qp.number;
    const Unpolled unpolled = {qp.number, 0, send.posted};
    if (is_good && !qp.signals_all && !(send.wr.flags & IBV_SEND_SIGNALED)) {
        if (profile.fails_oldest)
            qp.unreported.push_back({wc, unpolled});
        return;
    }
    for (Unreported &older : std::exchange(qp.unreported, {})) {
        if (is_good)
            continue;
        older.wc.status = status;
        if (profile.failed_length != SIM_LENGTH_REQUESTED)
            older.wc.byte_len = 0;
        add_completion(fabric, *qp.send_cq, older.wc, profile.sent_members, false,
                       older.unpolled);
        status = IBV_WC_WR_FLUSH_ERR;
    }
    wc.status = status;
    add_completion(fabric, *qp.send_cq, wc, profile.sent_members,
                   send.wr.flags & IBV_SEND_SOLICITED && profile.notifies_sender, unpolled);
}

// Completes requests in order; the first failure moves the QP to the error state.
void complete_sends(Fabric &fabric, Qp &qp) {
    while (!qp.sends.empty()) {
        Send &first = qp.sends.front();
        if (qp.attr.qp_state != IBV_QPS_ERR &&
            (!first.executed || first.done_at > fabric.now())) {
            if (first.executed)
                start_send_timer(fabric, qp, first.done_at);
            return;
        }
        // The target may have executed a request that is flushed.
        const bool has_response = first.executed && first.done_at <= fabric.now();
        if (first.is_landing && has_response)
            land(fabric, qp, first);
        else
            qp.landing -= first.is_landing;
        const ibv_wc_status status = has_response ? first.status : IBV_WC_WR_FLUSH_ERR;
        complete_send(fabric, qp, first, status);
        count_send(qp, first, status);
        qp.sends.pop_front();
        if (status == IBV_WC_SUCCESS || qp.attr.qp_state == IBV_QPS_ERR)
            continue;
        if (status == IBV_WC_LOC_QP_OP_ERR && is_iwarp(qp))
            disconnect_iwarp(fabric, qp);
        else
            fail_qp(fabric, qp); // completes the remaining requests
        return;
    }
}

bool complete_receive(Fabric &fabric, Qp &qp, const Receive &receive, ibv_wc wc,
                      bool is_solicited) {
    const sim_profile &profile = *qp.context->device->profile;
    wc.wr_id = receive.wr_id;
    wc.qp_num = qp.number;
    if (wc.status == IBV_WC_SUCCESS && profile.receives_have_grh)
        wc.wc_flags |= IBV_WC_GRH;
    count_receive(qp, wc.status);
    return add_completion(
        fabric, *qp.recv_cq, wc,
        qp.type == IBV_QPT_UD ? profile.datagram_members : profile.received_members,
        is_solicited && !profile.notifies_sender, {qp.number, qp.srq ? qp.srq->handle : 0, 0});
}

void flush_receives(Fabric &fabric, Qp &qp) {
    ibv_wc wc{};
    wc.status = IBV_WC_WR_FLUSH_ERR;
    wc.opcode = IBV_WC_RECV;
    for (; !qp.receives.empty(); qp.receives.pop_front())
        complete_receive(fabric, qp, qp.receives.front(), wc, false);
}

// Removes the completions of a QP from a ring that the process does not read now, which frees
// its receives of an SRQ.
static void remove_completions(Fabric &fabric, Cq &cq, uint32_t number) {
    Ring &ring = *cq.ring;
    uint32_t kept = cq.taken();
    free_polled(fabric, cq);
    std::erase_if(cq.unpolled, [&fabric, number](const Unpolled &each) {
        if (each.qp == number && each.srq != 0)
            free_entries(fabric, each);
        return each.qp == number;
    });
    for (uint32_t i = kept; i != cq.added; i++) {
        const Completion completion = ring.first()[i % cq.entries];
        if (completion.wc.qp_num != number)
            ring.first()[kept++ % cq.entries] = completion;
    }
    cq.added = kept;
    fabric.publish(cq);
}

void remove_completions(Fabric &fabric, const Qp &qp) {
    for (Cq *const cq : {qp.send_cq, qp.recv_cq})
        if (cq)
            remove_completions(fabric, *cq, qp.number);
}

} // namespace sim
