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

} // namespace

sim::Send *Network::next_send(const Link &link, int side, bool passes) const {
    sim::Qp *const qp = link.ends[side].qp;
    return qp ? sim::next_send(*qp, passes) : nullptr;
}

// Operations that an initiator posted before its end still arrive.
bool Network::can_pass(const Link &link, int side) const {
    const sim::Qp *const qp = link.ends[side].qp, *const target = link.ends[1 - side].qp;
    return qp && target && target->session && !link.broken && is_connected(*qp) &&
           is_connected(*target) && link.machines[1 - side]->on &&
           !link.machines[1 - side]->disconnected &&
           (!qp->session || !link.machines[side]->disconnected);
}

// ---- possible events

std::optional<uint64_t> Network::first_message(const Link &link, int side,
                                               bool is_request) const {
    using Message = sim::Cm::Message;
    for (const auto &[number, message] : fabric_->cm().waiting()) {
        const bool requests = message.kind == Message::ARP || message.kind == Message::REQ;
        if (requests != is_request || !message.destination)
            continue;
        const auto found = places_.find(requests ? message.from : message.to);
        if (found != places_.end() && found->second.link == &link &&
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
           std::ranges::none_of(link.ends[side].qp->sends, &sim::Send::status);
}

bool Network::is_write_next(const Link &link, int side, bool passes) const {
    return is_write(next_send(link, side, passes)->wr.opcode);
}

bool Network::can_complete(const Link &link, int side) const {
    const sim::Qp *const qp = link.ends[side].qp;
    return qp && qp->session && !qp->sends.empty() && qp->sends.front().executed &&
           (qp->sends.front().status || can_pass(link, side));
}

bool Network::is_broken(const Link &link, int side) const {
    const sim::Qp *const qp = link.ends[side].qp;
    return (link.broken && !link.silent) || (qp && qp->attr.qp_state == IBV_QPS_ERR);
}

bool Network::can_fail(const Link &link, int side) const {
    const sim::Qp *const qp = link.ends[side].qp;
    const bool is_over = link.broken || (qp && qp->attr.qp_state == IBV_QPS_ERR);
    return qp && qp->session && qp->attr.qp_state >= IBV_QPS_RTR &&
           (!qp->sends.empty() || (is_over && !qp->receives.empty())) && !can_pass(link, side);
}

bool Network::can_break(const Link &link) const {
    const sim::Qp *const qp = link.ends[0].qp, *const target = link.ends[1].qp;
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
    fabric_->cm().deliver(*first_message(link, 0, true));
    const sim::CmId *const client = fabric_->cm().id_of(link.ends[0].id);
    const sim::CmId *const server =
        client && client->peer ? fabric_->cm().id_of(client->peer) : nullptr;
    if (!server || link.ends[1].id)
        return;
    link.ends[1].id = server->handle;
    places_[server->handle] = {&link, 1};
}

void Network::deliver_event(Link &link, int side) {
    fabric_->cm().deliver(*first_message(link, side, false));
}

void Network::execute(Link &link, int side, Visible visible, bool passes) {
    sim::Qp &qp = *link.ends[side].qp;
    sim::Send &send = *next_send(link, side, passes);
    const uint32_t rkey = send.wr.rkey;
    visible_ = visible;
    if (sim::execute(*fabric_, qp, send) == sim::NO_RECEIVE)
        simulation.fail("a message arrives without a receive: iWARP ends its connection");
    else if (send.status && fabric_->mr_of(rkey))
        simulation.fail(
            "an operation reaches outside of the region, or the region does not allow "
            "it, or its own memory");
    visible_.reset();
}

// Executes a part of the next operation, as if the target's device was interrupted. A receive
// that it took from an SRQ completes with an error, as on mlx5 (rdma-core 56,
// providers/mlx5/cq.c, mlx5_parse_cqe(), MLX5_CQE_RESP_ERR).
void Network::execute_part(Link &link, int side) {
    sim::Qp *const qp = link.ends[side].qp;
    if (!qp || !can_execute(link, side, false))
        return;
    const sim::Send &send = *next_send(link, side, false);
    if (send.wr.opcode == IBV_WR_SEND || send.wr.opcode == IBV_WR_SEND_WITH_IMM) {
        sim::Qp &target = *link.ends[1 - side].qp;
        if (target.srq && simulation.random_bit())
            sim::interrupt_receive(*fabric_, target);
        return;
    }
    sim::execute_part(*fabric_, *qp);
}

// For a part of a write, the words that arrive.
std::vector<bool> Network::late_words(sim::Fabric &, size_t count) {
    if (visible_ == ALL)
        return {};
    std::vector<bool> late(count);
    for (size_t i = 0; i < count; i++)
        late[i] = visible_ == NONE || simulation.random_bit() != (visible_ == SOME);
    return late;
}

void Network::complete(Link &link, int side) {
    sim::complete_sends(*fabric_, *link.ends[side].qp);
}

// Also fails executed operations, whose acknowledgements are lost.
void Network::fail(Link &link, int side) {
    link.broken = true;
    sim::fail_outstanding(*fabric_, *link.ends[side].qp, true);
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
        if (const sim::CmId *const id = fabric_->cm().id_of(end.id); id && !silently)
            fabric_->cm().break_connection(*id);
}

// Called when a side deletes its QP or its program ends. Executed operations become visible in
// its memory, and no later ones arrive. Operations that a server posted arrive now or never;
// those of a client can arrive later, and then the function returns true: the QP is kept.
bool Network::end_queue_pair(Link &link, int side) {
    sim::Qp &qp = *link.ends[side].qp;
    if (side == 1) {
        while (can_execute(link, 1, false) && simulation.finding.empty() &&
               simulation.random_bit())
            execute(link, 1, SOME, false);
        if (simulation.random_bit())
            execute_part(link, 0);
    }
    sim::show_received(*fabric_, qp);
    if (side == 0 && can_execute(link, 0, false)) {
        sim::abandon_qp(*fabric_, qp);
        return true;
    }
    link.ends[side].qp = nullptr;
    link.broken |= side == 1;
    sim::Qp *const other = link.ends[1 - side].qp;
    if (other && !other->session) {
        fabric_->destroy(*other);
        link.ends[1 - side].qp = nullptr;
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

// A read writes to the initiator's memory. Its program must make the data persistent itself.
// Stores in plain memory need no record, because a power failure loses it.
bool Network::write(Process &process, uint64_t address, const void *from, size_t length,
                    Writer writer) {
    Memory &memory = process.machine->memory;
    if (writer == 0 || !memory.contains(reinterpret_cast<const void *>(address)))
        memcpy(reinterpret_cast<void *>(address), from, length);
    else
        each_word(address, static_cast<const char *>(from), length,
                  [&](const Part &part) { memory.store(part, writer); });
    return true;
}
