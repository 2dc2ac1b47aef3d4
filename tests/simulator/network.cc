// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// network.cc -- the progress of requests, operations and events: the rules of README.md

#include "world.hh"

#include <algorithm>
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

// Operations that left a client before it died still arrive.
bool Link::can_pass() const {
    return state == UP && !broken && conns[1] && machines[1]->on && !machines[1]->cut_off &&
           (!conns[0] || !machines[0]->cut_off);
}

bool Link::reaches(int side) const {
    return conns[side] && !news[side].empty() && machines[0]->on && machines[1]->on &&
           !machines[0]->cut_off && !machines[1]->cut_off;
}

void Link::arrive() {
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

void Link::place(const Operation &operation, Visible visible) {
    each_word(operation.target, operation.data.data(), operation.size, [&](const Part &part) {
        if (visible == ALL || (visible == SOME && world.chance()))
            show(*machines[1], part, number);
        else
            placed.push_back(part);
    });
}

// Makes placed words within the range visible.
void Link::settle(char *begin, char *end) {
    std::erase_if(placed, [&](const Part &part) {
        char *word = reinterpret_cast<char *>(part.word);
        bool covered = word < end && word + WORD > begin;
        if (covered)
            show(*machines[1], part, number);
        return covered;
    });
}

void Link::execute(Visible visible) {
    Operation &operation = posted[executed];
    const rpma_mr_local &region = *operation.region;
    if (!region.alive) {
        break_up(NOT_EXECUTED, false);
        return;
    }
    static const int needed[] = {
        RPMA_MR_USAGE_READ_SRC, RPMA_MR_USAGE_WRITE_DST, RPMA_MR_USAGE_WRITE_DST,
        RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT};
    if (operation.target < region.ptr ||
        operation.target + operation.size > region.ptr + region.size ||
        !(region.usage & needed[operation.kind])) {
        world.found(
            "an operation reaches outside of the region, or the region does not allow it");
        return;
    }
    executed++;
    char *begin = operation.target, *end = begin + operation.size;
    switch (operation.kind) {
    case Operation::WRITE:
        data_of(operation);
        place(operation, visible);
        break;
    case Operation::ATOMIC_WRITE:
        settle(nullptr, reinterpret_cast<char *>(UINTPTR_MAX));
        place(operation, ALL);
        break;
    case Operation::READ:
        settle(nullptr, reinterpret_cast<char *>(UINTPTR_MAX));
        if (conns[0])
            memcpy(operation.piece.ptr, begin, operation.piece.size);
        break;
    case Operation::FLUSH:
        settle(begin, end);
        if (operation.persistent && machines[1]->memory.contains(begin)) {
            const char *visible_ = machines[1]->memory.visible();
            machines[1]->memory.flush(number, static_cast<size_t>(begin - visible_),
                                      static_cast<size_t>(end - visible_));
        }
        break;
    }
}

// The target's device was interrupted in the middle of the next operation.
void Link::execute_part() {
    if (!has_work() || posted[executed].kind != Operation::WRITE ||
        !posted[executed].region->alive)
        return;
    Operation operation = posted[executed];
    data_of(operation);
    each_word(operation.target, operation.data.data(), operation.size, [&](const Part &part) {
        if (world.chance())
            placed.push_back(part);
    });
}

void Link::deliver(const Operation &operation, size_t index, ibv_wc_status status) {
    if (status == IBV_WC_SUCCESS && !operation.always)
        return;
    rpma_cq &cq = conns[0]->cq;
    ibv_wc wc{};
    wc.wr_id = operation.wr_id;
    wc.status = status;
    if (cq.entries.size() == cq.size)
        world.found("a completion queue runs over");
    cq.entries.push_back({wc, index});
    cq.notified |= cq.armed;
    cq.armed = false;
}

void Link::complete() {
    for (; completed < executed; completed++)
        deliver(posted[completed], completed, IBV_WC_SUCCESS);
}

// Also fails operations that were executed: their answers got lost.
void Link::fail_outstanding() {
    ibv_wc_status status = IBV_WC_RETRY_EXC_ERR;
    broken = true;
    for (; completed < posted.size(); completed++, status = IBV_WC_WR_FLUSH_ERR)
        deliver(posted[completed], completed, status);
    executed = completed;
}

void Link::break_up(Fate fate, bool silently) {
    while (fate != NOT_EXECUTED && !broken && world.finding.empty() && has_work() &&
           (fate == ALL_EXECUTED || world.chance()))
        execute(SOME);
    if (fate == PARTLY_EXECUTED)
        execute_part();
    broken = true;
    silent = silently;
    for (int side = 0; side < 2 && !silent; side++)
        news[side].push_back(RPMA_CONN_CLOSED);
}

// Copies the data of operations that have left the client, as its memory was then.
void Link::leave_initiator() {
    for (size_t i = executed; i < posted.size(); i++)
        if (posted[i].kind == Operation::WRITE && !posted[i].has_data) {
            data_of(posted[i]);
            posted[i].has_data = true;
        }
}

/*
 * A side deletes its connection, or its program ends. If that side is the target, its provider
 * destroys the queue pair: executed operations are in the memory, and nothing can arrive later.
 */
void Link::end(int side, bool with_news) {
    if (side == 0) {
        leave_initiator();
    } else {
        if (!broken && world.chance())
            execute_part();
        settle(nullptr, reinterpret_cast<char *>(UINTPTR_MAX));
        broken = true;
    }
    conns[side] = nullptr;
    if (with_news)
        news[1 - side].push_back(state == ANSWERED ? RPMA_CONN_REJECTED : RPMA_CONN_CLOSED);
    if (side == 0 && state == REQUESTED)
        state = OVER;
}
