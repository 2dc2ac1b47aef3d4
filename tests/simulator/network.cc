// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// network.cc -- the steps of the fabric that a scheduler chooses, by the rules of README.md

#include "simulation.hh"

#include <algorithm>
#include <cstring>

namespace {

// Splits a write into words, of which the first and the last may be partial.
template <typename Use>
void each_word(uint64_t target, const char *data, size_t size, Use use) {
    for (size_t done = 0; done < size;) {
        const uint64_t place = target + done;
        const size_t skipped = place % WORD, part = std::min(WORD - skipped, size - done);
        uint64_t value = 0, mask = 0;
        memcpy(reinterpret_cast<char *>(&value) + skipped, data + done, part);
        memset(reinterpret_cast<char *>(&mask) + skipped, 0xff, part);
        use(Part{reinterpret_cast<uint64_t *>(place - skipped), value, mask});
        done += part;
    }
}

bool is_write(uint32_t opcode) {
    return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool is_connected(const sim::Qp &qp) {
    return qp.attr.qp_state == IBV_QPS_RTS || qp.attr.qp_state == IBV_QPS_RTR;
}

Writer writer_of(const Link &link, int side) {
    return 2 * link.number + static_cast<Writer>(side);
}

} // namespace

sim::Qp *Network::qp_of(const Link &link, int side) const {
    const uint32_t handle = link.ends[side].qp;
    return handle ? m_fabric->find<sim::Qp>(handle) : nullptr;
}

// InfiniBand Architecture Specification, volume 1, release 1.4, table 79: without a fence, a
// send or a write may be executed before earlier reads and atomics.
sim::Send *Network::next_send(const Link &link, int side, bool passes) const {
    sim::Qp *const qp = qp_of(link, side);
    if (!qp)
        return nullptr;
    bool is_behind_read = false;
    for (sim::Send &send : qp->sends) {
        if (send.executed)
            continue;
        const uint32_t opcode = send.wr.opcode;
        const bool is_read = opcode == IBV_WR_RDMA_READ || sim_is_atomic(opcode);
        if (!passes)
            return &send;
        if (is_read) {
            is_behind_read = true;
            continue;
        }
        const bool waits = opcode == SIM_WR_FLUSH || send.wr.flags & IBV_SEND_FENCE;
        return is_behind_read && !waits ? &send : nullptr;
    }
    return nullptr;
}

// Operations that an initiator posted before its end still arrive.
bool Network::can_pass(const Link &link, int side) const {
    const sim::Qp *const qp = qp_of(link, side), *const target = qp_of(link, 1 - side);
    return qp && target && target->session && !link.broken && is_connected(*qp) &&
           is_connected(*target) && link.machines[1 - side]->on &&
           !link.machines[1 - side]->disconnected &&
           (!qp->session || !link.machines[side]->disconnected);
}

// ---- possible events

std::optional<uint64_t> Network::first_message(const Link &link, int side,
                                               bool is_request) const {
    using Message = sim::Cm::Message;
    for (const auto &[number, message] : m_fabric->cm().waiting()) {
        const bool requests = message.kind == Message::ARP || message.kind == Message::REQ;
        if (requests != is_request || !message.destination)
            continue;
        const auto found = m_places.find(requests ? message.from : message.to);
        if (found != m_places.end() && found->second.link == &link &&
            (requests || found->second.side == side))
            return number;
    }
    return std::nullopt;
}

bool Network::has_request(const Link &link) const {
    return link.is_open() && first_message(link, 0, true);
}

bool Network::has_cm_event(const Link &link, int side) const {
    return link.is_open() && first_message(link, side, false);
}

bool Network::can_execute(const Link &link, int side, bool passes) const {
    return next_send(link, side, passes) && can_pass(link, side) &&
           std::ranges::none_of(qp_of(link, side)->sends, &sim::Send::status);
}

bool Network::is_write_next(const Link &link, int side, bool passes) const {
    return is_write(next_send(link, side, passes)->wr.opcode);
}

bool Network::can_complete(const Link &link, int side) const {
    const sim::Qp *const qp = qp_of(link, side);
    return qp && qp->session && !qp->sends.empty() && qp->sends.front().executed &&
           (qp->sends.front().status || can_pass(link, side));
}

bool Network::is_broken(const Link &link, int side) const {
    const sim::Qp *const qp = qp_of(link, side);
    return (link.broken && !link.silent) || (qp && qp->attr.qp_state == IBV_QPS_ERR);
}

bool Network::can_fail(const Link &link, int side) const {
    const sim::Qp *const qp = qp_of(link, side);
    const bool is_over = link.broken || (qp && qp->attr.qp_state == IBV_QPS_ERR);
    return qp && qp->session && qp->attr.qp_state >= IBV_QPS_RTR &&
           (!qp->sends.empty() || (is_over && !qp->receives.empty())) && !can_pass(link, side);
}

bool Network::can_break(const Link &link) const {
    const sim::Qp *const qp = qp_of(link, 0), *const target = qp_of(link, 1);
    return !link.broken && qp && target && qp->session && target->session &&
           is_connected(*target);
}

// ---- steps

void Network::message_sent(sim::Fabric &fabric, const sim::Cm::Message &message,
                           uint64_t timeout) {
    if (message.has_receiver())
        fabric.cm().hold(message, timeout);
}

// Delivers the reply to an address resolution, or a connect request to the server.
void Network::deliver_request(Link &link) {
    m_fabric->cm().deliver(*first_message(link, 0, true));
    const sim::CmId *const client = m_fabric->cm().id_of(link.ends[0].id);
    const sim::CmId *const server =
        client && client->peer ? m_fabric->cm().id_of(client->peer) : nullptr;
    if (!server || link.ends[1].id)
        return;
    link.ends[1].id = server->handle;
    m_places[server->handle] = {&link, 1};
}

void Network::deliver_event(Link &link, int side) {
    m_fabric->cm().deliver(*first_message(link, side, false));
}

// A request other than a plain write first makes earlier writes visible.
void Network::execute(Link &link, int side, Visible visible, bool passes) {
    sim::Qp &qp = *qp_of(link, side);
    sim::Send &send = *next_send(link, side, passes);
    const uint32_t opcode = send.wr.opcode;
    m_execution = {&link, side, visible, opcode};
    const sim_reach reach =
        sim_made_visible(opcode, opcode == SIM_WR_FLUSH ? send.wr.flush_length : send.length);
    if (reach == SIM_ALL_WRITES)
        apply_placed(link, side, 0, UINT64_MAX);
    else if (reach == SIM_WRITES_IN_RANGE)
        apply_placed(link, side, send.wr.remote_addr,
                     send.wr.remote_addr + send.wr.flush_length);
    const uint32_t rkey = send.wr.rkey;
    if (sim::execute(*m_fabric, qp, send) == sim::NO_RECEIVE)
        simulation.fail("a message arrives without a receive: iWARP ends its connection");
    else if (send.status && m_fabric->mr_of(rkey))
        simulation.fail(
            "an operation reaches outside of the region, or the region does not allow "
            "it, or its own memory");
    if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        apply_placed(link, side, 0, UINT64_MAX);
    m_execution.reset();
}

// Executes a part of the next operation, as if the target's device was interrupted. A receive
// that it took from an SRQ completes with an error, as on mlx5 (rdma-core 56,
// providers/mlx5/cq.c, mlx5_parse_cqe(), MLX5_CQE_RESP_ERR).
void Network::execute_part(Link &link, int side) {
    sim::Qp *const qp = qp_of(link, side);
    if (!qp || !can_execute(link, side, false))
        return;
    const sim::Send &send = *next_send(link, side, false);
    if (send.wr.opcode == IBV_WR_SEND || send.wr.opcode == IBV_WR_SEND_WITH_IMM) {
        sim::Qp &target = *qp_of(link, 1 - side);
        if (target.srq && simulation.random_bit())
            sim::interrupt_receive(*m_fabric, target);
        return;
    }
    if (!is_write(send.wr.opcode) || !m_fabric->mr_of(send.wr.rkey))
        return;
    sim::keep_data(*m_fabric, *qp);
    each_word(send.wr.remote_addr, reinterpret_cast<const char *>(send.inlined.data()),
              send.wr.inline_length, [&](const Part &part) {
                  if (simulation.random_bit())
                      link.ends[side].placed.push_back(part);
              });
}

void Network::complete(Link &link, int side) {
    sim::complete_sends(*m_fabric, *qp_of(link, side));
}

// Also fails executed operations, whose acknowledgements are lost.
void Network::fail(Link &link, int side) {
    link.broken = true;
    sim::fail_outstanding(*m_fabric, *qp_of(link, side), true);
}

void Network::break_link(Link &link, Outcome outcome, bool silently) {
    for (int side = 0; side < 2; side++) {
        while (outcome != NOT_EXECUTED && simulation.finding.empty() &&
               can_execute(link, side, false) &&
               (outcome == ALL_EXECUTED || simulation.random_bit()))
            execute(link, side, SOME, false);
        if (outcome == PARTLY_EXECUTED)
            execute_part(link, side);
    }
    link.broken = true;
    link.silent = silently;
    for (const End &end : link.ends)
        if (const sim::CmId *const id = m_fabric->cm().id_of(end.id); id && !silently)
            m_fabric->cm().break_connection(*id);
}

// Called when a side deletes its QP or its program ends. Executed operations become visible in
// its memory, and no later ones arrive. Operations that a server posted arrive now or never;
// those of a client can arrive later, and then the function returns true: the QP is kept.
bool Network::end_queue_pair(Link &link, int side) {
    sim::Qp &qp = *qp_of(link, side);
    if (side == 1) {
        while (can_execute(link, 1, false) && simulation.finding.empty() &&
               simulation.random_bit())
            execute(link, 1, SOME, false);
        if (simulation.random_bit())
            execute_part(link, 0);
    }
    apply_placed(link, 1 - side, 0, UINT64_MAX);
    if (side == 0 && can_execute(link, 0, false)) {
        sim::abandon_qp(*m_fabric, qp);
        return true;
    }
    link.ends[side].qp = 0;
    link.broken |= side == 1;
    sim::Qp *const other = qp_of(link, 1 - side);
    if (other && !other->session) {
        m_fabric->destroy(*other);
        link.ends[1 - side].qp = 0;
    }
    return false;
}

void Network::forget_closed_links() {
    std::erase_if(open_links, [this](uint16_t i) {
        const Link &link = *links[i];
        return !link.ends[0].id && !link.ends[1].id && !link.ends[0].qp && !link.ends[1].qp &&
               !first_message(link, 0, true) && !first_message(link, 0, false) &&
               !first_message(link, 1, false);
    });
}

// ---- memory

// Makes a word visible. Stores in plain memory need no record, because a power failure loses
// it.
void Network::apply_word(Machine &machine, const Part &part, Writer writer) {
    if (machine.memory.contains(part.word))
        machine.memory.store(part, writer);
    else
        *part.word = (*part.word & ~part.mask) | (part.value & part.mask);
}

// Makes placed words within the range visible.
void Network::apply_placed(Link &link, int side, uint64_t begin, uint64_t end) {
    std::erase_if(link.ends[side].placed, [&](const Part &part) {
        const auto word = reinterpret_cast<uint64_t>(part.word);
        const bool covered = word < end && word + WORD > begin;
        if (covered)
            apply_word(*link.machines[1 - side], part, writer_of(link, side));
        return covered;
    });
}

// A read writes to the initiator's memory. Its program must make the data persistent itself.
bool Network::write(Process &process, uint64_t address, const void *from, size_t length) {
    const Execution execution = *m_execution;
    Link *const link = execution.link;
    const int side = execution.side;
    if (&process == link->ends[side].owner) {
        memcpy(reinterpret_cast<void *>(address), from, length);
        return true;
    }
    std::string data(static_cast<const char *>(from), length);
    if (execution.opcode == IBV_WR_SEND || execution.opcode == IBV_WR_SEND_WITH_IMM)
        simulation.configuration->oracle->on_send(*link, side, data);
    each_word(address, data.data(), length, [&](const Part &part) {
        if (!is_write(execution.opcode) || execution.visible == ALL ||
            (execution.visible == SOME && simulation.random_bit()))
            apply_word(*process.machine, part, writer_of(*link, side));
        else
            link->ends[side].placed.push_back(part);
    });
    return true;
}

// Called for earlier writes of the connection that an operation makes persistent.
void Network::persist(Process &process, uint64_t address, size_t length) {
    const char *begin = reinterpret_cast<const char *>(address);
    process.machine->memory.flush(writer_of(*m_execution->link, m_execution->side), begin,
                                  begin + length);
}
