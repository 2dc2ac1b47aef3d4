// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// verbs.cc -- the calls of libibverbs and librdmacm. Each call that another program or device
// can observe is a preemption point.

#include "simulation.hh"

#include "protocol/protocol_cm.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <netdb.h>

namespace {

// The memory of a program.
class ProcessMemory : public sim::Program {
  public:
    explicit ProcessMemory(Process &process) : process_(process) {}
    bool read(uint64_t address, void *to, size_t length) override {
        memcpy(to, reinterpret_cast<const void *>(address), length);
        return true;
    }
    bool write(uint64_t address, const void *from, size_t length, uint32_t writer) override {
        return simulation.network.write(process_, address, from, length, writer);
    }
    int pin(const sim::Region &) override { return 0; }
    void persist(uint64_t address, size_t length, uint32_t writer) override {
        const char *begin = reinterpret_cast<const char *>(address);
        process_.machine->memory.flush(writer, begin, begin + length);
    }
    bool is_persistent(uint64_t address, size_t) override {
        return process_.machine->memory.contains(reinterpret_cast<const void *>(address));
    }

  private:
    Process &process_;
};

template <typename T> const T &as(const rdma_sim_message &message) {
    return *static_cast<const T *>(message.request);
}

uint32_t op_of(const rdma_sim_message &message) {
    return *static_cast<const uint32_t *>(message.request);
}

// Excludes other queries, and the creation of objects that no other program can use yet.
bool is_preemption_point(uint32_t op) {
    switch (op) {
    case sim::OP_QUERY_PORT:
    case sim::OP_REG_MR:
    case sim::OP_REQ_NOTIFY:
    case sim::OP_CREATE_QP:
    case sim::OP_MODIFY_QP:
    case sim::OP_POST_SEND:
    case sim::OP_POST_RECV:
    case sim::OP_DESTROY:
    case sim::OP_CM_DESTROY:
    case sim::OP_CM_BIND:
    case sim::OP_CM_RESOLVE_ADDR:
    case sim::OP_CM_LISTEN:
    case sim::OP_CM_CONNECT:
    case sim::OP_CM_ACCEPT:
    case sim::OP_CM_REJECT:
    case sim::OP_CM_DISCONNECT:
        return true;
    default:
        return false;
    }
}

// A program cannot distinguish the completions of two QPs with the same number.
void check_number(const sim::Qp &qp) {
    for (sim::Ring *const ring : {qp.send_cq->ring, qp.recv_cq->ring})
        for (uint32_t i = ring->taken; i != ring->added; i++)
            if (ring->first()[i % ring->entries].wc.qp_num == qp.number)
                simulation.fail(
                    "creates a queue pair with the number of one that has unread completions");
}

bool uses(const sim::Qp &qp, uint32_t key) {
    const auto has_key = [key](const auto &queued) {
        return std::ranges::any_of(
            queued.sges, [key](const ibv_sge &sge) { return sge.length && sge.lkey == key; });
    };
    return std::ranges::any_of(qp.sends, has_key) || std::ranges::any_of(qp.receives, has_key);
}

} // namespace

void Network::begin(unsigned machines, bool has_native_operations) {
    static sim_profile profile = *sim_find_profile("rxe");
    profile.rounding = SIM_NOT_ROUNDED; // to detect each post to a full queue
    profile.has_native_flush = profile.has_native_atomic_write = has_native_operations;
    sim::Options options;
    options.hosts = machines;
    options.profile = &profile;
    options.platform = has_native_operations ? SIM_CPU_FLUSH : SIM_FLUSH_ONLY;
    options.reuses_qp_numbers = true;
    options.caches_neighbours = false;
    options.scheduler = this;
    descriptors_.clear(); // of the previous schedule
    fabric_.reset();
    places_.clear();
    links.clear();
    open_links.clear();
    fabric_ = std::make_unique<sim::Fabric>(*this, options);
}

Network::Place *Network::place_of(uint32_t handle) {
    const auto found = places_.find(handle);
    return found == places_.end() ? nullptr : &found->second;
}

// Returns the side of the running program whose QP has this number, or NULL.
End *Network::end_of_number(uint32_t qp_num) {
    for (const uint16_t i : open_links)
        for (int side = 0; side < 2; side++)
            if (const sim::Qp *const qp = links[i]->ends[side].qp;
                qp && qp->number == qp_num && links[i]->ends[side].owner == simulation.current)
                return &links[i]->ends[side];
    return nullptr;
}

void Network::open_session(Process &process) {
    process.caller.program = std::make_shared<ProcessMemory>(process);
    sim::Hello hello{};
    hello.host = host_of(*process.machine);
    sim::Reply reply;
    if (fabric_->call(process.caller, &hello, sizeof(hello), reply))
        simulation.fail("not simulated: the fabric refuses a program");
}

int Network::call(rdma_sim_message &message) {
    Process &self = *simulation.current;
    if (is_preemption_point(op_of(message)))
        simulation.preemption_point();
    if (!self.caller.session)
        open_session(self);
    before(message);
    static std::vector<std::byte> request; // static, like the reply, to reuse its memory
    static sim::Reply reply;
    const auto *const first = static_cast<const std::byte *>(message.request);
    const auto *const more = static_cast<const std::byte *>(message.more);
    request.assign(first, first + message.request_size);
    if (message.more_size > 0)
        request.insert(request.end(), more, more + message.more_size);
    reply.bytes.clear();
    reply.descriptor = -1;
    int error = 0;
    if (!intercepts(message, reply))
        error = fabric_->call(self.caller, request.data(), request.size(), reply);
    message.fd = reply.descriptor;
    message.length = std::min(message.reply_size, reply.bytes.size());
    if (message.length > 0)
        memcpy(message.reply, reply.bytes.data(), message.length);
    after(self, message, error);
    return error;
}

// ---- before a call

void Network::before(const rdma_sim_message &message) {
    switch (op_of(message)) {
    case sim::OP_POST_SEND:
        if (const sim::Qp *const qp = fabric_->find<sim::Qp>(as<sim::PostSend>(message).qp);
            qp && qp->sends.empty() && qp->send_cq->ring->added == qp->send_cq->ring->taken)
            if (End *const end = end_of_number(qp->number))
                end->posted_at = simulation.now;
        break;
    case sim::OP_DESTROY:
        before_destroy(as<sim::Destroy>(message));
        break;
    default:
        break;
    }
}

void Network::before_destroy(const sim::Destroy &request) {
    const sim::Mr *const mr = fabric_->find<sim::Mr>(request.handle);
    if (!mr || mr->session != simulation.current->caller.session)
        return;
    for (const auto &[handle, object] : fabric_->objects())
        if (object->kind == sim::Object::QP && object->session == mr->session &&
            uses(static_cast<const sim::Qp &>(*object), mr->key))
            simulation.fail("deregisters a region that an operation or a receive still uses");
}

// Returns true if the fabric keeps a QP that its program deletes, for requests in flight.
bool Network::intercepts(const rdma_sim_message &message, sim::Reply &reply) {
    if (op_of(message) != sim::OP_DESTROY)
        return false;
    const sim::Qp *const qp = fabric_->find<sim::Qp>(as<sim::Destroy>(message).handle);
    if (!qp || qp->session != simulation.current->caller.session)
        return false;
    Place *const place = place_of(qp->handle);
    reply.as<sim::Destroy::Reply>().async_events = qp->async_events;
    return place && end_queue_pair(*place->link, place->side);
}

// ---- after a call

void Network::after(Process &self, const rdma_sim_message &message, int error) {
    const uint32_t op = op_of(message);
    if (op == sim::OP_CM_ACCEPT)
        return after_accept(self, as<sim::CmAccept>(message), error);
    if (error)
        return;
    if (op == sim::OP_CREATE_QP)
        return check_number(
            *fabric_->find<sim::Qp>(static_cast<sim::CreateQp::Reply *>(message.reply)->qp));
    if (op == sim::OP_CM_RESOLVE_ADDR)
        return after_resolve(self, as<sim::CmResolveAddr>(message));
    Place *const place = op == sim::OP_CM_CONNECT || op == sim::OP_CM_DESTROY
                             ? place_of(as<sim::CmDestroy>(message).id)
                             : nullptr;
    if (!place)
        return;
    Link &link = *place->link;
    if (op == sim::OP_CM_DESTROY) {
        link.ends[place->side].id = 0;
        return;
    }
    sim::Qp *const qp =
        fabric_->find_qp(*fabric_->device(host_of(*self.machine), device_of(*self.machine)),
                         as<sim::CmConnect>(message).param.qp_num);
    if (qp) {
        link.ends[0].qp = qp;
        places_[qp->handle] = {&link, 0};
    }
    if (link.timeout_ms > simulation.configuration->oracle->resolve_ms &&
        !simulation.configuration->first_client)
        simulation.fail("uses too long a time limit to resolve a server");
}

void Network::after_resolve(Process &self, const sim::CmResolveAddr &request) {
    const unsigned host = ntohl(request.destination.v4.sin_addr.s_addr) & 0xff;
    auto link = std::make_unique<Link>();
    link->number = static_cast<Writer>(links.size() + 1);
    link->machines[0] = self.machine;
    link->machines[1] = simulation.machines.at(host - 1).get();
    link->timeout_ms = static_cast<int>(request.timeout_ms);
    link->ends[0].owner = &self;
    link->ends[0].id = request.id;
    places_[request.id] = {link.get(), 0};
    open_links.push_back(static_cast<uint16_t>(links.size()));
    links.push_back(std::move(link));
}

void Network::after_accept(Process &self, const sim::CmAccept &request, int error) {
    Place *const place = place_of(request.id);
    if (!place)
        return;
    End &end = place->link->ends[place->side];
    if (!request.param.valid) {
        end.established |= !error;
        return;
    }
    self.has_unreported_disconnect |= error != 0;
    sim::Qp *const qp = error ? nullptr
                              : fabric_->find_qp(*fabric_->device(host_of(*self.machine),
                                                                  device_of(*self.machine)),
                                                 request.param.qp_num);
    if (!qp)
        return;
    end.qp = qp;
    places_[qp->handle] = {place->link, 1};
}

void Network::after_event(Process &self, const sim::Channel &channel,
                          const sim::TakeEvent::Reply &event, const void *data) {
    if (channel.purpose != sim::Channel::CONNECTIONS)
        return;
    const auto &taken = *static_cast<const sim::CmEvent *>(data);
    Place *const place = place_of(taken.id);
    if (!place || event.type == RDMA_CM_EVENT_ADDR_CHANGE)
        return;
    End &end = place->link->ends[place->side];
    end.received_at = simulation.now;
    switch (event.type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        end.owner = &self;
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        end.established = true;
        break;
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        end.ended = true;
        break;
    default:
        break;
    }
}

// ---- waiting

int Network::take_event(int fd, uint32_t channel, sim::TakeEvent::Reply &event, void *data,
                        size_t size) {
    if (!simulation.wait_for(fd)) {
        errno = EAGAIN;
        return -1;
    }
    sim::TakeEvent request{};
    request.channel = channel;
    sim::Reply reply;
    if (const int error =
            fabric_->call(simulation.current->caller, &request, sizeof(request), reply)) {
        errno = error;
        return -1;
    }
    event = reply.as<sim::TakeEvent::Reply>();
    const size_t rest = reply.bytes.size() - sizeof(event);
    if (data && rest > 0)
        memcpy(data, reply.bytes.data() + sizeof(event), std::min(rest, size));
    after_event(*simulation.current, *fabric_->find<sim::Channel>(channel), event,
                reply.bytes.data() + sizeof(event));
    return 0;
}

// A poll of an empty CQ is no preemption point, because it has no effect.
void Network::polls(const sim::Ring &ring) {
    if (ring.overrun)
        simulation.fail("a completion queue overruns");
    if (ring.added != ring.taken)
        simulation.preemption_point();
}

void Network::polled(const ibv_wc *wc, int count) {
    for (int i = 0; i < count; i++) {
        End *const end = wc[i].status == IBV_WC_SUCCESS ? end_of_number(wc[i].qp_num) : nullptr;
        if (end)
            end->received_at = simulation.now;
    }
}

// ---- the environment of the fabric

int Network::open_channel(uint32_t channel) {
    return descriptors_[channel] = simulation.open_descriptor(Descriptor::CHANNEL);
}

void Network::close_channel(uint32_t channel) {
    descriptors_.erase(channel);
}

void Network::raise(uint32_t channel) {
    if (const auto found = descriptors_.find(channel); found != descriptors_.end())
        simulation.descriptors[static_cast<size_t>(found->second - FIRST_DESCRIPTOR)].raised =
            true;
}

void Network::lower(uint32_t channel) {
    if (const auto found = descriptors_.find(channel); found != descriptors_.end())
        simulation.descriptors[static_cast<size_t>(found->second - FIRST_DESCRIPTOR)].raised =
            false;
}

sim::Ring *Network::open_ring(uint32_t, size_t bytes, sim::RingPlace &place, int &fd) {
    place = {0, bytes, 0};
    auto *const ring = static_cast<sim::Ring *>(calloc(1, bytes));
    fd = simulation.open_descriptor(Descriptor::RING);
    simulation.descriptors.back().ring = ring;
    return ring;
}

void Network::close_ring(sim::Ring *ring, size_t) {
    free(ring);
}

// ---- exported to the programs: the part of libibverbs.so.1 that calls the fabric

extern "C" {

uint64_t rdma_sim_place() {
    return 0; // each program has libraries of its own
}

int rdma_sim_call(rdma_sim_message *message) {
    const int before = errno, error = simulation.network.call(*message);
    errno = before;
    return error;
}

bool rdma_sim_post(const rdma_sim_message *, uint32_t, uint32_t) {
    return false;
}

int rdma_sim_hold(int) {
    return 0;
}

// A program has no other thread that acknowledges the event.
void rdma_sim_wait_for_ack(pthread_cond_t *, pthread_mutex_t *, const char *function) {
    simulation.fail("blocks for ever in %s(), with an unacknowledged event", function);
}

int rdma_sim_take_event(int fd, uint32_t channel, sim::TakeEvent::Reply *event, void *data,
                        size_t size, const char *) {
    return simulation.network.take_event(fd, channel, *event, data, size);
}

void rdma_sim_polls(const sim::Ring *ring) {
    simulation.network.polls(*ring);
}

void rdma_sim_polled(const ibv_wc *wc, int count) {
    simulation.network.polled(wc, count);
}

} // extern "C"
