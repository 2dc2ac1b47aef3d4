// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// req.cc -- the requester: the order of the requests of a queue pair, and their retries.

#include "req.hh"
#include "comp.hh"
#include "counters.hh"
#include "resp.hh"
#include "word_order.hh"

#include <algorithm>

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

// Between the moments of the words of a read.
constexpr uint64_t TORN_READ_TIME = 100'000'000;

} // namespace

static bool lacks_depth(const Qp &qp, const Send &send) {
    return qp.attr.max_rd_atomic == 0 && qp.context->device->profile->waits_without_depth &&
           (returns_data(send.wr.opcode) || send.wr.opcode == SIM_WR_ATOMIC_WRITE);
}

// The time when the other side receives the request; NEVER: an earlier one has failed or is
// never sent, or the request has a fence behind one that was not executed.
static uint64_t arrival_of(const Qp &qp, const Send &send, uint64_t delay) {
    const bool waits =
        send.wr.flags & IBV_SEND_FENCE &&
        (qp.context->device->profile->fences_writes ||
         (send.wr.opcode != IBV_WR_RDMA_WRITE && send.wr.opcode != IBV_WR_RDMA_WRITE_WITH_IMM));
    uint64_t sent_at = send.sent_at;
    for (const Send &before : qp.sends) {
        if (lacks_depth(qp, before))
            return NEVER;
        if (&before == &send)
            break;
        if (before.status != IBV_WC_SUCCESS)
            return NEVER;
        if (waits && returns_data(before.wr.opcode)) {
            if (!before.executed)
                return NEVER;
            sent_at = std::max(sent_at, before.done_at);
        }
    }
    return sent_at + delay;
}

// Keeps the earlier of two times: a request can arrive before the response to another one.
void start_send_timer(Fabric &fabric, Qp &qp, uint64_t time) {
    if (qp.timer != 0 && qp.timer_time <= time)
        return;
    fabric.cancel(qp.timer);
    qp.timer_time = time;
    const uint32_t number = qp.number;
    qp.timer = fabric.at(time, [&fabric, number] {
        if (const auto found = fabric.qps.find(number); found != fabric.qps.end())
            run_sends(fabric, *found->second);
    });
}

static uint64_t try_time(const Qp &qp) {
    const sim_profile &profile = *qp.context->device->profile;
    if (profile.timeout == SIM_TIMEOUT_OF_TCP)
        return TCP_TIME;
    if (profile.timeout == SIM_TIMEOUT_IGNORED)
        return 4'096ULL << 20;
    return qp.attr.timeout == 0 ? NEVER : 4'096ULL << qp.attr.timeout;
}

// Returns the time of the next attempt. Linux 7.3, drivers/infiniband/sw/rxe/rxe_comp.c,
// COMPST_RNR_RETRY: without a retry left, a missing receive fails the request at once.
static uint64_t wait_for_receive(Fabric &fabric, Qp &qp, Send &send) {
    fabric.no_receive.insert(qp.number);
    const Qp &peer = *fabric.peer_of(qp);
    const uint64_t period = 10'000ULL * RNR_TIMES[peer.attr.min_rnr_timer & 31];
    const bool is_repeated = qp.rnr_retry_at == 0 || fabric.now() >= qp.rnr_retry_at;
    begin_attempts(fabric, qp, send, &peer, period,
                   qp.attr.rnr_retry == 7 ? NEVER : qp.attr.rnr_retry);
    if (qp.attr.rnr_retry == 7)
        return NEVER;
    if (is_repeated && qp.rnr_retries_left == 0) {
        send.status = IBV_WC_RNR_RETRY_EXC_ERR;
    } else if (is_repeated) {
        qp.rnr_retries_left--;
        qp.rnr_retry_at = fabric.now() + period;
    }
    return qp.rnr_retry_at;
}

// Returns the time when the retries end.
static uint64_t wait_for_response(Fabric &fabric, Qp &qp, Send &send) {
    const sim_profile &profile = *qp.context->device->profile;
    const bool is_tcp = profile.timeout == SIM_TIMEOUT_OF_TCP;
    const bool is_endless = qp.attr.retry_cnt == 7 && profile.retry_count_7_is_endless;
    const uint64_t one = try_time(qp);
    if (!is_tcp)
        begin_attempts(fabric, qp, send, nullptr, one, is_endless ? NEVER : qp.attr.retry_cnt);
    if (qp.retries_end_at == 0 && one != NEVER && !is_endless)
        qp.retries_end_at = fabric.now() + one * (is_tcp ? 1 : qp.attr.retry_cnt + 1U);
    else if (qp.retries_end_at != 0 && fabric.now() >= qp.retries_end_at)
        send.status = is_tcp ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR;
    return qp.retries_end_at == 0 ? NEVER : qp.retries_end_at;
}

// Makes the first unexecuted request wait for a response or a receive, or fail.
static bool wait_for_retry(Fabric &fabric, Qp &qp, Send &send, Result result) {
    const bool is_tcp = qp.context->device->profile->timeout == SIM_TIMEOUT_OF_TCP;
    const bool lacks_receive = result == NO_RECEIVE && !is_tcp;
    (lacks_receive ? qp.retries_end_at : qp.rnr_retry_at) = 0; // of the other cause
    const uint64_t time = lacks_receive ? wait_for_receive(fabric, qp, send)
                                        : wait_for_response(fabric, qp, send);
    if (send.status == IBV_WC_SUCCESS) {
        if (time != NEVER)
            start_send_timer(fabric, qp, time);
        return false;
    }
    send.executed = true;
    send.done_at = fabric.now();
    return false;
}

static uint64_t delay_of(const Fabric &fabric, const Qp &qp, const Qp *peer) {
    return peer ? fabric.delay(*qp.context->device, *peer->context->device) : 0;
}

static void land_arrived(Fabric &fabric, Qp &qp) {
    for (Send &send : qp.sends)
        if (send.is_landing && send.executed && send.done_at <= fabric.now())
            land(fabric, qp, send);
}

// The target executes a request once, although a lost response makes the requester repeat it;
// it executes a repeated read again: InfiniBand Architecture Specification, volume 1, 9.4.4 and
// 9.7.5.1.3. A lost refusal is not repeated, because the QP of the target has failed.
static Result attempt_send(Fabric &fabric, Qp &qp, Send &send) {
    const Qp *const peer =
        !fabric.has_cuts() || qp.type != IBV_QPT_RC ? nullptr : fabric.peer_of(qp);
    const bool is_answered =
        !peer || fabric.reachable(*peer->context->device, *qp.context->device);
    if (!is_answered && send.wr.opcode == IBV_WR_RDMA_READ)
        return NO_RESPONSE;
    const Result result = send.lacks_response ? DONE : transmit(fabric, qp, send);
    if (result != DONE || is_answered)
        return result;
    send.lacks_response = send.status == IBV_WC_SUCCESS;
    send.status = IBV_WC_SUCCESS;
    return NO_RESPONSE;
}

// InfiniBand Architecture Specification, volume 1, table 79: only a fence orders these behind
// an earlier read, and those that are no atomics also behind an atomic.
static bool can_pass_read(const Send &send, bool is_atomic) {
    const uint32_t opcode = send.wr.opcode;
    return !(send.wr.flags & IBV_SEND_FENCE) &&
           (opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
            opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
            (!is_atomic &&
             (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)));
}

// Returns the next request that the target may execute before the reads and atomics in front of
// it, or NULL if there is none.
static Send *next_passing(Qp &qp) {
    bool is_behind = false, is_behind_atomic = false;
    for (Send &send : qp.sends) {
        if (send.executed)
            continue;
        if (is_behind && can_pass_read(send, is_behind_atomic))
            return &send;
        if (!returns_data(send.wr.opcode))
            return nullptr;
        is_behind = true;
        is_behind_atomic |= send.wr.opcode != IBV_WR_RDMA_READ;
    }
    return nullptr;
}

// Before the target executes another request: it has read all words of the reads before. With
// fences, their data has arrived as well.
static void end_reads(Fabric &fabric, Qp &qp) {
    for (Send &send : qp.sends) {
        if (qp.landing == 0)
            return;
        if (!send.executed || !send.is_landing)
            continue;
        read_late_words(send);
        if (!fabric.has(Weakness::FENCE))
            land(fabric, qp, send);
    }
}

// Returns the result of an attempt. Until the response arrives, requests without a fence do not
// see the data of a read.
static Result attempt(Fabric &fabric, Qp &qp, Send &send, uint64_t delay) {
    end_reads(fabric, qp);
    if (qp.landing > 0 && can_pass_read(send, false))
        (void)fabric.shows(Weakness::FENCE);
    send.is_landing = returns_data(send.wr.opcode) &&
                      (fabric.has(Weakness::FENCE) || fabric.has(Weakness::TORN_READ)) &&
                      (fabric.has_choices() || delay > 0);
    const Result result = attempt_send(fabric, qp, send);
    if (result != DONE) {
        send.is_landing = false;
        return result;
    }
    send.executed = true;
    send.done_at = fabric.now();
    if (qp.type == IBV_QPT_RC || qp.type == IBV_QPT_XRC_SEND)
        send.done_at += delay + fabric.scheduler().delay(Delayed::RESPONSE);
    if (send.torn)
        send.done_at += TORN_READ_TIME;
    qp.landing += send.is_landing;
    if (send.is_landing && !send.torn && !fabric.has(Weakness::FENCE))
        land(fabric, qp, send);
    if (qp.landing > 0)
        land_arrived(fabric, qp);
    return DONE;
}

// Executes requests that the schedule chooses to execute before the reads in front of them.
static void pass_reads(Fabric &fabric, Qp &qp) {
    const uint64_t delay = delay_of(fabric, qp, fabric.peer_of(qp));
    if (qp.retries_end_at != 0 || qp.rnr_retry_at != 0)
        return;
    while (Send *const send = next_passing(qp))
        if (arrival_of(qp, *send, delay) > fabric.now() ||
            fabric.choose(Weakness::FENCE, 1) == 0 || attempt(fabric, qp, *send, delay) != DONE)
            return;
}

// The target also executes the requests behind one whose response was lost: a requester sends
// them before its retries. The responses are lost as well.
static void run_unanswered(Fabric &fabric, Qp &qp, size_t first) {
    const Qp *const peer =
        !fabric.has_cuts() || qp.type != IBV_QPT_RC ? nullptr : fabric.peer_of(qp);
    if (!peer || !fabric.reachable(*qp.context->device, *peer->context->device) ||
        fabric.reachable(*peer->context->device, *qp.context->device))
        return;
    const uint64_t delay = delay_of(fabric, qp, peer);
    if (arrival_of(qp, qp.sends[first], delay) > fabric.now())
        return; // no later request may pass it
    for (size_t i = first + 1; i < qp.sends.size(); i++) {
        Send &send = qp.sends[i];
        const uint64_t arrival = arrival_of(qp, send, delay);
        if (arrival != NEVER && arrival > fabric.now())
            start_send_timer(fabric, qp, arrival);
        if (arrival > fabric.now() || attempt(fabric, qp, send, delay) == NO_RECEIVE)
            return;
    }
}

// Executes a request if it is due. Returns false if no later one may be executed now.
static bool advance_send(Fabric &fabric, Qp &qp, Send &send) {
    const uint64_t delay = delay_of(fabric, qp, fabric.peer_of(qp));
    const uint64_t arrival = arrival_of(qp, send, delay);
    if (arrival == NEVER)
        return false;
    if (arrival > fabric.now()) {
        start_send_timer(fabric, qp, arrival);
        return false;
    }
    const Result result = attempt(fabric, qp, send, delay);
    if (result != DONE)
        return wait_for_retry(fabric, qp, send, result);
    end_attempts(fabric, qp);
    qp.retries_end_at = qp.rnr_retry_at = 0;
    qp.rnr_retries_left = qp.attr.rnr_retry;
    fabric.no_receive.erase(qp.number);
    return send.status == IBV_WC_SUCCESS;
}

void run_sends(Fabric &fabric, Qp &qp) {
    fabric.cancel(qp.timer);
    qp.timer = 0;
    if (qp.attr.qp_state == IBV_QPS_ERR && qp.context->device->profile->flushes_late_posts)
        complete_sends(fabric, qp);
    if (qp.attr.qp_state != IBV_QPS_RTS)
        return;
    if (qp.landing > 0)
        land_arrived(fabric, qp);
    for (size_t i = 0; i < qp.sends.size(); i++) {
        if (qp.sends[i].executed)
            continue;
        if (returns_data(qp.sends[i].wr.opcode) && fabric.has_choices())
            pass_reads(fabric, qp);
        if (!advance_send(fabric, qp, qp.sends[i])) {
            run_unanswered(fabric, qp, i);
            break;
        }
    }
    if (qp.attr.qp_state == IBV_QPS_RTS)
        complete_sends(fabric, qp);
}

void retry_rejected_sends(Fabric &fabric) {
    if (fabric.no_receive.empty())
        return;
    const std::set<uint32_t> waiting = fabric.no_receive;
    for (const uint32_t number : waiting)
        if (const auto found = fabric.qps.find(number); found != fabric.qps.end())
            run_sends(fabric, *found->second);
}

} // namespace sim
