// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// verbs.cc -- questions about requests, regions and events for which librpma has no function

#include "questions.hh"

#include "../info/info.hh"

#include <cstring>
#include <poll.h>
#include <sys/mman.h>

ibv_sge sge_of(const Connection &c, size_t offset, uint32_t size) {
    return {reinterpret_cast<uintptr_t>(c.memory.at(offset)), size,
            c.memory.mr.get_ibv_mr()->lkey};
}

ibv_send_wr request_of(const Connection &c, ibv_wr_opcode opcode, std::span<ibv_sge> sges,
                       size_t remote_offset) {
    uint64_t address = 0;
    uint32_t key = 0;
    rpma::check(static_cast<rpma::status>(rpma_mr_remote_get_key(c.remote, &address, &key)));
    address += remote_offset;
    ibv_send_wr wr{};
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.rkey = key;
    } else {
        wr.wr.rdma.remote_addr = address;
        wr.wr.rdma.rkey = key;
    }
    return wr;
}

namespace {

// Posts a signaled request, and returns the status of its completion.
std::string outcome_of(Connection &c, ibv_wr_opcode opcode, std::vector<ibv_sge> sges,
                       size_t remote_offset, unsigned flags = 0, size_t completions = 1) {
    ibv_send_wr wr = request_of(c, opcode, sges, remote_offset), *bad = nullptr;
    wr.send_flags |= flags;
    return ibv_post_send(c.conn.get_ibv_qp(), &wr, &bad) == 0
               ? outcome(rpma::status::ok, c, completions)
               : "the post fails";
}

// A write with a fence sends what an earlier read has fetched.
Results fenced(Session &session) {
    constexpr uint32_t SIZE = MEMORY_SIZE / 2, PART = 64;
    const auto made = session.open();
    Connection &c = *made;
    unsigned stale = 0;
    std::string status = "ok";
    for (unsigned i = 0; i < 20 && status == "ok"; i++) {
        std::memset(c.memory.at(SIZE), static_cast<int>('a' + i), PART);
        status =
            outcome(c.conn.write(c.remote, SIZE - PART, c.memory.mr, SIZE, PART, ALWAYS), c);
        if (status != "ok")
            break;
        rpma::check(c.conn.read(c.memory.mr, 0, c.remote, 0, SIZE, ALWAYS));
        status = outcome_of(c, IBV_WR_RDMA_WRITE, {sge_of(c, SIZE - PART, PART)}, SIZE,
                            IBV_SEND_FENCE, 2);
        stale +=
            session.peek(SIZE, PART) == std::string(PART, static_cast<char>('a' + i)) ? 0 : 1;
    }
    session.close(c);
    return {{"status", status}, {"data of the read", yes_or_no(stale == 0)}};
}

// librpma refuses such a read on devices that report one SGE for reads.
Results scattered_read(Session &session) {
    std::unique_ptr<Connection> made;
    try {
        made = session.open({{"sge", 2}});
    } catch (const rpma::error &) { // the device has queue pairs with one SGE
        return {};
    }
    Connection &c = *made;
    session.poke(0, "abcdefgh");
    const std::string status =
        outcome_of(c, IBV_WR_RDMA_READ, {sge_of(c, 64, 4), sge_of(c, 128, 4)}, 0);
    const bool is_first = std::memcmp(c.memory.at(64), "abcd", 4) == 0,
               is_second = std::memcmp(c.memory.at(128), "efgh", 4) == 0;
    Results found = {{"status", status}};
    if (status == "ok")
        found.emplace_back("data", is_first && is_second ? "both"
                                   : is_first            ? "first"
                                                         : "none");
    session.close(c);
    return found;
}

// Returns true if the event arrives in time.
bool has_event(ibv_context *context, ibv_event_type type) {
    pollfd descriptor = {context->async_fd, POLLIN, 0};
    const Clock clock;
    do {
        ibv_async_event event{};
        if (poll(&descriptor, 1, 0) != 1 || ibv_get_async_event(context, &event) != 0)
            continue;
        ibv_ack_async_event(&event);
        if (event.event_type == type)
            return true;
    } while (clock.wait(1));
    return false;
}

// Asynchronous events that need no failure.
Results events(Session &session) {
    std::unique_ptr<Connection> made;
    try {
        made = session.open({{"srq", true}, {"receives", 4}});
    } catch (const rpma::error &) { // the device has no shared receive queue
        return {};
    }
    ibv_context *const context = session.peer.get_ibv_pd()->context;
    Results found;
    try {
        made->srq.set_limit(3);
        for (unsigned i = 0; i < 2; i++)
            (void)session.ask({{"do", "send"}, {"number", made->number}});
        (void)made->take_received(2);
        found.emplace_back("limit of a shared receive queue",
                           yes_or_no(has_event(context, IBV_EVENT_SRQ_LIMIT_REACHED)));
    } catch (const rpma::error &error) {
        found.emplace_back("limit of a shared receive queue",
                           code_name(static_cast<rpma::status>(error.code().value())));
    }
    session.close(*made);
    found.emplace_back("last receive of a queue pair",
                       yes_or_no(has_event(context, IBV_EVENT_QP_LAST_WQE_REACHED)));
    return found;
}

// Memory that the device reads and writes without pinning it, if it can.
Results on_demand_paging(Session &session) {
    constexpr size_t SIZE = 16384;
    const ibv_context *const context = session.peer.get_ibv_pd()->context;
    ibv_device_attr_ex all{};
    if (ibv_query_device_ex(const_cast<ibv_context *>(context), nullptr, &all) != 0 ||
        (all.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_WRITE) == 0)
        return {};
    Results found;
    const auto made = session.open();
    Connection &c = *made;
    auto *const memory = static_cast<char *>(
        mmap(nullptr, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED)
        return {{"memory", "none"}};
    {
        const Owned<ibv_mr, ibv_dereg_mr> mr(
            ibv_reg_mr(session.peer.get_ibv_pd(), memory, SIZE,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
        found.emplace_back("registered", yes_or_no(mr != nullptr));
        const auto post = [&](ibv_wr_opcode opcode) {
            return outcome_of(c, opcode,
                              {{reinterpret_cast<uintptr_t>(memory), SIZE, mr->lkey}}, 0);
        };
        if (mr) {
            session.poke(0, std::string(64, 'n'));
            found.emplace_back("write of pages without content", post(IBV_WR_RDMA_WRITE));
            found.emplace_back("write of pages without content, data",
                               yes_or_no(session.peek(0, 64) == std::string(64, '\0')));
            std::memset(memory, 'o', SIZE);
            found.emplace_back("write of other pages", post(IBV_WR_RDMA_WRITE));
            (void)madvise(memory, SIZE, MADV_DONTNEED); // the device must forget the old pages
            std::memset(memory, 'p', SIZE);
            found.emplace_back("write of replaced pages", post(IBV_WR_RDMA_WRITE));
            found.emplace_back("write of replaced pages, data",
                               yes_or_no(session.peek(0, 64) == std::string(64, 'p')));
            (void)madvise(memory, SIZE, MADV_DONTNEED);
            session.poke(0, std::string(64, 'q'));
            found.emplace_back("read into replaced pages", post(IBV_WR_RDMA_READ));
            found.emplace_back("read into replaced pages, data",
                               yes_or_no(std::string(memory, 64) == std::string(64, 'q')));
        }
    }
    (void)munmap(memory, SIZE);
    session.close(c);
    return found;
}

} // namespace

const std::vector<Question> &verbs_questions() {
    static const std::vector<Question> ALL = {{"fenced write", fenced},
                                              {"scattered read", scattered_read},
                                              {"asynchronous event", events},
                                              {"on-demand paging", on_demand_paging}};
    return ALL;
}
