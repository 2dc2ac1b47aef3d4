// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// req.cc -- the order of requests on a queue pair, their completions, and their retries.

#include "engine.hh"
#include "verbs.hh"

#include <algorithm>
#include <utility>

namespace sim {

namespace {

constexpr uint64_t NEVER = UINT64_MAX;

// InfiniBand Architecture Specification, volume 1, table 45: 0 to 31, in units of 10 us.
constexpr uint32_t RNR_TIMES[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                    16,    24,   32,   48,    64,    96,    128,   192,
                                    256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                    4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

// TCP of Linux fails after net.ipv4.tcp_retries2 = 15 retransmissions.
constexpr uint64_t TCP_TIME = 924'600'000'000;

ibv_wc_opcode completion_opcode(uint32_t opcode) {
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
        return (ibv_wc_opcode)WC_FLUSH;
    case SIM_WR_ATOMIC_WRITE:
        return (ibv_wc_opcode)WC_ATOMIC_WRITE;
    default:
        return IBV_WC_SEND;
    }
}

// A fence waits for requests with these opcodes.
bool is_fenced(uint32_t opcode) {
    return opcode == IBV_WR_RDMA_READ || sim_is_atomic(opcode);
}

} // namespace

// ---- the send queue ------------------------------------------------------------------------

void Engine::run(Qp &qp) {
    if (fabric_.options_.is_stepped)
        return;
    fabric_.cancel(qp.timer);
    qp.timer = 0;
    if (qp.attr.qp_state == IBV_QPS_ERR && qp.context->device->profile->flushes_late_posts)
        complete_sends(qp);
    if (qp.attr.qp_state != IBV_QPS_RTS)
        return;
    for (size_t i = 0; i < qp.sends.size(); i++)
        if (!qp.sends[i].executed && !advance_send(qp, qp.sends[i]))
            break;
    if (qp.attr.qp_state == IBV_QPS_RTS)
        complete_sends(qp);
}

// The time when the other side receives the request; NEVER: an earlier one has failed.
static uint64_t arrival_of(const Qp &qp, const Send &send, uint64_t delay) {
    const bool waits =
        send.wr.flags & IBV_SEND_FENCE &&
        (qp.context->device->profile->fences_writes ||
         (send.wr.opcode != IBV_WR_RDMA_WRITE && send.wr.opcode != IBV_WR_RDMA_WRITE_WITH_IMM));
    uint64_t sent_at = send.sent_at;
    for (const Send &before : qp.sends) {
        if (&before == &send)
            break;
        if (before.status != IBV_WC_SUCCESS)
            return NEVER;
        if (waits && is_fenced(before.wr.opcode))
            sent_at = std::max(sent_at, before.done_at);
    }
    return sent_at + delay;
}

// The target executes a request once, although a lost response makes the requester repeat it;
// it executes a repeated read again: InfiniBand Architecture Specification, volume 1, 9.4.4 and
// 9.7.5.1.3. A lost refusal is not repeated, because the QP of the target has failed.
Engine::Result Engine::attempt(Qp &qp, Send &send) {
    const Qp *const peer =
        fabric_.cut_.empty() || qp.type != IBV_QPT_RC ? nullptr : fabric_.peer_of(qp);
    const bool is_answered =
        !peer || fabric_.reachable(*peer->context->device, *qp.context->device);
    if (!is_answered && send.wr.opcode == IBV_WR_RDMA_READ)
        return NO_ANSWER;
    const Result result = send.lacks_response ? DONE : execute(qp, send);
    if (result != DONE || is_answered)
        return result;
    send.lacks_response = send.status == IBV_WC_SUCCESS;
    send.status = IBV_WC_SUCCESS;
    return NO_ANSWER;
}

// Executes a request if it is due. Returns false if no later one may be executed now.
bool Engine::advance_send(Qp &qp, Send &send) {
    const Qp *const peer = fabric_.peer_of(qp);
    const uint64_t delay =
        peer ? fabric_.delay(*qp.context->device, *peer->context->device) : 0;
    const uint64_t arrival = arrival_of(qp, send, delay);
    if (arrival == NEVER)
        return false;
    if (arrival > fabric_.now()) {
        start_timer(qp, arrival);
        return false;
    }
    const Result result = attempt(qp, send);
    if (result != DONE)
        return wait(qp, send, result);
    end_attempts(qp);
    send.executed = true;
    send.done_at = fabric_.now();
    if (qp.type == IBV_QPT_RC || qp.type == IBV_QPT_XRC_SEND)
        send.done_at += delay + fabric_.lateness("a response");
    qp.retries_end_at = qp.rnr_retry_at = 0;
    qp.rnr_retries_left = qp.attr.rnr_retry;
    fabric_.no_receive_.erase(qp.number);
    return send.status == IBV_WC_SUCCESS;
}

Engine::Result Engine::step(Qp &qp, Send &send) {
    const Result result = execute(qp, send);
    send.executed = result == DONE;
    send.done_at = fabric_.now();
    return result;
}

// Receives of an SRQ are kept for other QPs.
void Engine::fail_outstanding(Qp &qp, bool lost_responses) {
    ibv_wc_status status = IBV_WC_RETRY_EXC_ERR;
    for (Send &send : qp.sends)
        if (lost_responses && qp.attr.qp_state != IBV_QPS_ERR) {
            send.executed = true;
            send.status = std::exchange(status, IBV_WC_WR_FLUSH_ERR);
        }
    fail(qp);
    complete_sends(qp);
    flush_receives(qp);
}

uint64_t Engine::try_time(const Qp &qp) const {
    const sim_profile &profile = *qp.context->device->profile;
    if (profile.timeout == SIM_TIMEOUT_OF_TCP)
        return TCP_TIME;
    if (profile.timeout == SIM_TIMEOUT_IGNORED)
        return 4'096ULL << 20;
    return qp.attr.timeout == 0 ? NEVER : 4'096ULL << qp.attr.timeout;
}

// Makes the first unexecuted request wait for a response or a receive, or fail.
bool Engine::wait(Qp &qp, Send &send, Result result) {
    const bool is_tcp = qp.context->device->profile->timeout == SIM_TIMEOUT_OF_TCP;
    const bool lacks_receive = result == NO_RECEIVE && !is_tcp;
    (lacks_receive ? qp.retries_end_at : qp.rnr_retry_at) = 0; // of the other cause
    const uint64_t time =
        lacks_receive ? wait_for_receive(qp, send) : wait_for_response(qp, send);
    if (send.status == IBV_WC_SUCCESS) {
        if (time != NEVER)
            start_timer(qp, time);
        return false;
    }
    send.executed = true;
    send.done_at = fabric_.now();
    return false;
}

// Returns the time of the next attempt. Linux 7.3, drivers/infiniband/sw/rxe/rxe_comp.c,
// COMPST_RNR_RETRY: without a retry left, a missing receive fails the request at once.
uint64_t Engine::wait_for_receive(Qp &qp, Send &send) {
    fabric_.no_receive_.insert(qp.number);
    const Qp &peer = *fabric_.peer_of(qp);
    const uint64_t period = 10'000ULL * RNR_TIMES[peer.attr.min_rnr_timer & 31];
    const bool is_repeated = qp.rnr_retry_at == 0 || fabric_.now() >= qp.rnr_retry_at;
    begin_attempts(qp, send, &peer, period, qp.attr.rnr_retry == 7 ? NEVER : qp.attr.rnr_retry);
    if (qp.attr.rnr_retry == 7)
        return NEVER;
    if (is_repeated && qp.rnr_retries_left == 0) {
        send.status = IBV_WC_RNR_RETRY_EXC_ERR;
    } else if (is_repeated) {
        qp.rnr_retries_left--;
        qp.rnr_retry_at = fabric_.now() + period;
    }
    return qp.rnr_retry_at;
}

// Returns the time when the retries end.
uint64_t Engine::wait_for_response(Qp &qp, Send &send) {
    const sim_profile &profile = *qp.context->device->profile;
    const bool is_tcp = profile.timeout == SIM_TIMEOUT_OF_TCP;
    const bool is_endless = qp.attr.retry_cnt == 7 && profile.retry_count_7_is_endless;
    const uint64_t one = try_time(qp);
    if (!is_tcp)
        begin_attempts(qp, send, nullptr, one, is_endless ? NEVER : qp.attr.retry_cnt);
    if (qp.retries_end_at == 0 && one != NEVER && !is_endless)
        qp.retries_end_at = fabric_.now() + one * (is_tcp ? 1 : qp.attr.retry_cnt + 1U);
    else if (qp.retries_end_at != 0 && fabric_.now() >= qp.retries_end_at)
        send.status = is_tcp ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR;
    return qp.retries_end_at == 0 ? NEVER : qp.retries_end_at;
}

// Keeps the earlier of two times: a request can arrive before the response to another one.
void Engine::start_timer(Qp &qp, uint64_t time) {
    if (qp.timer != 0 && qp.timer_time <= time)
        return;
    fabric_.cancel(qp.timer);
    qp.timer_time = time;
    Fabric &fabric = fabric_;
    const uint32_t number = qp.number;
    qp.timer = fabric_.at(time, [&fabric, number] {
        if (const auto found = fabric.qps_.find(number); found != fabric.qps_.end())
            Engine(fabric).run(*found->second);
    });
}

// Completes requests in order; the first failure moves the QP to the error state.
void Engine::complete_sends(Qp &qp) {
    while (!qp.sends.empty()) {
        Send &first = qp.sends.front();
        if (qp.attr.qp_state != IBV_QPS_ERR &&
            (!first.executed || first.done_at > fabric_.now())) {
            if (first.executed)
                start_timer(qp, first.done_at);
            return;
        }
        const ibv_wc_status status = first.executed ? first.status : IBV_WC_WR_FLUSH_ERR;
        finish(qp, first, status);
        count_send(qp, first, status);
        qp.sends.pop_front();
        if (status == IBV_WC_SUCCESS || qp.attr.qp_state == IBV_QPS_ERR)
            continue;
        if (status == IBV_WC_LOC_QP_OP_ERR && is_iwarp(qp))
            disconnect(qp);
        else
            fail(qp); // completes the remaining requests
        return;
    }
}

void Engine::finish(Qp &qp, Send &send, ibv_wc_status status) {
    if (!qp.send_cq) // after Fabric::abandon()
        return;
    const sim_profile &profile = *qp.context->device->profile;
    const bool is_good = status == IBV_WC_SUCCESS;
    ibv_wc wc{};
    wc.wr_id = send.wr.wr_id;
    wc.opcode = completion_opcode(send.wr.opcode);
    wc.byte_len =
        (is_good ? profile.sent_length : profile.failed_length) == SIM_LENGTH_REQUESTED
            ? (uint32_t)send.length
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
        add(*qp.send_cq, older.wc, false, older.unpolled);
        status = IBV_WC_WR_FLUSH_ERR;
    }
    wc.status = status;
    add(*qp.send_cq, wc, send.wr.flags & IBV_SEND_SOLICITED && profile.notifies_sender,
        unpolled);
}

// ---- completions ---------------------------------------------------------------------------

// Returns false if the queue is full.
bool Engine::add(Cq &cq, const ibv_wc &wc, bool is_solicited, const Unpolled &unpolled) {
    Ring &ring = *cq.ring;
    const sim_profile &profile = *cq.context->device->profile;
    if (ring.overrun && profile.overrun_is_fatal)
        return false;
    const uint32_t taken = __atomic_load_n(&ring.taken, __ATOMIC_ACQUIRE);
    if (ring.added - taken >= ring.entries && !cq.ignores_overrun) {
        overrun(cq);
        return false;
    }
    if (fabric_.options_.watcher)
        fabric_.options_.watcher->completed(cq, wc);
    ring.first()[ring.added % ring.entries] = {wc, fabric_.now()};
    if (profile.frees_entries_in_poll) {
        free_polled(cq);
        cq.unpolled.push_back(unpolled);
    }
    __atomic_store_n(&ring.added, ring.added + 1, __ATOMIC_RELEASE);
    if (sim_notifies(&profile, &cq.armed, wc.status, is_solicited) && cq.channel)
        fabric_.push(*cq.channel, {&cq, cq.cookie, 0, 0, {}});
    return true;
}

// rdma-core 56, providers/mlx5/cq.c, mlx5_parse_cqe(): a send frees all earlier ones.
void Engine::free_entries(const Unpolled &polled) {
    const auto found = fabric_.qps_.find(polled.qp);
    Qp *const qp = found == fabric_.qps_.end() ? nullptr : found->second;
    if (polled.sends > 0 && qp)
        qp->sent.freed = polled.sends;
    else if (Srq *const srq = polled.srq ? fabric_.find<Srq>(polled.srq) : nullptr)
        srq->received.freed++;
    else if (polled.sends == 0 && polled.srq == 0 && qp)
        qp->received.freed++;
}

void Engine::free_polled(Cq &cq) {
    const uint32_t taken = __atomic_load_n(&cq.ring->taken, __ATOMIC_ACQUIRE);
    for (; cq.unpolled.size() > cq.ring->added - taken; cq.unpolled.pop_front())
        free_entries(cq.unpolled.front());
}

void Engine::overrun(Cq &cq) {
    cq.ring->overrun = 1;
    raise_async(cq, IBV_EVENT_CQ_ERR);
    if (!cq.context->device->profile->overrun_is_fatal)
        return;
    std::vector<uint32_t> failed;
    for (const auto &[number, qp] : fabric_.qps_)
        if (qp->send_cq == &cq || qp->recv_cq == &cq)
            failed.push_back(number);
    for (const uint32_t number : failed)
        fail_later(number);
}

// Fails the QP in a timer, because it may be completing a request now.
void Engine::fail_later(uint32_t number) {
    Fabric &fabric = fabric_;
    fabric_.at(fabric_.now(), [&fabric, number] {
        if (const auto found = fabric.qps_.find(number); found != fabric.qps_.end())
            fabric.fail_qp(*found->second);
    });
}

void Engine::raise_async(Object &about, ibv_event_type type) {
    Context *const context = Verbs::context_of(about);
    const bool is_context = &about == context;
    const bool is_raised = context->device->profile->events >> type & 1;
    if (!is_raised && type != IBV_EVENT_DEVICE_FATAL) // which Linux raises for a removed device
        return;
    if (context->async) // NULL after Fabric::abandon()
        fabric_.push(*context->async,
                     {is_context ? nullptr : &about, about.cookie, (uint32_t)type, 1, {}});
}

// ---- receives ------------------------------------------------------------------------------

bool Engine::has_receive(const Qp &qp) const {
    return !(qp.srq ? qp.srq->receives : qp.receives).empty();
}

bool Engine::take_receive(Qp &qp, Receive &receive) {
    if (!has_receive(qp))
        return false;
    std::deque<Receive> &receives = qp.srq ? qp.srq->receives : qp.receives;
    receive = std::move(receives.front());
    receives.pop_front();
    if (qp.srq && qp.srq->attr.srq_limit > receives.size()) {
        qp.srq->attr.srq_limit = 0;
        raise_async(*qp.srq, IBV_EVENT_SRQ_LIMIT_REACHED);
    }
    return true;
}

void Engine::return_receive(Qp &qp, Receive receive) {
    (qp.srq ? qp.srq->receives : qp.receives).push_front(std::move(receive));
}

bool Engine::complete_receive(Qp &qp, const Receive &receive, ibv_wc wc, bool is_solicited) {
    wc.wr_id = receive.wr_id;
    wc.qp_num = qp.number;
    if (wc.status == IBV_WC_SUCCESS && qp.context->device->profile->receives_have_grh)
        wc.wc_flags |= IBV_WC_GRH;
    count_receive(qp, wc.status);
    return add(*qp.recv_cq, wc, is_solicited && !qp.context->device->profile->notifies_sender,
               {qp.number, qp.srq ? qp.srq->handle : 0, 0});
}

void Engine::interrupt_receive(Qp &qp) {
    Receive receive;
    ibv_wc wc{};
    wc.status = IBV_WC_WR_FLUSH_ERR;
    wc.opcode = IBV_WC_RECV;
    if (take_receive(qp, receive))
        complete_receive(qp, receive, wc, false);
}

void Engine::receive_posted() {
    if (fabric_.no_receive_.empty())
        return;
    const std::set<uint32_t> waiting = fabric_.no_receive_;
    for (const uint32_t number : waiting)
        if (const auto found = fabric_.qps_.find(number); found != fabric_.qps_.end())
            run(*found->second);
}

void Engine::flush_receives(Qp &qp) {
    ibv_wc wc{};
    wc.status = IBV_WC_WR_FLUSH_ERR;
    wc.opcode = IBV_WC_RECV;
    for (; qp.recv_cq && !qp.receives.empty(); qp.receives.pop_front())
        complete_receive(qp, qp.receives.front(), wc, false);
}

// ---- states --------------------------------------------------------------------------------

void Engine::fail(Qp &qp) {
    if (qp.attr.qp_state == IBV_QPS_ERR)
        return;
    end_attempts(qp);
    qp.attr.qp_state = IBV_QPS_ERR;
    if (!fabric_.options_.is_stepped) {
        fabric_.cancel(qp.timer);
        qp.timer = 0;
        complete_sends(qp);
        flush_receives(qp);
    }
    fabric_.no_receive_.erase(qp.number);
    if (qp.srq && !is_iwarp(qp))
        raise_async(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
    if (!is_iwarp(qp))
        return;
    fabric_.cm_.qp_failed(qp);
    if (Qp *const peer = fabric_.peer_of(qp))
        fail(*peer);
}

// Linux 7.3, drivers/infiniband/sw/siw/siw_qp_tx.c, siw_qp_sq_process(): a local error ends the
// connection; later requests stay in the queue until the QP fails.
void Engine::disconnect(Qp &qp) {
    Qp *const peer = fabric_.peer_of(qp);
    raise_async(qp, IBV_EVENT_QP_FATAL);
    qp.iwarp_peer = 0;
    fabric_.cm_.qp_failed(qp);
    if (peer)
        fail(*peer);
}

void Engine::reset(Qp &qp) {
    if (qp.context->device->profile->reset_removes_completions)
        remove_completions(qp);
    qp.was_reset = true;
    fabric_.cancel(qp.timer);
    end_attempts(qp);
    const ibv_qp_cap cap = qp.attr.cap;
    qp.attr = {};
    qp.attr.cap = cap;
    qp.sends.clear();
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
    fabric_.no_receive_.erase(qp.number);
}

void Engine::remove_completions(const Qp &qp) {
    for (Cq *const cq : {qp.send_cq, qp.recv_cq})
        if (cq)
            remove_completions(*cq, qp.number);
}

// Removes the completions of a QP from a ring that the process does not read now, which frees
// its receives of an SRQ.
void Engine::remove_completions(Cq &cq, uint32_t number) {
    Ring &ring = *cq.ring;
    uint32_t kept = ring.taken;
    free_polled(cq);
    std::erase_if(cq.unpolled, [this, number](const Unpolled &each) {
        if (each.qp == number && each.srq != 0)
            free_entries(each);
        return each.qp == number;
    });
    for (uint32_t i = ring.taken; i != ring.added; i++) {
        const Completion completion = ring.first()[i % ring.entries];
        if (completion.wc.qp_num != number)
            ring.first()[kept++ % ring.entries] = completion;
    }
    __atomic_store_n(&ring.added, kept, __ATOMIC_RELEASE);
}

void Engine::release(Qp &qp) {
    fabric_.cm_.qp_destroyed(qp);
    if (is_iwarp(qp))
        if (Qp *const peer = fabric_.peer_of(qp)) {
            qp.iwarp_peer = 0;
            fail(*peer);
        }
    fabric_.cancel(qp.timer);
    end_attempts(qp);
    fabric_.no_receive_.erase(qp.number);
    fabric_.qps_.erase(qp.number);
    if (qp.context->device->profile->destroy_removes_completions)
        remove_completions(qp);
    release_objects(qp);
}

void Engine::release_objects(Qp &qp) {
    while (!qp.groups.empty())
        (void)fabric_.detach(qp, ibv_gid(qp.groups.back()));
    for (Object *const used : {(Object *)qp.pd, (Object *)qp.send_cq, (Object *)qp.recv_cq,
                               (Object *)qp.srq, (Object *)qp.xrcd})
        if (used)
            used->users--;
    qp.pd = nullptr;
    qp.send_cq = qp.recv_cq = nullptr;
    qp.srq = nullptr;
    qp.xrcd = nullptr;
}

void Fabric::abandon(Qp &qp) {
    Engine(*this).keep_data(qp);
    Engine(*this).release_objects(qp);
    remove_events(qp);
    qp.receives.clear();
    Device *const device = qp.context->device; // of the own context after an earlier call
    qp.own_context = std::make_unique<Context>();
    qp.own_context->device = device;
    qp.context = qp.own_context.get();
    qp.session = nullptr;
}

} // namespace sim
