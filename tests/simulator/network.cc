// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// network.cc -- the progress of requests, operations and events: the rules of README.md

#include "world.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>

namespace {

// Splits a write into words; the first and the last of them may be partial.
template <typename Use> void each_word(char *target, const char *data, size_t size, Use use) {
    for (size_t done = 0; done < size;) {
        uintptr_t place = reinterpret_cast<uintptr_t>(target + done);
        size_t skipped = place % WORD, part = std::min(WORD - skipped, size - done);
        uint64_t value = 0, mask = 0;
        memcpy(reinterpret_cast<char *>(&value) + skipped, data + done, part);
        memset(reinterpret_cast<char *>(&mask) + skipped, 0xff, part);
        use(Part{reinterpret_cast<uint64_t *>(place - skipped), value, mask});
        done += part;
    }
}

// Makes a word visible. Plain memory is lost in a power failure, so its stores need no record.
void show(Machine &machine, const Part &part, Writer writer) {
    if (machine.memory.contains(part.word))
        machine.memory.store(part, writer);
    else
        *part.word = (*part.word & ~part.mask) | (part.value & part.mask);
}

const char *data_of(Operation &operation) {
    if (!operation.has_data)
        operation.data.assign(operation.piece.ptr, operation.piece.size);
    return operation.data.data();
}

} // namespace

void rpma_cq::add(const ibv_wc &wc, Flow *flow, size_t operation) {
    if (entries.size() == size)
        world.found("a completion queue runs over");
    entries.push_back({wc, flow, operation});
    if (armed)
        channel->events.push_back(this);
    armed = false;
}

void rpma_conn::complete(const Receive &receive, ibv_wc wc) const {
    wc.wr_id = receive.wr_id;
    wc.qp_num = qp_num;
    (rcq ? rcq : cq)->add(wc, nullptr, 0);
}

bool rpma_conn::is_readable() const {
    return !events.empty() || (side == 0 && link->state == Link::RESOLVED);
}

// The way to the server is found, or a request arrives there.
void Link::arrive() {
    if (state == RESOLVING) {
        state = RESOLVED;
        return;
    }
    rpma_ep *ep = world.endpoint(*this);
    state = ep ? WAITING : OVER;
    if (ep)
        ep->requests.push_back(this);
    else
        news[0].push_back(RPMA_CONN_REJECTED);
}

void rpma_ep::close(bool with_news) {
    alive = false;
    for (Link *link : requests) {
        link->state = Link::OVER;
        if (with_news)
            link->news[0].push_back(RPMA_CONN_REJECTED);
    }
}

void Link::tell(int side) {
    conns[side]->events.push_back(news[side].front());
    news[side].pop_front();
}

rpma_conn *Flow::target() const {
    return link->conns[1 - side];
}

Machine &Flow::machine() const {
    return *link->machines[1 - side];
}

Writer Flow::writer() const {
    return 2 * link->number + static_cast<Writer>(side);
}

// Operations that left an initiator before it died still arrive.
bool Flow::can_pass() const {
    return link->state == Link::UP && !link->broken && target() && machine().on &&
           !machine().cut_off && (!link->conns[side] || !link->machines[side]->cut_off);
}

bool Flow::may_fail() const {
    const rpma_conn *conn = link->conns[side];
    bool receives = link->broken && conn && !conn->receives.empty();
    return conn && (completed < posted.size() || receives) && !can_pass();
}

bool Flow::uses(const Piece &region) const {
    auto is_in = [&region](const Piece &piece) {
        return piece.size && piece.ptr >= region.ptr && piece.ptr < region.ptr + region.size;
    };
    return std::any_of(posted.begin() + static_cast<ptrdiff_t>(completed), posted.end(),
                       [&](const Operation &operation) { return is_in(operation.piece); }) ||
           std::ranges::any_of(link->conns[side]->receives, is_in, &Receive::piece);
}

void Flow::place(const Operation &operation, Visible visible) {
    each_word(operation.target, operation.data.data(), operation.size, [&](const Part &part) {
        if (visible == ALL || (visible == SOME && world.chance()))
            show(machine(), part, writer());
        else
            placed.push_back(part);
    });
}

// Makes placed words within the range visible.
void Flow::settle(char *begin, char *end) {
    std::erase_if(placed, [&](const Part &part) {
        char *word = reinterpret_cast<char *>(part.word);
        bool covered = word < end && word + WORD > begin;
        if (covered)
            show(machine(), part, writer());
        return covered;
    });
}

// A message, or immediate data, completes the oldest receive of the target.
void Flow::take_receive(Operation &operation) {
    rpma_conn *conn = target();
    std::deque<Receive> &receives = conn->srq ? conn->srq->receives : conn->receives;
    settle_all();
    if (receives.empty())
        return world.found("a message finds no receive: on iWARP its connection ends");
    const Receive receive = receives.front();
    receives.pop_front();
    if (operation.shape.kind == Shape::SEND) {
        if (operation.size > receive.piece.size)
            return world.found("a message is longer than its receive");
        operation.target = receive.piece.ptr;
        place(operation, ALL);
    }
    ibv_wc wc{};
    wc.opcode = operation.shape.kind == Shape::SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
    wc.byte_len = static_cast<uint32_t>(operation.size);
    wc.wc_flags = operation.shape.has_imm ? IBV_WC_WITH_IMM : 0;
    wc.imm_data = htonl(operation.work.imm);
    conn->complete(receive, wc);
}

void Flow::execute(Visible visible) {
    Operation &operation = posted[executed];
    if (operation.region) {
        const rpma_mr_local &region = *operation.region;
        if (!region.alive)
            return link->break_up(Link::NOT_EXECUTED, false);
        const char *end = region.piece.ptr + region.piece.size;
        if (operation.target < region.piece.ptr || operation.target > end ||
            operation.size > static_cast<size_t>(end - operation.target) ||
            !(region.usage & operation.shape.remote_usage))
            return world.found(
                "an operation reaches outside of the region, or the region does not allow it");
    }
    executed++;
    char *begin = operation.target, *end = begin + operation.size;
    switch (operation.shape.kind) {
    case Shape::WRITE:
        data_of(operation);
        place(operation, visible);
        break;
    case Shape::ATOMIC_WRITE:
        settle_all();
        place(operation, ALL);
        break;
    case Shape::READ:
        settle_all();
        if (link->conns[side])
            memcpy(operation.piece.ptr, begin, operation.piece.size);
        break;
    case Shape::FLUSH:
        settle(begin, end);
        if (operation.work.flush_type == RPMA_FLUSH_TYPE_PERSISTENT)
            machine().memory.flush(writer(), begin, end);
        break;
    default: // SEND
        data_of(operation);
        world.configuration->oracle->sent(*link, side, operation.data);
    }
    if (operation.shape.takes_receive)
        take_receive(operation);
}

// The target's device was interrupted in the middle of the next operation.
void Flow::execute_part() {
    if (!has_work() || posted[executed].shape.kind != Shape::WRITE ||
        !posted[executed].region->alive)
        return;
    Operation operation = posted[executed];
    data_of(operation);
    each_word(operation.target, operation.data.data(), operation.size, [&](const Part &part) {
        if (world.chance())
            placed.push_back(part);
    });
}

void Flow::deliver(const Operation &operation, size_t index, ibv_wc_status status) {
    if (status == IBV_WC_SUCCESS && operation.work.flags == RPMA_F_COMPLETION_ON_ERROR)
        return;
    ibv_wc wc{};
    wc.wr_id = reinterpret_cast<uint64_t>(operation.work.op_context);
    wc.status = status;
    wc.opcode = status == IBV_WC_SUCCESS ? operation.shape.opcode : ibv_wc_opcode{};
    wc.qp_num = link->conns[side]->qp_num;
    link->conns[side]->cq->add(wc, this, index);
}

void Flow::complete() {
    for (; completed < executed; completed++)
        deliver(posted[completed], completed, IBV_WC_SUCCESS);
}

// Also fails operations that were executed: their answers got lost. Receives of the connection
// end with it, those of a shared queue stay for others.
void Flow::fail_outstanding() {
    ibv_wc_status status = IBV_WC_RETRY_EXC_ERR;
    link->broken = true;
    for (; completed < posted.size(); completed++, status = IBV_WC_WR_FLUSH_ERR)
        deliver(posted[completed], completed, status);
    executed = completed;
    rpma_conn &conn = *link->conns[side];
    for (const Receive &receive : conn.receives) {
        ibv_wc wc{};
        wc.status = IBV_WC_WR_FLUSH_ERR;
        conn.complete(receive, wc);
    }
    conn.receives.clear();
}

void Link::break_up(Fate fate, bool silently) {
    for (Flow &flow : flows) {
        while (fate != NOT_EXECUTED && !broken && world.finding.empty() && flow.has_work() &&
               (fate == ALL_EXECUTED || world.chance()))
            flow.execute(Flow::SOME);
        if (fate == PARTLY_EXECUTED)
            flow.execute_part();
    }
    broken = true;
    silent = silently;
    for (int side = 0; side < 2 && !silent; side++)
        news[side].push_back(RPMA_CONN_CLOSED);
}

// Copies the data of operations that have left the initiator, as its memory was then.
void Flow::leave_initiator() {
    for (size_t i = executed; i < posted.size(); i++)
        if (posted[i].shape.kind == Shape::WRITE || posted[i].shape.kind == Shape::SEND) {
            data_of(posted[i]);
            posted[i].has_data = true;
        }
}

/*
 * A side deletes its connection, or its program ends. Its provider destroys the queue pair:
 * what was executed is in its memory, and nothing can arrive later. What it has posted may
 * still arrive at the server, later, and at the client, now.
 */
void Link::end(int side, bool with_news) {
    Flow &own = flows[side], &other = flows[1 - side];
    own.leave_initiator();
    if (side == 1) {
        while (own.can_pass() && own.has_work() && world.finding.empty() && world.chance())
            own.execute(Flow::SOME);
        if (!broken && world.chance())
            other.execute_part();
    }
    other.settle_all();
    broken |= side == 1;
    conns[side] = nullptr;
    if (with_news)
        news[1 - side].push_back(state == ANSWERED ? RPMA_CONN_REJECTED : RPMA_CONN_CLOSED);
    if (side == 0 && state <= REQUESTED)
        state = OVER;
}
