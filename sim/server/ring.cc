// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// ring.cc -- requests in memory that a process shares with the fabric. It may be wrong or
// hostile: see protocol/ring.hh.

#include "server.hh"

#include "../model/resp.hh"

#include <cerrno>
#include <climits>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace sim {

// Of one client, before the others have their turn.
static constexpr unsigned REQUESTS_OF_TURN = 64;

// Without a ring, the process sends each request on its socket.
int Server::open_ring(int fd, Client &client, Reply &reply) {
    if (holds_ || client.ring || !client.caller.session)
        return EOPNOTSUPP;
    int memory;
    auto *const ring = static_cast<RequestRing *>(
        map_shared("rdma-sim-requests", sizeof(RequestRing), memory));
    if (!ring)
        return ENOMEM;
    const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell < 0) {
        munmap(ring, sizeof(*ring));
        close(memory);
        return ENOMEM;
    }
    ring->is_asleep = 1;
    ring->needs_replies = needs_replies_;
    client.ring = ring;
    client.bell = bell;
    // Edge-triggered: step() returns after each write, although the count is never read.
    watch(epoll_, bell, EPOLLIN | EPOLLET, RING | static_cast<uint64_t>(fd));
    reply.descriptor = memory;
    reply.closes_descriptor = true;
    reply.bell = bell;
    return 0;
}

// The memory of the queue pairs' credits ends here: children of the process may still use them.
void Server::close_ring(Client &client) {
    if (!client.ring)
        return;
    for (const uint32_t queue : client.credits)
        if (Qp *const qp = queue ? fabric_.find<Qp>(queue) : nullptr)
            qp->credit = nullptr;
    __atomic_store_n(&client.ring->is_closed, 1, __ATOMIC_SEQ_CST);
    (void)futex(&client.ring->consumed, FUTEX_WAKE, INT_MAX, nullptr);
    munmap(client.ring, sizeof(*client.ring));
    close(client.bell);
    client.ring = nullptr;
}

void Server::add_credit(Client &client, uint32_t handle) {
    client.credits.resize(RequestRing::CREDITS);
    uint32_t &queue = client.credits[handle % RequestRing::CREDITS];
    Qp *const qp = fabric_.find<Qp>(handle);
    if (!qp || (queue && fabric_.find<Qp>(queue)))
        return; // an older queue pair has the place
    queue = handle;
    qp->credit = &client.ring->credits[handle % RequestRing::CREDITS];
    *qp->credit = {handle, 0};
}

// A fault can refuse a post only with a reply.
void Server::require_replies() {
    if (fabric_.needs_replies() == needs_replies_)
        return;
    needs_replies_ = !needs_replies_;
    for (auto &[fd, client] : clients_)
        if (client.ring)
            __atomic_store_n(&client.ring->needs_replies, needs_replies_, __ATOMIC_RELAXED);
}

static void reply_in_ring(RequestRing &ring, int error, const Reply &reply) {
    ring.error = error;
    ring.is_on_socket = 0;
    ring.reply_length = error ? 0 : static_cast<uint32_t>(reply.bytes.size());
    if (ring.reply_length > 0)
        memcpy(ring.reply, reply.bytes.data(), ring.reply_length);
}

bool Server::serve_next(int fd, Client &client) {
    alignas(16) static std::byte request[RequestRing::MAX_REQUEST];
    RequestRing &ring = *client.ring;
    const uint32_t produced = __atomic_load_n(&ring.produced, __ATOMIC_ACQUIRE),
                   available = produced - client.consumed,
                   at = client.consumed % RequestRing::SIZE, rest = RequestRing::SIZE - at;
    if (available == 0)
        return false;
    RingEntry entry{};
    uint32_t size = sizeof(entry);
    if (available <= RequestRing::SIZE && available >= size && rest >= size)
        memcpy(&entry, ring.bytes + at, size);
    size = entry.length == 0 ? rest : RequestRing::bytes_of(entry.length);
    if (available > RequestRing::SIZE || entry.length > RequestRing::MAX_REQUEST ||
        size > available || size > rest) { // the process has overwritten the ring
        client.consumed = produced;
        shutdown(fd, SHUT_RDWR);
        return false;
    }
    Reply reply;
    uint32_t op = 0;
    memcpy(request, ring.bytes + at + sizeof(entry), entry.length);
    memcpy(&op, request, std::min<size_t>(entry.length, sizeof(op)));
    if (entry.length > 0) {
        client.caller.unanswered = op == OP_POST_SEND ? entry.units : 0;
        if (client.caller.unanswered == 0)
            end_burst();
        else if (PostSend post; entry.length >= sizeof(post)) {
            memcpy(&post, request, sizeof(post));
            client.last_queue = post.qp;
        }
        const int error =
            op == OP_HELLO ? EPROTO : fabric_.call(client.caller, request, entry.length, reply);
        if (op == OP_CREATE_QP && !error)
            add_credit(client, reply.as<CreateQp::Reply>().qp);
        if (client.caller.unanswered == 0 && (reply.descriptor >= 0 || error == ENFILE ||
                                              reply.bytes.size() > RequestRing::MAX_REPLY)) {
            reply_to(fd, error, reply);
            ring.is_on_socket = 1;
        } else if (client.caller.unanswered == 0) {
            reply_in_ring(ring, error, reply);
        }
        client.caller.unanswered = 0;
    }
    client.consumed += size;
    __atomic_store_n(&ring.consumed, client.consumed, __ATOMIC_SEQ_CST);
    // The process clears `waits`: it may wait for its next request already.
    if (__atomic_load_n(&ring.waits, __ATOMIC_SEQ_CST) &&
        has_reached(client.consumed, __atomic_load_n(&ring.target, __ATOMIC_RELAXED)))
        (void)futex(&ring.consumed, FUTEX_WAKE, 1, nullptr);
    return true;
}

// Executes what precedes a message on the socket, or the end of the process. A process that
// adds requests all the time does not delay others.
void Server::drain_ring(int fd, Client &client) {
    for (uint32_t left = RequestRing::SIZE / sizeof(RingEntry);
         left > 0 && client.ring && serve_next(fd, client); left--)
        ;
}

void Server::end_burst() {
    fabric_.end_burst();
    environment_.burst.end();
}

// Adds the data of the sends in a request. Returns false if no data may be read before the
// requests are executed: an operation that returns data may change it.
static bool add_data(const Fabric &fabric, const ProcessMemory &memory, Burst &burst,
                     const std::byte *bytes, size_t length) {
    PostSend request;
    size_t at = sizeof(request);
    if (length < at)
        return false;
    memcpy(&request, bytes, at);
    for (; request.count > 0; request.count--) {
        SendWr wr;
        if (length - at < sizeof(wr))
            return false;
        memcpy(&wr, bytes + at, sizeof(wr));
        at += sizeof(wr);
        const size_t inline_length = (wr.inline_length + size_t{7}) / 8 * 8;
        if (returns_data(wr.opcode) || (length - at) / sizeof(ibv_sge) < wr.num_sge ||
            length - at - wr.num_sge * sizeof(ibv_sge) < inline_length)
            return false;
        for (; wr.num_sge > 0; wr.num_sge--, at += sizeof(ibv_sge)) {
            ibv_sge sge;
            memcpy(&sge, bytes + at, sizeof(sge));
            const Mr *const mr = fabric.mr_of(sge.lkey);
            if (!mr || mr->program.get() != &memory ||
                Fabric::check_range(mr, sge, mr->pd, 0) ||
                (sge.length > 0 && !burst.add(mr->address + (sge.addr - mr->iova), sge.length)))
                return false;
        }
        at += inline_length;
    }
    return true;
}

// Reads the data of the sends without a reply that the ring has up to `end`. Returns false if
// there are fewer than two of them.
bool Server::read_ahead(const Client &client, uint32_t end) {
    const RequestRing &ring = *client.ring;
    unsigned count = 0;
    bool adds = true;
    for (uint32_t position = client.consumed; position != end;) {
        const uint32_t at = position % RequestRing::SIZE, rest = RequestRing::SIZE - at,
                       available = end - position;
        RingEntry entry;
        uint32_t op = 0;
        if (available > RequestRing::SIZE || available < sizeof(entry) || rest < sizeof(entry))
            break;
        memcpy(&entry, ring.bytes + at, sizeof(entry));
        const uint32_t size = entry.length == 0 ? rest : RequestRing::bytes_of(entry.length);
        if (entry.length > RequestRing::MAX_REQUEST || size > available || size > rest)
            break;
        if (entry.length >= sizeof(op))
            memcpy(&op, ring.bytes + at + sizeof(entry), sizeof(op));
        if (entry.length > 0 && (op != OP_POST_SEND || entry.units == 0))
            break;
        if (entry.length > 0) {
            count++;
            adds = adds && add_data(fabric_, *client.memory, environment_.burst,
                                    ring.bytes + at + sizeof(entry), entry.length);
        }
        position += size;
    }
    return count > 1;
}

unsigned Server::serve_burst(int fd, Client &client, unsigned limit) {
    const uint32_t end = __atomic_load_n(&client.ring->produced, __ATOMIC_ACQUIRE);
    if (read_ahead(client, end)) {
        environment_.burst.fetch(*client.memory);
        environment_.burst.begin();
        fabric_.begin_burst();
    }
    unsigned count = 0;
    while (count < limit && !has_reached(client.consumed, end) && serve_next(fd, client))
        count++;
    end_burst();
    return count;
}

// Returns true if the program does not wait for the completion of its last send: it has none,
// or follows others that the program has not polled.
bool Server::posts_ahead(Client &client) {
    const Qp *const qp = fabric_.find<Qp>(std::exchange(client.last_queue, 0));
    if (!qp || !qp->send_cq)
        return false;
    const Cq &cq = *qp->send_cq;
    return std::exchange(client.last_added, cq.added) == cq.added || cq.added - cq.taken() > 1;
}

// Waits a moment for the next request. A program that posts and polls in turn makes it within a
// microsecond, and then neither side needs a system call. After it did not several times, it is
// waited for only now and then.
static bool is_next_soon(const RequestRing &ring, uint32_t consumed, unsigned &misses) {
    constexpr unsigned PAUSES = 64, MISSES = 4, PERIOD = 64;
    if (misses >= MISSES && misses++ % PERIOD != 0)
        return false;
    for (unsigned i = 0; i < PAUSES; i++) {
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
        if (__atomic_load_n(&ring.produced, __ATOMIC_RELAXED) != consumed) {
            misses = 0;
            return true;
        }
    }
    misses++;
    return false;
}

void Server::serve_ring(int fd) {
    const auto found = clients_.find(fd);
    if (found == clients_.end() || !found->second.ring)
        return;
    Client &client = found->second;
    __atomic_store_n(&client.ring->is_asleep, 0, __ATOMIC_RELAXED);
    for (unsigned count = 0; count < REQUESTS_OF_TURN; count++) {
        if (const unsigned served = serve_burst(fd, client, REQUESTS_OF_TURN - count)) {
            count += served - 1;
            // Until its queue is full, or it waits, the program is faster without a wake-up of
            // the fabric for each post.
            if (posts_ahead(client))
                sched_yield();
            continue;
        }
        if (is_next_soon(*client.ring, client.consumed, client.misses))
            continue;
        // A request that the process adds before it reads `is_asleep` is found here.
        __atomic_store_n(&client.ring->is_asleep, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&client.ring->produced, __ATOMIC_SEQ_CST) == client.consumed)
            return;
        __atomic_store_n(&client.ring->is_asleep, 0, __ATOMIC_RELAXED);
    }
    // The rest in the next step(), for which descriptor() must be readable.
    const uint64_t one = 1;
    (void)!write(client.bell, &one, sizeof(one));
}

} // namespace sim
