// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// datagram.cc -- the effects of a datagram on its receivers.

#include "comp.hh"
#include "counters.hh"
#include "qp_state.hh"
#include "resp_parts.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <numeric>

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

// The area in front of the data. Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c,
// build_rdma_network_hdr(): a header of IPv4 is at the end, after zeros.
union NetworkHeader {
    ibv_grh grh;
    struct {
        uint8_t unused[20];
        iphdr header;
    } ip4;
};
static_assert(sizeof(NetworkHeader) == GRH_BYTES);

// Returns true if datagrams from the GID are packets of IPv4.
static bool is_ip4(const Device &device, const ibv_gid &source) {
    return device.profile->transport == SIM_ROCE && sim_is_ip4_gid(&source);
}

static const ibv_gid &gid_of_sender(const Device &device, const ibv_ah_attr &address) {
    return device.gids[address.is_global ? address.grh.sgid_index : 0];
}

static uint16_t checksum_of(const iphdr &header) {
    uint16_t words[sizeof(header) / 2];
    memcpy(words, &header, sizeof(header));
    const uint32_t sum = std::accumulate(std::begin(words), std::end(words), uint32_t{0});
    return static_cast<uint16_t>(~((sum & 0xffff) + (sum >> 16)));
}

static NetworkHeader header_of(const Device &device, const Send &send,
                               const ibv_ah_attr &address, uint64_t payload) {
    constexpr uint8_t UDP = 17, INFINIBAND = 0x1b;
    constexpr uint64_t UDP_BYTES = 8, OTHERS = 12 + 8 + 4; // the BTH, the DETH and the ICRC
    const bool is_roce = device.profile->transport == SIM_ROCE;
    const ibv_global_route &route = address.grh;
    const ibv_gid &source = gid_of_sender(device, address);
    const uint64_t size = (is_roce ? UDP_BYTES : 0) + OTHERS +
                          (has_imm(send.wr.opcode) ? sizeof(send.wr.imm_data) : 0) +
                          (payload + 3) / 4 * 4;
    NetworkHeader made{};
    if (is_ip4(device, source)) {
        iphdr &header = made.ip4.header;
        header.version = 4;
        header.ihl = 5;
        header.tos = route.traffic_class;
        header.tot_len = htons(static_cast<uint16_t>(sizeof(header) + size));
        header.frag_off = htons(IP_DF);
        header.ttl = route.hop_limit;
        header.protocol = UDP;
        memcpy(&header.saddr, source.raw + 12, sizeof(header.saddr));
        memcpy(&header.daddr, route.dgid.raw + 12, sizeof(header.daddr));
        header.check = checksum_of(header);
        return made;
    }
    made.grh.version_tclass_flow =
        htonl(6U << 28 | uint32_t{route.traffic_class} << 20 | (route.flow_label & 0xfffff));
    made.grh.paylen = htons(static_cast<uint16_t>(size));
    made.grh.next_hdr = is_roce ? UDP : INFINIBAND;
    made.grh.hop_limit = route.hop_limit;
    made.grh.sgid = source;
    made.grh.dgid = route.dgid;
    return made;
}

static MemoryRanges without_header(MemoryRanges ranges) {
    uint64_t left = GRH_BYTES;
    for (MemoryRange &range : ranges) {
        const uint64_t part = std::min(left, range.length);
        range.address += part;
        range.length -= part;
        left -= part;
    }
    return ranges;
}

// The address of the sender in a completion.
static void set_source(ibv_wc &wc, const Qp &qp, const ibv_ah_attr &address) {
    const Device &device = *qp.context->device;
    const sim_profile &profile = *device.profile;
    wc.src_qp = qp.number;
    wc.wc_flags |= address.is_global ? IBV_WC_GRH : 0;
    if (profile.transport == SIM_ROCE) {
        wc.sl = is_ip4(device, gid_of_sender(device, address)) ? profile.ud_sl_ip4
                                                               : profile.ud_sl_ip6;
        return;
    }
    wc.slid = device.lid;
    wc.sl = address.sl;
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
    const uint64_t length = GRH_BYTES + length_of(from);
    NetworkHeader header = header_of(device, send, address, length_of(from));
    MemoryRanges to;
    ibv_wc_status status = local_ranges(fabric, peer, receive.sges, true, to)
                               ? peer.context->device->profile->receive_error
                               : IBV_WC_SUCCESS;
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
    // Without a GRH the area is not written: 11.4.2.1.
    if (address.is_global)
        from.insert(from.begin(),
                    {nullptr, reinterpret_cast<uint64_t>(&header), GRH_BYTES, false, false});
    const Copied copied =
        status != IBV_WC_SUCCESS
            ? COPIED
            : fill_receive(peer, receive, from, address.is_global ? to : without_header(to));
    if (copied == NO_SOURCE)
        return NO_SOURCE;
    if (copied == NO_TARGET)
        status = peer.context->device->profile->receive_error;
    ibv_wc wc = status ? failed(status) : received(send, length, IBV_WC_RECV);
    if (status == IBV_WC_SUCCESS)
        set_source(wc, qp, address);
    complete_receive(fabric, peer, receive, wc, send.wr.flags & IBV_SEND_SOLICITED);
    // Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c, rxe_responder(): class A
    if (status == peer.context->device->profile->receive_error)
        fail_qp_later(fabric, peer.number);
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
