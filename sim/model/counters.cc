// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// counters.cc -- the counters of devices
//
// Names and order are those of Linux 6.1. A driver whose counters are of events that the fabric
// does not have, such as segments of TCP, has fewer here.

#include "counters.hh"

#include "qp_state.hh"
#include "verbs.hh"

#include <algorithm>
#include <map>
#include <utility>

namespace sim {

namespace {

struct Name {
    const char *name;
    unsigned count = COUNT_NOTHING;
    unsigned unit = 1;
};

constexpr unsigned sends(ibv_wc_status status) {
    return unsigned{COUNT_SEND_STATUS} + unsigned{status};
}
constexpr unsigned receives(ibv_wc_status status) {
    return unsigned{COUNT_RECEIVE_STATUS} + unsigned{status};
}

constexpr unsigned existing(Object::Kind kind) {
    return unsigned{COUNT_OBJECTS} + unsigned{kind};
}

// drivers/infiniband/core/sysfs.c, pma_attrs_ext: of drivers with process_mad(). Linux,
// Documentation/ABI/stable/sysfs-class-infiniband: data is counted in units of 4 bytes.
constexpr Name PMA[] = {
    {"symbol_error"},
    {"link_error_recovery"},
    {"link_downed", COUNT_PORT_DOWN},
    {"port_rcv_errors"},
    {"port_rcv_remote_physical_errors"},
    {"port_rcv_switch_relay_errors"},
    {"port_xmit_discards"},
    {"port_xmit_constraint_errors"},
    {"port_rcv_constraint_errors"},
    {"local_link_integrity_errors"},
    {"excessive_buffer_overrun_errors"},
    {"VL15_dropped"},
    {"port_xmit_data", COUNT_SENT_BYTES, 4},
    {"port_rcv_data", COUNT_RECEIVED_BYTES, 4},
    {"port_xmit_packets", COUNT_SENT_PACKETS},
    {"port_xmit_wait"},
    {"port_rcv_packets", COUNT_RECEIVED_PACKETS},
    {"unicast_rcv_packets", COUNT_RECEIVED_PACKETS},
    {"unicast_xmit_packets", COUNT_SENT_PACKETS},
    {"multicast_rcv_packets"},
    {"multicast_xmit_packets"},
};

// drivers/infiniband/sw/rxe/rxe_hw_counters.c; rxe_comp.c, rxe_net.c, rxe_recv.c, rxe_resp.c:
// the calls of rxe_counter_inc()
constexpr Name RXE[] = {
    {"sent_pkts", COUNT_SENT_PACKETS},
    {"rcvd_pkts", COUNT_RECEIVED_PACKETS},
    {"duplicate_request"},
    {"out_of_seq_request"},
    {"rcvd_rnr_err", COUNT_RNR_RECEIVED},
    {"send_rnr_err", COUNT_RNR_SENT},
    {"rcvd_seq_err"},
    {"ack_deferred"},
    {"retry_exceeded_err", sends(IBV_WC_RETRY_EXC_ERR)},
    {"retry_rnr_exceeded_err", sends(IBV_WC_RNR_RETRY_EXC_ERR)},
    {"completer_retry_err", COUNT_RETRIES},
    {"send_err"},
    {"link_downed", COUNT_PORT_DOWN},
    {"rdma_sends", COUNT_MESSAGES_COMPLETED},
    {"rdma_recvs", receives(IBV_WC_SUCCESS)},
};

// drivers/infiniband/hw/mlx5/counters.c: mlx5_ib_fill_counters(). Linux 7.3 also has the
// counters of exceeded retries.
constexpr Name MLX5[] = {
    {"rx_write_requests", COUNT_WRITES_IN},
    {"rx_read_requests", COUNT_READS_IN},
    {"rx_atomic_requests", COUNT_ATOMICS_IN},
    {"out_of_buffer", COUNT_NO_RECEIVE},
    {"out_of_sequence"},
    {"duplicate_request"},
    {"rnr_nak_retry_err", COUNT_RNR_RECEIVED},
    {"packet_seq_err"},
    {"implied_nak_seq_err"},
    {"local_ack_timeout_err", COUNT_TIMEOUTS},
    {"resp_local_length_error", receives(IBV_WC_LOC_LEN_ERR)},
    {"resp_cqe_error", COUNT_RECEIVE_ERRORS},
    {"req_cqe_error", COUNT_SEND_ERRORS},
    {"req_remote_invalid_request", sends(IBV_WC_REM_INV_REQ_ERR)},
    {"req_remote_access_errors", sends(IBV_WC_REM_ACCESS_ERR)},
    {"resp_remote_access_errors", COUNT_ACCESS_REFUSED},
    {"resp_cqe_flush_error", receives(IBV_WC_WR_FLUSH_ERR)},
    {"req_cqe_flush_error", sends(IBV_WC_WR_FLUSH_ERR)},
    {"req_transport_retries_exceeded", sends(IBV_WC_RETRY_EXC_ERR)},
    {"req_rnr_retries_exceeded", sends(IBV_WC_RNR_RETRY_EXC_ERR)},
    {"roce_adp_retrans"},
    {"roce_adp_retrans_to"},
    {"roce_slow_restart"},
    {"roce_slow_restart_cnps"},
    {"roce_slow_restart_trans"},
    {"rp_cnp_ignored"},
    {"rp_cnp_handled"},
    {"np_ecn_marked_roce_packets"},
    {"np_cnp_sent"},
    {"rx_icrc_encapsulated"},
};

// drivers/infiniband/hw/mlx4/main.c: diag_basic, diag_ext. A name is the queue and the initials
// of the error: of a work completion, of a NAK, or of the transport.
constexpr Name MLX4[] = {
    {"rq_num_lle", receives(IBV_WC_LOC_LEN_ERR)},
    {"sq_num_lle", sends(IBV_WC_LOC_LEN_ERR)},
    {"rq_num_lqpoe", receives(IBV_WC_LOC_QP_OP_ERR)},
    {"sq_num_lqpoe", sends(IBV_WC_LOC_QP_OP_ERR)},
    {"rq_num_lpe", receives(IBV_WC_LOC_PROT_ERR)},
    {"sq_num_lpe", sends(IBV_WC_LOC_PROT_ERR)},
    {"rq_num_wrfe", receives(IBV_WC_WR_FLUSH_ERR)},
    {"sq_num_wrfe", sends(IBV_WC_WR_FLUSH_ERR)},
    {"sq_num_mwbe"},
    {"sq_num_bre"},
    {"sq_num_rire", sends(IBV_WC_REM_INV_REQ_ERR)},
    {"rq_num_rire", receives(IBV_WC_REM_INV_REQ_ERR)},
    {"sq_num_rae", sends(IBV_WC_REM_ACCESS_ERR)},
    {"rq_num_rae", COUNT_ACCESS_REFUSED},
    {"sq_num_roe", sends(IBV_WC_REM_OP_ERR)},
    {"sq_num_tree", sends(IBV_WC_RETRY_EXC_ERR)},
    {"sq_num_rree", sends(IBV_WC_RNR_RETRY_EXC_ERR)},
    {"rq_num_rnr", COUNT_RNR_SENT},
    {"sq_num_rnr", COUNT_RNR_RECEIVED},
    {"rq_num_oos"},
    {"sq_num_oos"},
    {"rq_num_dup"},
    {"sq_num_to", COUNT_TIMEOUTS},
};

// drivers/infiniband/hw/bnxt_re/hw_counters.c: without the responder's errors (res_*), whose
// causes the driver does not define
constexpr Name BNXT_RE[] = {
    {"active_pds", existing(Object::PD)},
    {"active_ahs", existing(Object::AH)},
    {"active_qps", existing(Object::QP)},
    {"active_srqs", existing(Object::SRQ)},
    {"active_cqs", existing(Object::CQ)},
    {"active_mrs", existing(Object::MR)},
    {"active_mws"},
    {"rx_pkts", COUNT_RECEIVED_PACKETS},
    {"rx_bytes", COUNT_RECEIVED_BYTES},
    {"tx_pkts", COUNT_SENT_PACKETS},
    {"tx_bytes", COUNT_SENT_BYTES},
    {"recoverable_errors"},
    {"to_retransmits", COUNT_RETRIES},
    {"seq_err_naks_rcvd"},
    {"max_retry_exceeded", sends(IBV_WC_RETRY_EXC_ERR)},
    {"rnr_naks_rcvd", COUNT_RNR_RECEIVED},
    {"missing_resp"},
    {"bad_resp_err"},
    {"local_qp_op_err", sends(IBV_WC_LOC_QP_OP_ERR)},
    {"local_protection_err", sends(IBV_WC_LOC_PROT_ERR)},
    {"mem_mgmt_op_err"},
    {"remote_invalid_req_err", sends(IBV_WC_REM_INV_REQ_ERR)},
    {"remote_access_err", sends(IBV_WC_REM_ACCESS_ERR)},
    {"remote_op_err", sends(IBV_WC_REM_OP_ERR)},
    {"dup_req"},
    {"oos_drop_count"},
    {"tx_atomic_req", COUNT_ATOMICS},
    {"tx_read_req", COUNT_READS},
    {"tx_read_resp", COUNT_READS_IN},
    {"tx_write_req", COUNT_WRITES},
    {"tx_send_req", COUNT_SENDS},
    {"rx_atomic_req", COUNT_ATOMICS_IN},
    {"rx_read_req", COUNT_READS_IN},
    {"rx_read_resp", COUNT_READS},
    {"rx_write_req", COUNT_WRITES_IN},
    {"rx_send_req", COUNT_SENDS_IN},
    {"rx_out_of_buffer", COUNT_NO_RECEIVE},
};

// drivers/infiniband/hw/irdma/verbs.c, irdma_hw_stat_descs: without those of IP and TCP
constexpr Name IRDMA[] = {
    {"cnpHandled"},
    {"cnpIgnored"},
    {"cnpSent"},
    {"iwInRdmaReads", COUNT_READS_IN},
    {"iwInRdmaSends", COUNT_SENDS_IN},
    {"iwInRdmaWrites", COUNT_WRITES_IN},
    {"iwOutRdmaReads", COUNT_READS},
    {"iwOutRdmaSends", COUNT_SENDS},
    {"iwOutRdmaWrites", COUNT_WRITES},
    {"iwRdmaBnd"},
    {"iwRdmaInv"},
    {"RxECNMrkd"},
};

struct Driver {
    const char *name; // sim_profile::driver
    const Name *begin, *end;
    bool has_pma;
};
constexpr Driver DRIVERS[] = {
    {"rdma_rxe", std::begin(RXE), std::end(RXE), false},
    {"mlx5_core", std::begin(MLX5), std::end(MLX5), true},
    {"mlx4_core", std::begin(MLX4), std::end(MLX4), true},
    {"bnxt_en", std::begin(BNXT_RE), std::end(BNXT_RE), false},
    {"ice", std::begin(IRDMA), std::end(IRDMA), false},
};

std::vector<DriverCounter> make_counters(const sim_profile &profile) {
    std::vector<DriverCounter> made;
    const auto add = [&](const char *group, const Name &name) {
        made.push_back({group, name.name, static_cast<Count>(name.count), name.unit});
    };
    for (const Driver &driver : DRIVERS) {
        if (std::string_view(driver.name) != profile.driver)
            continue;
        std::for_each(driver.begin, driver.end,
                      [&](const Name &name) { add("hw_counters", name); });
        if (driver.has_pma)
            for (const Name &name : PMA)
                add("counters", name);
    }
    return made;
}

struct Traffic {
    uint64_t packets, bytes;
};

// InfiniBand Architecture Specification, volume 1, chapter 9: the lengths of headers. A packet
// has LRH, BTH, ICRC and VCRC; on RoCE, Ethernet, IPv4, UDP, BTH and ICRC.
constexpr uint64_t INFINIBAND_BYTES = 26, ROCE_BYTES = 58;
constexpr uint64_t DETH = 8, RETH = 16, AETH = 4, ATOMIC_ETH = 28, ATOMIC_ACK = 8, MAD = 256;

// Linux 6.1, drivers/infiniband/sw/rxe/rxe_req.c, init_req_packet(): the packets of a message
// that request an acknowledgement, other than the last one.
constexpr uint64_t PACKETS_PER_ACK = 66;

Count kind_of(uint32_t opcode) {
    if (opcode == IBV_WR_RDMA_READ)
        return COUNT_READS;
    if (sim_is_atomic(opcode))
        return COUNT_ATOMICS;
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ? COUNT_SENDS : COUNT_WRITES;
}

void count_sent(Device &from, const Traffic &traffic) {
    from.counters[COUNT_SENT_PACKETS] += traffic.packets;
    from.counters[COUNT_SENT_BYTES] += traffic.bytes;
}

void count_received(Device &to, const Traffic &traffic) {
    to.counters[COUNT_RECEIVED_PACKETS] += traffic.packets;
    to.counters[COUNT_RECEIVED_BYTES] += traffic.bytes;
}

// `to` is NULL if the packets are lost.
void count(Device &from, Device *to, const Traffic &traffic) {
    count_sent(from, traffic);
    if (to)
        count_received(*to, traffic);
}

// The packets of a message with `length` bytes, and their bytes.
Traffic traffic_of(sim_transport transport, uint64_t length, uint64_t mtu, uint64_t headers) {
    const uint64_t packets = length == 0 ? 1 : (length + mtu - 1) / mtu;
    const uint64_t each = transport == SIM_INFINIBAND ? INFINIBAND_BYTES : ROCE_BYTES;
    return {packets, packets * each + headers + (length + 3) / 4 * 4};
}

Traffic datagram_of(const Device &device, uint64_t length) {
    return traffic_of(device.profile->transport, length, UINT32_MAX, DETH);
}

bool is_nak(ibv_wc_status status) {
    return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR ||
           status == IBV_WC_REM_OP_ERR;
}

} // namespace

const std::vector<DriverCounter> &counters_of(const sim_profile &profile) {
    static std::map<const sim_profile *, std::vector<DriverCounter>> made;
    const auto found = made.find(&profile);
    return found != made.end() ? found->second
                               : made.emplace(&profile, make_counters(profile)).first->second;
}

// ---- counting ------------------------------------------------------------------------------

// A request that is sent several times, and its responses if they arrive.
static void count_message(const Qp &qp, Device *to, const Send &send, bool is_refused,
                          uint64_t times = 1) {
    Device &from = *qp.context->device;
    const uint64_t mtu = qp.attr.path_mtu ? 128ULL << qp.attr.path_mtu : 1024;
    const Count kind = kind_of(send.wr.opcode);
    const bool is_read = kind == COUNT_READS, is_atomic = kind == COUNT_ATOMICS;
    uint64_t length = send.wr.inline_length;
    for (const ibv_sge &sge : send.sges)
        length += sge.length;
    const auto packets = [&](uint64_t bytes, uint64_t headers, uint64_t messages) {
        const Traffic one = traffic_of(from.profile->transport, bytes, mtu, headers);
        return Traffic{one.packets * messages, one.bytes * messages};
    };
    const Traffic request = packets(is_read || is_atomic ? 0 : length,
                                    is_read                ? RETH
                                    : is_atomic            ? ATOMIC_ETH
                                    : kind == COUNT_WRITES ? RETH
                                                           : 0,
                                    times);
    count(from, to, request);
    if (!to || qp.type == IBV_QPT_UC)
        return;
    if (is_refused)
        count(*to, &from, packets(0, AETH, times));
    else if (is_read || is_atomic)
        count(*to, &from, packets(is_read ? length : 0, is_read ? AETH : AETH + ATOMIC_ACK, 1));
    else
        count(*to, &from, packets(0, AETH, 1 + (request.packets - 1) / PACKETS_PER_ACK));
}

void count_executed(const Qp &qp, const Qp &peer, const Send &send) {
    const bool is_refused = is_nak(send.status);
    if (send.status != IBV_WC_SUCCESS && !is_refused)
        return; // it was not sent
    Device &from = *qp.context->device, &to = *peer.context->device;
    const Count kind = kind_of(send.wr.opcode);
    from.counters[kind]++;
    to.counters[kind - COUNT_SENDS + COUNT_SENDS_IN]++;
    if (!is_iwarp(qp))
        count_message(qp, &to, send, is_refused);
}

void count_dropped(const Qp &qp, const Qp *peer, const Send &send) {
    if (send.status != IBV_WC_SUCCESS)
        return;
    qp.context->device->counters[kind_of(send.wr.opcode)]++;
    count_message(qp, peer ? peer->context->device : nullptr, send, false);
    if (peer)
        peer->context->device->counters[COUNT_NO_RECEIVE]++;
}

// The receivers of a datagram count it themselves: there are several if it is for a group.
void count_datagram(const Qp &qp, uint64_t length) {
    Device &from = *qp.context->device;
    count_sent(from, datagram_of(from, length));
    from.counters[COUNT_SENDS]++;
}

void count_delivery(const Qp &peer, uint64_t length, bool has_receive) {
    Device &to = *peer.context->device;
    count_received(to, datagram_of(to, length));
    to.counters[has_receive ? COUNT_SENDS_IN : COUNT_NO_RECEIVE]++;
}

void Fabric::count_mad(Device &from, Device *to) {
    if (from.profile->transport != SIM_IWARP)
        count(from, to, traffic_of(from.profile->transport, MAD, MAD, DETH));
}

void count_send(const Qp &qp, const Send &send, ibv_wc_status status) {
    Counters &counters = qp.context->device->counters;
    counters[COUNT_MESSAGES_COMPLETED] += kind_of(send.wr.opcode) == COUNT_SENDS;
    counters[COUNT_SEND_ERRORS] += status != IBV_WC_SUCCESS;
    counters[sends(status)]++;
}

void count_receive(const Qp &qp, ibv_wc_status status) {
    Counters &counters = qp.context->device->counters;
    counters[COUNT_RECEIVE_ERRORS] += status != IBV_WC_SUCCESS;
    counters[receives(status)]++;
}

// ---- attempts of a request that has no response --------------------------------------------

// A device repeats the request in each period, up to a limit. The fabric executes it when the
// cause has ended, so it computes the number of attempts from the time that has passed.
void begin_attempts(Fabric &fabric, Qp &qp, const Send &send, const Qp *peer, uint64_t period,
                    uint64_t limit) {
    if (qp.attempts.period != 0 && qp.attempts.lacks_receive == (peer != nullptr))
        return count_attempts(fabric, qp);
    end_attempts(fabric, qp);
    qp.attempts = {&send, peer != nullptr, fabric.now(), period, limit, 0, 0};
    count_attempts(fabric, qp);
}

void end_attempts(Fabric &fabric, Qp &qp) {
    count_attempts(fabric, qp);
    qp.attempts = {};
}

void count_attempts(Fabric &fabric, Qp &qp) {
    Attempts &attempts = qp.attempts;
    if (attempts.period == 0)
        return;
    const Qp *const peer = attempts.lacks_receive ? fabric.peer_of(qp) : nullptr;
    Device &device = *qp.context->device, *const other = peer ? peer->context->device : nullptr;
    const uint64_t passed = (fabric.now() - attempts.began) / attempts.period;
    const uint64_t timeouts = passed <= attempts.limit ? passed : attempts.limit + 1;
    const uint64_t total = std::min(passed, attempts.limit) + 1;
    const uint64_t times = total - attempts.counted;
    if (attempts.lacks_receive ? peer != nullptr : device.port_is_up)
        count_message(qp, other, *attempts.send, true, times);
    if (peer) {
        device.counters[COUNT_RNR_RECEIVED] += times;
        other->counters[COUNT_RNR_SENT] += times;
        other->counters[COUNT_NO_RECEIVE] += times;
    } else if (!attempts.lacks_receive) {
        device.counters[COUNT_RETRIES] += attempts.counted == 0 ? total - 1 : times;
        device.counters[COUNT_TIMEOUTS] += timeouts - attempts.timeouts;
    }
    attempts.counted = total;
    attempts.timeouts = timeouts;
}

// ---- reading -------------------------------------------------------------------------------

void Fabric::count_attempts() {
    for (const auto &[number, qp] : qps)
        sim::count_attempts(*this, *qp);
}

uint64_t Fabric::read_counter(const Device &device, const DriverCounter &counter) const {
    if (counter.count < COUNTS)
        return device.counters[counter.count] / counter.unit;
    return static_cast<uint64_t>(std::ranges::count_if(objects_, [&](const auto &entry) {
        const Context *const context = Verbs::context_of(*entry.second);
        return context && context->device == &device &&
               existing(entry.second->kind) == counter.count;
    }));
}

} // namespace sim
