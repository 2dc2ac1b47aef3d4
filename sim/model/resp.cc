// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// resp.cc -- the responder: the effects of a request on memory and on the other side.

#include "comp.hh"
#include "counters.hh"
#include "qp_state.hh"
#include "resp_parts.hh"
#include "word_order.hh"

#include <algorithm>

namespace sim {

namespace {

bool is_send(uint32_t opcode) {
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
           opcode == IBV_WR_SEND_WITH_INV;
}

bool is_write(uint32_t opcode) {
    return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

// A receiver of XRC has the SRQ that a request names, and its PD and CQ, for this request:
// InfiniBand Architecture Specification, volume 1, annex A14.
class XrcReceiver {
  public:
    XrcReceiver(Qp &qp, Srq *srq) : qp_(qp) {
        if (srq)
            set(srq, srq->pd, srq->cq);
    }
    ~XrcReceiver() {
        if (qp_.type == IBV_QPT_XRC_RECV)
            set(nullptr, nullptr, nullptr);
    }
    XrcReceiver(const XrcReceiver &) = delete;
    XrcReceiver &operator=(const XrcReceiver &) = delete;

  private:
    Qp &qp_;
    void set(Srq *srq, Pd *pd, Cq *cq) {
        qp_.srq = srq;
        qp_.pd = pd;
        qp_.recv_cq = cq;
    }
};

} // namespace

ibv_wc received(const Send &send, uint64_t length, ibv_wc_opcode opcode) {
    ibv_wc wc{};
    wc.opcode = opcode;
    wc.byte_len = static_cast<uint32_t>(length);
    const bool invalidates = send.wr.opcode == IBV_WR_SEND_WITH_INV;
    if (has_imm(send.wr.opcode) || invalidates) {
        wc.wc_flags = invalidates ? IBV_WC_WITH_INV : IBV_WC_WITH_IMM;
        wc.imm_data = send.wr.imm_data;
    }
    return wc;
}

ibv_wc failed(ibv_wc_status status) {
    ibv_wc wc{};
    wc.status = status;
    wc.opcode = IBV_WC_RECV;
    return wc;
}

bool has_imm(uint32_t opcode) {
    return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

// ---- receives ------------------------------------------------------------------------------

static bool has_receive(const Qp &qp) {
    return !(qp.srq ? qp.srq->receives : qp.receives).empty();
}

bool take_receive(Fabric &fabric, Qp &qp, Receive &receive) {
    if (!has_receive(qp))
        return false;
    std::deque<Receive> &receives = qp.srq ? qp.srq->receives : qp.receives;
    receive = std::move(receives.front());
    receives.pop_front();
    if (qp.srq && qp.srq->attr.srq_limit > receives.size()) {
        qp.srq->attr.srq_limit = 0;
        fabric.raise_async(*qp.srq, IBV_EVENT_SRQ_LIMIT_REACHED);
    }
    return true;
}

void return_receive(Qp &qp, Receive receive) {
    (qp.srq ? qp.srq->receives : qp.receives).push_front(std::move(receive));
}

// ---- requests ------------------------------------------------------------------------------

// InfiniBand Architecture Specification, volume 1, C9-222.1: raises an event, unless a receive
// reports the error. Linux 7.3, drivers/infiniband/sw/siw/siw_qp_rx.c, siw_proc_write(): raises
// none if no region has the key; siw_qp_tx.c, siw_qp_sq_process().
static void report_violation(Fabric &fabric, Qp &peer, const Send &send) {
    Receive receive;
    if (is_iwarp(peer) && send.wr.opcode == IBV_WR_RDMA_READ)
        fabric.raise_async(peer, IBV_EVENT_QP_REQ_ERR);
    else if (is_iwarp(peer) && !fabric.mr_of(send.wr.rkey))
        return;
    else if (send.wr.opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
        fabric.raise_async(peer, IBV_EVENT_QP_ACCESS_ERR);
    else if (take_receive(fabric, peer, receive))
        complete_receive(fabric, peer, receive, failed(IBV_WC_REM_ACCESS_ERR), false);
}

// The target refuses the request, and its QP fails. On iWARP, the target closes the connection,
// and a write has completed before: Linux 7.3, drivers/infiniband/sw/siw/siw_qp_rx.c,
// siw_proc_write() and siw_init_terminate(). UC has no responses, and drops a message unless it
// was for a receive that is invalid: sw/rxe/rxe_resp.c, rxe_responder().
static Result refuse(Fabric &fabric, Qp &peer, Send &send, ibv_wc_status status) {
    if (status == IBV_WC_REM_ACCESS_ERR) {
        peer.context->device->counters[COUNT_ACCESS_REFUSED]++;
        if (peer.type != IBV_QPT_UC)
            report_violation(fabric, peer, send);
    }
    const bool fails_receive = is_send(send.wr.opcode);
    if (peer.type != IBV_QPT_UC || fails_receive)
        fail_qp_later(fabric, peer.number);
    if (peer.type == IBV_QPT_UC)
        return done(send, IBV_WC_SUCCESS);
    if (!is_iwarp(peer))
        return done(send, status);
    return done(send,
                send.wr.opcode == IBV_WR_RDMA_READ ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
}

// iWARP does not wait for a receive: Linux 7.3, drivers/infiniband/sw/siw/siw_qp_rx.c,
// siw_proc_send().
static Result refuse_without_receive(Fabric &fabric, Qp &peer, Send &send) {
    if (!is_iwarp(peer))
        return NO_RECEIVE;
    return refuse(fabric, peer, send, IBV_WC_REM_OP_ERR);
}

// A QP that cannot complete the receive fails and sends no response: Linux 7.3,
// drivers/infiniband/sw/rxe/rxe_resp.c, RESPST_ERR_CQ_OVERFLOW. On iWARP, TCP has already
// acknowledged the message.
static Result deliver(Fabric &fabric, Qp &peer, Send &send, const Receive &receive,
                      const ibv_wc &wc) {
    if (complete_receive(fabric, peer, receive, wc, send.wr.flags & IBV_SEND_SOLICITED) ||
        is_iwarp(peer))
        return done(send, IBV_WC_SUCCESS);
    fail_qp_later(fabric, peer.number);
    return NO_RESPONSE;
}

Copied fill_receive(Qp &qp, const Receive &receive, const MemoryRanges &from,
                    const MemoryRanges &to) {
    try {
        const Copied copied = copy(from, to);
        if (copied == NO_SOURCE) // the message did not end
            return_receive(qp, receive);
        return copied;
    } catch (const ProgramEnded &) {
        return_receive(qp, receive);
        throw;
    }
}

// The target expects its own MTU in all packets but the last one: Linux 7.3,
// drivers/infiniband/sw/rxe/rxe_resp.c, rxe_resp_check_length().
static bool has_other_mtu(const Qp &qp, const Qp &peer, uint64_t length) {
    const ibv_mtu sent = qp.attr.path_mtu, expected = peer.attr.path_mtu;
    return peer.type != IBV_QPT_UC && !is_iwarp(peer) && sent != expected &&
           length > 128ULL << std::min(sent, expected);
}

static Result execute_send(Fabric &fabric, Qp &qp, Qp &peer, Send &send) {
    MemoryRanges from, to;
    if (const ibv_wc_status status = source_of(fabric, qp, send, from))
        return done(send, status);
    Receive receive;
    if (!take_receive(fabric, peer, receive))
        return refuse_without_receive(fabric, peer, send);
    const uint64_t length = length_of(from);
    if (has_other_mtu(qp, peer, length)) {
        complete_receive(fabric, peer, receive, failed(IBV_WC_REM_INV_REQ_ERR), false);
        return refuse(fabric, peer, send, IBV_WC_REM_INV_REQ_ERR);
    }
    bool is_protected = local_ranges(fabric, peer, receive.sges, true, to);
    for (MemoryRange &place : to)
        place.writer = qp.handle;
    const bool is_too_long = !is_protected && length > length_of(to);
    const Copied copied =
        is_protected || is_too_long ? COPIED : fill_receive(peer, receive, from, to);
    if (copied == NO_SOURCE)
        return done(send, qp.context->device->profile->source_error);
    is_protected |= copied == NO_TARGET;
    if (is_protected || is_too_long) {
        const sim_profile &profile = *peer.context->device->profile;
        const ibv_wc_status status =
            is_protected ? profile.receive_error : profile.length_error;
        complete_receive(fabric, peer, receive, failed(status), false);
        if (is_iwarp(peer)) // siw_qp_rx.c, siw_proc_send()
            fabric.raise_async(peer,
                               is_protected ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_FATAL);
        return refuse(fabric, peer, send,
                      status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR
                                                   : IBV_WC_REM_OP_ERR);
    }
    record_write(fabric, qp, to, length);
    // Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c, RESPST_ERR_INVALIDATE_RKEY
    if (send.wr.opcode == IBV_WR_SEND_WITH_INV &&
        !invalidate_window(fabric, send.wr.imm_data)) {
        complete_receive(fabric, peer, receive, failed(IBV_WC_REM_INV_REQ_ERR), false);
        return refuse(fabric, peer, send, IBV_WC_REM_INV_REQ_ERR);
    }
    return deliver(fabric, peer, send, receive, received(send, length, IBV_WC_RECV));
}

static bool lacks_read_resources(const Qp &peer) {
    return !is_iwarp(peer) && peer.attr.max_dest_rd_atomic == 0;
}

static std::vector<std::byte> bytes_of(const MemoryRanges &from, Copied &copied) {
    std::vector<std::byte> bytes(length_of(from));
    copied =
        copy(from,
             {{nullptr, reinterpret_cast<uint64_t>(bytes.data()), bytes.size(), false, false}});
    return bytes;
}

// A scheduler may choose that words of a plain write become visible later.
static Copied write(Fabric &fabric, const Qp &qp, const Qp &peer, const Send &send,
                    const MemoryRanges &from, const MemoryRanges &to) {
    if (!fabric.has_choices() || send.wr.opcode != IBV_WR_RDMA_WRITE || to.empty())
        return copy(from, to);
    Copied copied;
    const std::vector<std::byte> bytes = bytes_of(from, copied);
    return copied == NO_SOURCE ? NO_SOURCE : write_words(fabric, qp, peer, to[0], bytes);
}

void execute_part(Fabric &fabric, Qp &qp) try {
    const auto next =
        std::ranges::find_if(qp.sends, [](const Send &s) { return !s.executed || s.status; });
    const Qp *const peer = fabric.peer_of(qp);
    MemoryRanges from, to;
    if (next == qp.sends.end() || next->executed || !peer || !is_write(next->wr.opcode) ||
        (peer->attr.qp_state != IBV_QPS_RTR && peer->attr.qp_state != IBV_QPS_RTS) ||
        source_of(fabric, qp, *next, from) ||
        remote_range(fabric, qp, *peer, next->wr, length_of(from), to) || to.empty())
        return;
    Copied copied;
    const std::vector<std::byte> bytes = bytes_of(from, copied);
    if (copied == COPIED)
        write_part(fabric, qp, *peer, to[0], bytes);
} catch (const ProgramEnded &) {
    // the memory of one of the programs is gone
}

static Result execute_write(Fabric &fabric, Qp &qp, Qp &peer, Send &send) {
    MemoryRanges from, to;
    const bool is_atomic = send.wr.opcode == SIM_WR_ATOMIC_WRITE;
    if (is_atomic)
        from.push_back(
            {nullptr, reinterpret_cast<uint64_t>(&send.wr.compare_add), 8, false, false});
    else if (const ibv_wc_status status = source_of(fabric, qp, send, from))
        return done(send, status);
    const uint64_t length = length_of(from);
    const bool takes_receive = send.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (takes_receive && !has_receive(peer))
        return refuse_without_receive(fabric, peer, send);
    if (has_other_mtu(qp, peer, length) || (is_atomic && lacks_read_resources(peer)))
        return refuse(fabric, peer, send, IBV_WC_REM_INV_REQ_ERR);
    if (const ibv_wc_status status = remote_range(fabric, qp, peer, send.wr, length, to))
        return refuse(fabric, peer, send, status);
    if (const Copied copied = write(fabric, qp, peer, send, from, to); copied == NO_SOURCE)
        return done(send, qp.context->device->profile->source_error);
    else if (copied == NO_TARGET)
        return refuse(fabric, peer, send, IBV_WC_REM_OP_ERR);
    record_write(fabric, qp, to, length);
    Receive receive;
    if (takes_receive && take_receive(fabric, peer, receive))
        return deliver(fabric, peer, send, receive,
                       received(send, length, IBV_WC_RECV_RDMA_WITH_IMM));
    return done(send, IBV_WC_SUCCESS);
}

void land(Fabric &fabric, Qp &qp, Send &send) try {
    MemoryRanges to;
    read_late_words(send);
    send.is_landing = false;
    qp.landing--;
    if (send.status == IBV_WC_SUCCESS &&
        (local_ranges(fabric, qp, send.sges, true, to) || copy({data_of(send)}, to)))
        send.status = IBV_WC_LOC_PROT_ERR;
    fabric.scheduler().landed(qp, send);
} catch (const ProgramEnded &) {
    // it does not read the data any more
}

static Result execute_read(Fabric &fabric, Qp &qp, Qp &peer, Send &send) {
    MemoryRanges from, to;
    if (const ibv_wc_status status = local_ranges(fabric, qp, send.sges, true, to)) {
        if (is_iwarp(peer))
            fabric.raise_async(qp, IBV_EVENT_QP_ACCESS_ERR); // siw_qp_rx.c, siw_proc_rresp()
        return done(send, status);
    }
    if (lacks_read_resources(peer))
        return refuse(fabric, peer, send, IBV_WC_REM_INV_REQ_ERR);
    if (const ibv_wc_status status =
            remote_range(fabric, qp, peer, send.wr, length_of(to), from))
        return refuse(fabric, peer, send, status);
    if (!from.empty() && fabric.is_poisoned(*peer.context->device, from[0]))
        return refuse(fabric, peer, send, IBV_WC_REM_OP_ERR);
    if (send.is_landing)
        send.inlined.resize(length_of(to));
    if (const Copied copied = copy(from, send.is_landing ? MemoryRanges{data_of(send)} : to);
        copied == NO_SOURCE)
        return refuse(fabric, peer, send, IBV_WC_REM_OP_ERR);
    else if (copied == NO_TARGET)
        return done(send, IBV_WC_LOC_PROT_ERR);
    if (send.is_landing && !from.empty())
        tear_read(fabric, send, from[0]);
    const bool reads = length_of(to) > 0 || !fabric.shows(Weakness::EMPTY_READ);
    make_persistent(fabric, qp, send, from, reads ? std::max<uint64_t>(length_of(to), 1) : 0);
    send.byte_len = static_cast<uint32_t>(length_of(to));
    if (!send.is_landing)
        fabric.scheduler().landed(qp, send);
    return done(send, IBV_WC_SUCCESS);
}

static Result execute_atomic(Fabric &fabric, Qp &qp, Qp &peer, Send &send) {
    MemoryRanges word, to;
    uint64_t before = 0;
    // An invalid SGE fails the request only after the other side has executed it.
    const ibv_wc_status local = local_ranges(fabric, qp, send.sges, true, to);
    if (!local && length_of(to) < sizeof(before))
        return done(send, IBV_WC_LOC_LEN_ERR);
    if (lacks_read_resources(peer))
        return refuse(fabric, peer, send, IBV_WC_REM_INV_REQ_ERR);
    if (const ibv_wc_status status =
            remote_range(fabric, qp, peer, send.wr, sizeof(before), word))
        return refuse(fabric, peer, send, status);
    const MemoryRange own{nullptr, reinterpret_cast<uint64_t>(&before), sizeof(before), false,
                          false};
    if (fabric.is_poisoned(*peer.context->device, word[0]) ||
        !read_range(word[0], 0, &before, sizeof(before)))
        return refuse(fabric, peer, send, IBV_WC_REM_OP_ERR);
    const uint64_t after =
        sim_atomic_result(send.wr.opcode, before, send.wr.compare_add, send.wr.swap);
    fabric.scheduler().replaced(before, after);
    if (!write_range(word[0], 0, &after, sizeof(after)))
        return refuse(fabric, peer, send, IBV_WC_REM_OP_ERR);
    make_persistent(fabric, qp, send, word, sizeof(before));
    record_write(fabric, qp, word, sizeof(before));
    send.byte_len = sizeof(before);
    if (send.is_landing) {
        send.inlined.resize(sizeof(before));
        memcpy(send.inlined.data(), &before, sizeof(before));
        return done(send, local);
    }
    const ibv_wc_status status = !local && copy({own}, to) ? IBV_WC_LOC_PROT_ERR : local;
    fabric.scheduler().landed(qp, send);
    return done(send, status);
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c, process_flush().
static Result execute_flush(Fabric &fabric, Qp &qp, Qp &peer, Send &send) {
    MemoryRanges range;
    if (const ibv_wc_status status =
            remote_range(fabric, qp, peer, send.wr, send.wr.flush_length, range))
        return refuse(fabric, peer, send, status);
    for (const MemoryRange &place : range)
        show_written(fabric, qp, place);
    make_persistent(fabric, qp, send, range, length_of(range));
    return done(send, IBV_WC_SUCCESS);
}

// UC does not wait for a response or a receive.
static Result lose(Fabric &fabric, const Qp &qp, const Qp *peer, Send &send,
                   Result result = NO_RESPONSE) {
    MemoryRanges from;
    if (qp.type != IBV_QPT_UC)
        return result;
    done(send, source_of(fabric, qp, send, from));
    count_dropped(qp, peer, send);
    return DONE;
}

// NULL: the QP is not of XRC, or its domain has no such SRQ.
static Srq *srq_of(const Fabric &fabric, const Qp &peer, uint32_t number) {
    const auto found = peer.xrcd ? fabric.objects().find(number) : fabric.objects().end();
    if (found == fabric.objects().end() || found->second->kind != Object::SRQ)
        return nullptr;
    Srq *const srq = static_cast<Srq *>(found->second.get());
    return srq->xrcd && srq->xrcd->domain == peer.xrcd->domain ? srq : nullptr;
}

// UC has sends and writes: Linux 7.3, drivers/infiniband/sw/rxe/rxe_req.c, next_opcode_uc().
static Result execute_on(Fabric &fabric, Qp &qp, Qp &peer, Send &send) {
    if (qp.type == IBV_QPT_UC && !is_send(send.wr.opcode) && !is_write(send.wr.opcode))
        return done(send, IBV_WC_LOC_QP_OP_ERR);
    if (peer.type == IBV_QPT_XRC_RECV && !peer.srq)
        return refuse(fabric, peer, send, IBV_WC_REM_INV_REQ_ERR);
    const bool is_empty_read = send.length == 0 && fabric.has(Weakness::EMPTY_READ);
    if (!fabric.late_words.empty() &&
        sim_made_visible(send.wr.opcode, is_empty_read ? 0 : 1) == SIM_ALL_WRITES)
        show_written(fabric, qp);
    switch (send.wr.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
        return execute_send(fabric, qp, peer, send);
    case IBV_WR_RDMA_READ:
        return execute_read(fabric, qp, peer, send);
    case SIM_WR_FLUSH:
        return execute_flush(fabric, qp, peer, send);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return execute_atomic(fabric, qp, peer, send);
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case SIM_WR_ATOMIC_WRITE:
        return execute_write(fabric, qp, peer, send);
    default: // Linux 7.3, drivers/infiniband/sw/rxe/rxe_req.c, next_opcode()
        return done(send, IBV_WC_LOC_QP_OP_ERR);
    }
}

// A program that has ended does not respond; its queue pairs are destroyed soon.
Result transmit(Fabric &fabric, Qp &qp, Send &send) try {
    if (send.wr.opcode == IBV_WR_BIND_MW || send.wr.opcode == IBV_WR_LOCAL_INV)
        return execute_window(fabric, qp, send);
    if (qp.type == IBV_QPT_UD)
        return execute_datagram(fabric, qp, send);
    Qp *const peer = fabric.peer_of(qp);
    if (!peer ||
        (peer->attr.qp_state != IBV_QPS_RTR && peer->attr.qp_state != IBV_QPS_RTS &&
         peer->attr.qp_state != IBV_QPS_SQD) ||
        !fabric.reachable(*qp.context->device, *peer->context->device))
        return lose(fabric, qp, nullptr, send);
    const XrcReceiver receiver(*peer, srq_of(fabric, *peer, send.wr.remote_srqn));
    fabric.scheduler().executing(qp, *peer, send);
    const Result result = execute_on(fabric, qp, *peer, send);
    if (result != DONE)
        return lose(fabric, qp, peer, send, result);
    count_executed(qp, *peer, send);
    return DONE;
} catch (const ProgramEnded &) {
    return lose(fabric, qp, nullptr, send);
}

} // namespace sim
