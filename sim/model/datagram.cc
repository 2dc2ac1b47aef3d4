// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// datagram.cc -- the effects of a datagram on its receivers.

#include "comp.hh"
#include "counters.hh"
#include "resp_parts.hh"

#include <algorithm>

namespace sim {

static constexpr uint32_t GRH_BYTES = 40;
static constexpr uint64_t MAX_MTU = 4096;
static constexpr char NO_QP[] = "no queue pair has its number";
static constexpr uint64_t LATE_DATAGRAM = 1'000'000; // nanoseconds by which later ones pass it

// Returns why a datagram does not arrive at the queue pair. NULL: it arrives.
static const char *obstacle(const Fabric &fabric, const Qp &qp, const Send &send,
                            const Qp &peer) {
    const uint32_t qkey = send.wr.remote_qkey & 0x80000000 ? qp.attr.qkey : send.wr.remote_qkey;
    if (!fabric.reachable(*qp.context->device, *peer.context->device))
        return "no link is up";
    if (peer.type != IBV_QPT_UD)
        return "the queue pair has another type";
    if (peer.attr.qp_state < IBV_QPS_RTR || peer.attr.qp_state == IBV_QPS_ERR)
        return "the state of the queue pair permits no receives";
    return peer.attr.qkey != qkey ? "the queue pair has another Q_Key" : nullptr;
}

static Copied deliver_datagram(Fabric &fabric, const Qp &qp, const Send &send,
                               const ibv_ah_attr &address, MemoryRanges from, Qp &peer) try {
    const Device &device = *qp.context->device;
    const auto lose = [&](const char *why) {
        fabric.scheduler().lost(qp, send, peer.context->device, why);
        return COPIED;
    };
    Receive receive;
    if (const char *const why = obstacle(fabric, qp, send, peer))
        return lose(why);
    fabric.scheduler().executing(qp, peer, send);
    const bool has_receive = take_receive(fabric, peer, receive);
    count_delivery(peer, length_of(from), has_receive);
    if (!has_receive)
        return lose("the queue pair has no receive");
    ibv_grh grh{};
    grh.hop_limit = address.grh.hop_limit;
    grh.sgid = device.gids[std::min<size_t>(address.grh.sgid_index, device.gids.size() - 1)];
    grh.dgid = address.grh.dgid;
    from.insert(from.begin(),
                {nullptr, reinterpret_cast<uint64_t>(&grh), GRH_BYTES, false, false});
    const uint64_t length = length_of(from);
    MemoryRanges to;
    ibv_wc_status status = local_ranges(fabric, peer, receive.sges, true, to);
    for (MemoryRange &place : to)
        place.writer = qp.handle;
    // Linux since the commit "RDMA/rxe: Fix responder length checking for UD request packets"
    // of 2024, drivers/infiniband/sw/rxe/rxe_resp.c, rxe_resp_check_length(): without an SRQ
    // the datagram is lost, and the receive stays posted.
    const bool is_rxe = sim_is_software(peer.context->device->profile);
    if (status == IBV_WC_SUCCESS && length > length_of(to)) {
        if (is_rxe && !peer.srq) {
            return_receive(peer, receive);
            return lose("it is longer than the receive");
        }
        status = is_rxe ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_LOC_LEN_ERR;
    }
    const Copied copied =
        status == IBV_WC_SUCCESS ? fill_receive(peer, receive, from, to) : COPIED;
    if (copied == NO_SOURCE)
        return NO_SOURCE;
    if (copied == NO_TARGET)
        status = peer.context->device->profile->receive_error;
    ibv_wc wc = status ? failed(status) : received(send, length, IBV_WC_RECV);
    wc.src_qp = qp.number;
    wc.slid = device.lid;
    wc.wc_flags |= address.is_global ? IBV_WC_GRH : 0;
    complete_receive(fabric, peer, receive, wc, send.wr.flags & IBV_SEND_SOLICITED);
    return COPIED;
} catch (const ProgramEnded &) {
    fabric.scheduler().lost(qp, send, peer.context->device, "a program has ended");
    return COPIED;
}

// Delivers a copy of the datagram later, if its queue pairs still exist.
static Copied delay_datagram(Fabric &fabric, const Qp &qp, const Send &send,
                             const ibv_ah_attr &address, const MemoryRanges &from,
                             const std::vector<Qp *> &to) {
    struct Late {
        Send send;
        ibv_ah_attr address;
        std::vector<std::byte> data;
        std::vector<uint32_t> to;
    };
    const auto late = std::make_shared<Late>(Late{send, address, {}, {}});
    late->data.resize(length_of(from));
    const MemoryRange data{nullptr, reinterpret_cast<uint64_t>(late->data.data()),
                           late->data.size(), false, false};
    if (copy(from, {data}) == NO_SOURCE)
        return NO_SOURCE;
    for (const Qp *const peer : to)
        late->to.push_back(peer->number);
    const uint32_t number = qp.number;
    fabric.at(fabric.now() + LATE_DATAGRAM, [&fabric, late, data, number] {
        const auto sender = fabric.qps.find(number);
        if (sender == fabric.qps.end())
            return;
        for (const uint32_t each : late->to)
            if (const auto peer = fabric.qps.find(each); peer != fabric.qps.end())
                deliver_datagram(fabric, *sender->second, late->send, late->address, {data},
                                 *peer->second);
            else
                fabric.scheduler().lost(*sender->second, late->send, nullptr, NO_QP);
    });
    return COPIED;
}

static uint64_t mtu_of(const Device &device) {
    return 128ULL << Fabric::port_of(device).active_mtu;
}

// A datagram without a receiver is lost, and the sender gets no error. Linux 7.3,
// drivers/infiniband/sw/rxe/rxe_recv.c, rxe_rcv_mcast_pkt(): each QP of a group gets a copy.
Result execute_datagram(Fabric &fabric, Qp &qp, Send &send) {
    MemoryRanges from;
    if (const ibv_wc_status status = source_of(fabric, qp, send, from))
        return done(send, status);
    const Ah *const ah = fabric.find<Ah>(qp.session, send.wr.ah);
    if (!ah || ah->pd != qp.pd)
        return done(send, IBV_WC_LOC_QP_OP_ERR);
    if (length_of(from) > mtu_of(*qp.context->device)) {
        // InfiniBand Architecture Specification, volume 1, C10-93.1.1; Linux 7.3,
        // drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester(): not an error
        if (fabric.shows(Weakness::DATAGRAM_MTU)) {
            fabric.scheduler().lost(qp, send, nullptr, "it is longer than the MTU");
            return done(send, IBV_WC_SUCCESS);
        }
        if (length_of(from) > MAX_MTU)
            return done(send, IBV_WC_LOC_LEN_ERR);
    }
    count_datagram(qp, length_of(from));
    const Fate fate = fabric.fate_of_datagram(qp.context->device->host->number);
    const bool is_multicast = send.wr.remote_qpn == SIM_MULTICAST_QP;
    Device *const device = is_multicast ? nullptr : fabric.device_at(ah->attr);
    std::vector<Qp *> to;
    if (is_multicast)
        to = fabric.members_of(ah->attr.grh.dgid);
    else if (device)
        if (Qp *const peer = fabric.find_qp(*device, send.wr.remote_qpn))
            to = {peer};
    if (fate == Fate::LOST || to.empty())
        fabric.scheduler().lost(qp, send, device,
                                fate == Fate::LOST ? "the network drops it"
                                : is_multicast     ? "the group has no member"
                                : device           ? NO_QP
                                                   : "no device has its address");
    if (fate == Fate::LOST)
        to.clear();
    else if (fate == Fate::REPEATED)
        for (size_t i = 0, count = to.size(); i < count; i++)
            to.push_back(to[i]);
    const ibv_wc_status source_error = qp.context->device->profile->source_error;
    if (fate == Fate::LATE)
        return done(send, delay_datagram(fabric, qp, send, ah->attr, from, to) == NO_SOURCE
                              ? source_error
                              : IBV_WC_SUCCESS);
    for (Qp *const peer : to)
        if (deliver_datagram(fabric, qp, send, ah->attr, from, *peer) == NO_SOURCE)
            return done(send, source_error);
    return done(send, IBV_WC_SUCCESS);
}

} // namespace sim
