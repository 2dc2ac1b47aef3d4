// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// fabric.cc -- hosts and links, time, events, the lifetime of objects, and faults.

#include "comp.hh"
#include "qp_state.hh"
#include "resp.hh"
#include "verbs.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <utility>

namespace sim {

namespace {

ibv_gid gid_of_address(const CmAddress &address) {
    ibv_gid gid{};
    if (address.any.sa_family == AF_INET6) {
        memcpy(gid.raw, &address.v6.sin6_addr, sizeof(gid));
        return gid;
    }
    gid.raw[10] = gid.raw[11] = 0xff;
    memcpy(gid.raw + 12, &address.v4.sin_addr, sizeof(address.v4.sin_addr));
    return gid;
}

// The default GID: the prefix fe80:: of the subnet and of link-local addresses, and the GUID.
ibv_gid gid_of_guid(uint64_t guid) {
    ibv_gid gid{};
    gid.raw[0] = 0xfe;
    gid.raw[1] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        gid.raw[8 + i] = static_cast<uint8_t>(guid >> (56 - 8 * i));
    return gid;
}

std::unique_ptr<Device> make_device(Host &host, unsigned number, const sim_profile &profile) {
    auto made = std::make_unique<Device>();
    made->host = &host;
    made->profile = &profile;
    made->index = static_cast<unsigned>(host.devices.size());
    made->number = number;
    made->name = profile.prefix + std::to_string(number);
    made->guid = 0x0277'00ff'fe00'0000 | static_cast<uint64_t>(host.number) << 8 | made->index;
    made->lid = static_cast<uint16_t>(host.number * 16 + made->index + 1);
    made->gids.push_back(gid_of_guid(made->guid));
    if (profile.transport != SIM_INFINIBAND)
        for (const int family : {AF_INET, AF_INET6})
            made->gids.push_back(gid_of_address(Cm::address_of(*made, family)));
    return made;
}

std::pair<uint64_t, uint64_t> key_of(const ibv_gid &gid) {
    return {gid.global.subnet_prefix, gid.global.interface_id};
}

} // namespace

// The address from which include/net/addrconf.h, addrconf_addr_eui48(), makes the GUID.
std::array<uint8_t, 6> Device::link_address() const {
    std::array<uint8_t, 6> address;
    for (unsigned byte = 0; byte < 3; byte++) {
        address[byte] = static_cast<uint8_t>(guid >> (56 - 8 * byte));
        address[byte + 3] = static_cast<uint8_t>(guid >> (16 - 8 * byte));
    }
    address[0] ^= 2;
    return address;
}

// Linux 7.3, drivers/infiniband/sw/siw/siw_verbs.c, siw_query_gid(), and the other drivers of
// iWARP: the link address
ibv_gid Device::reported_gid(unsigned i) const {
    if (profile->transport != SIM_IWARP)
        return gids[i];
    ibv_gid gid{};
    std::ranges::copy(link_address(), gid.raw);
    return gid;
}

Fabric::Fabric(Environment &its_environment, const Options &options)
    : environment(its_environment), options_(options),
      scheduler_(options.scheduler ? options.scheduler : &no_choices_),
      generator_(options.seed), cm_(*this) {
    for (unsigned number = 1; number <= options.hosts; number++) {
        const auto other = options.of_host.find(number);
        const sim_profile &profile =
            *(other == options.of_host.end() ? options.profile : other->second);
        auto host = std::make_unique<Host>();
        host->number = number;
        add_device(*host, 0, profile);
        hosts_.push_back(std::move(host));
    }
}

Fabric::~Fabric() {
    between_steps_ = nullptr; // a destructor may not throw
    while (!sessions.empty())
        end_session(*sessions.begin()->second);
}

std::optional<sim_platform> find_platform(std::string_view name) {
    for (unsigned i = 0; i < SIM_PLATFORMS; i++)
        if (name == sim_platform_names[i])
            return static_cast<sim_platform>(i);
    return std::nullopt;
}

int Fabric::call(Caller &caller, const void *request, size_t length, Reply &reply) {
    uint32_t op = 0;
    if (length < sizeof(op))
        return EPROTO;
    memcpy(&op, request, sizeof(op));
    if (!caller.session && op != OP_HELLO && !is_from_system(op))
        return EPROTO;
    caller_ = &caller;
    if (before_call_ && caller.session && caller.unanswered == 0 &&
        !before_call_(caller, {static_cast<const std::byte *>(request), length}))
        return ESRCH;
    if (!failures_.empty() && caller.session && caller.unanswered == 0)
        if (const int failure = fail_by_fault(caller, op))
            return failure;
    if (op >= OP_CM_FIRST && op <= OP_CM_LAST)
        return cm_.call(caller, request, length, reply);
    int error;
    try {
        error = Verbs(*this, caller, request, length, reply).call(op);
    } catch (const ProgramEnded &) {
        error = ESRCH; // no process receives the reply
    }
    advance(now_);
    return error;
}

// ---- bursts --------------------------------------------------------------------------------

static void store_added(const Cq &cq) {
    __atomic_store_n(&cq.ring->added, cq.added, __ATOMIC_RELEASE);
}

void Fabric::publish(Cq &cq) {
    if (!is_burst_)
        return store_added(cq);
    if (std::exchange(cq.is_published, false))
        unpublished_.push_back(&cq);
}

// A program that sees a completion sees the data.
void Fabric::show_burst() {
    environment.write_collected();
    for (Cq *const cq : unpublished_) {
        cq->is_published = true;
        store_added(*cq);
    }
    unpublished_.clear();
}

// ---- time ----------------------------------------------------------------------------------

static uint64_t first_time(const auto &timers) {
    return timers.empty() ? UINT64_MAX : timers.begin()->first.first;
}

uint64_t Fabric::add(Timers &timers, uint64_t time, std::function<void()> action) {
    const uint64_t number = next_timer_++;
    timers.emplace(std::pair(time, number), std::move(action));
    timer_times_.emplace(number, time);
    return number;
}

uint64_t Fabric::at(uint64_t time, std::function<void()> action) {
    return add(timers_, time, std::move(action));
}

uint64_t Fabric::set_deadline(uint64_t time, std::function<void()> action) {
    return add(deadlines_, time, std::move(action));
}

void Fabric::cancel(uint64_t timer) {
    const auto found = timer_times_.find(timer);
    if (found == timer_times_.end())
        return;
    timers_.erase({found->second, timer});
    deadlines_.erase({found->second, timer});
    timer_times_.erase(found);
}

void Fabric::advance(uint64_t now) {
    while (!timers_.empty() || !deadlines_.empty()) {
        Timers &timers = next_timer() <= next_deadline() ? timers_ : deadlines_;
        if (first_time(timers) > now)
            break;
        const auto first = timers.extract(timers.begin());
        timer_times_.erase(first.key().second);
        now_ = std::max(now_, first.key().first);
        first.mapped()();
    }
    now_ = std::max(now_, now);
}

uint64_t Fabric::next_timer() const {
    return first_time(timers_);
}

uint64_t Fabric::next_deadline() const {
    return first_time(deadlines_);
}

// ---- events --------------------------------------------------------------------------------

Channel *Fabric::create_channel(Session *session, Channel::Purpose purpose, Reply &reply) {
    Channel *const channel = create<Channel>(session, purpose);
    channel->creator = caller_;
    reply.descriptor = environment.open_channel(channel->handle);
    if (reply.descriptor >= 0)
        return channel;
    discard(*channel);
    return nullptr;
}

void Fabric::push(Channel &channel, Event event) {
    if (is_burst_)
        show_burst();
    if (event.about)
        event.about->queued_events++;
    channel.queue.push_back(std::move(event));
    scheduler_->signaled(channel);
    if (!channel.raised)
        environment.raise(channel.handle);
    channel.raised = true;
}

// The descriptor is readable only if the queue is not empty, even if another thread took the
// byte.
bool Fabric::take(Channel &channel, Event &event) {
    if (channel.queue.empty())
        return false;
    event = std::move(channel.queue.front());
    channel.queue.pop_front();
    if (event.about)
        event.about->queued_events--;
    environment.lower(channel.handle);
    channel.raised = !channel.queue.empty();
    if (channel.raised)
        environment.raise(channel.handle);
    return true;
}

void Fabric::remove_events(Object &about) {
    if (about.queued_events == 0)
        return;
    about.queued_events = 0;
    const Context *const context = Verbs::context_of(about);
    Channel *const channels[] = {
        about.kind == Object::CM_ID ? static_cast<CmId &>(about).channel : nullptr,
        about.kind == Object::CM_MULTICAST ? static_cast<CmMulticast &>(about).id->channel
                                           : nullptr,
        about.kind == Object::CQ ? static_cast<Cq &>(about).channel : nullptr,
        context ? context->async : nullptr};
    for (Channel *const channel : channels) {
        if (!channel)
            continue;
        const size_t removed = std::erase_if(
            channel->queue, [&](const Event &event) { return event.about == &about; });
        if (removed == 0 || !channel->queue.empty())
            continue;
        environment.lower(channel->handle);
        channel->raised = false;
    }
}

void Fabric::raise_async(Object &about, ibv_event_type type) {
    Context *const context = Verbs::context_of(about);
    const bool is_context = &about == context;
    const bool is_raised = context->device->profile->events >> type & 1;
    if (!is_raised && type != IBV_EVENT_DEVICE_FATAL) // which Linux raises for a removed device
        return;
    push(*context->async,
         {is_context ? nullptr : &about, about.cookie, static_cast<uint32_t>(type), 1, {}});
}

// ---- objects -------------------------------------------------------------------------------

void Fabric::destroy(Object &object) {
    if (is_burst_)
        show_burst();
    Verbs::release(*this, object);
    remove_events(object);
    objects_.erase(object.handle);
}

void Fabric::destroy_all(const std::function<bool(const Object &)> &matches) {
    // Objects precede the resources that they use; a context destroys its asynchronous channel.
    static constexpr Object::Kind ORDER[] = {
        Object::CM_ID, Object::AH, Object::QP,   Object::SRQ,     Object::CQ,     Object::MW,
        Object::MR,    Object::PD, Object::XRCD, Object::CONTEXT, Object::CHANNEL};
    std::vector<uint32_t> ended[Object::KINDS];
    for (const auto &[handle, object] : objects_)
        if (matches(*object))
            ended[object->kind].push_back(handle);
    unsigned count = 0;
    for (const Object::Kind kind : ORDER)
        for (const uint32_t handle : ended[kind]) {
            if (const auto found = objects_.find(handle); found != objects_.end())
                destroy(*found->second);
            if (++count % OBJECTS_OF_STEP == 0 && between_steps_)
                between_steps_();
        }
}

// As the kernel does when the last copy of a descriptor is closed: the process itself has
// opened these devices and event channels.
void Fabric::end_process(const Caller &caller) {
    cm_.destroy_ids([&](const CmId &id) { return id.channel->creator == &caller; });
    destroy_all([&](const Object &object) {
        const Context *const context = Verbs::context_of(object);
        const Channel *const channel = context ? context->async
                                       : object.kind == Object::CHANNEL
                                           ? static_cast<const Channel *>(&object)
                                           : nullptr;
        return channel && channel->creator == &caller;
    });
}

void Fabric::end_session(Session &session) {
    cm_.destroy_ids([&](const CmId &id) { return id.session == &session; });
    destroy_all([&](const Object &object) { return object.session == &session; });
    sessions.erase(session.number);
}

// ---- multicast -----------------------------------------------------------------------------

const std::vector<Qp *> &Fabric::members_of(const ibv_gid &group) const {
    static const std::vector<Qp *> none;
    const auto found = groups_.find(key_of(group));
    return found == groups_.end() ? none : found->second;
}

// Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_attach_mcast(): a second time has
// no effect; sw/rxe/rxe_mcast.c, __rxe_init_mca().
int Fabric::attach(Qp &qp, const ibv_gid &group) {
    std::vector<Qp *> &members = groups_[key_of(group)];
    if (std::ranges::find(members, &qp) != members.end())
        return 0;
    const Device *const device = qp.context->device;
    const auto count = std::ranges::count_if(
        members, [device](const Qp *other) { return other->context->device == device; });
    if (count >= device->profile->attr.max_mcast_qp_attach)
        return ENOMEM;
    members.push_back(&qp);
    qp.groups.push_back(group);
    qp.users++; // uverbs_std_types_qp.c, uverbs_free_qp(): its destruction is refused
    return 0;
}

int Fabric::detach(Qp &qp, const ibv_gid &group) {
    const auto found = groups_.find(key_of(group));
    if (found == groups_.end() || std::erase(found->second, &qp) == 0)
        return EINVAL;
    if (found->second.empty())
        groups_.erase(found);
    std::erase_if(qp.groups, [&](const ibv_gid &gid) { return key_of(gid) == key_of(group); });
    qp.users--;
    return 0;
}

Device *Fabric::device_of(const ibv_gid &gid) {
    const auto [begin, end] = by_gid_.equal_range(key_of(gid));
    const auto found =
        std::find_if(begin, end, [](const auto &entry) { return !entry.second->removed; });
    return found == end ? nullptr : found->second;
}

void Fabric::add_device(Host &host, unsigned number, const sim_profile &profile) {
    host.devices.push_back(make_device(host, number, profile));
    for (const ibv_gid &gid : host.devices.back()->gids)
        by_gid_.emplace(key_of(gid), host.devices.back().get());
}

bool Fabric::reachable(const Device &device, const Device &other) const {
    for (const Device *const end : {&device, &other})
        if (!end->host->has_power || !end->port_is_up || end->removed)
            return false;
    return device.profile->transport == other.profile->transport &&
           !cut_.contains({device.host->number, other.host->number});
}

bool Fabric::reachable(unsigned from, unsigned to) const {
    for (const unsigned number : {from, to})
        if (const Host &end = *hosts_[number - 1];
            !end.has_power || !end.devices.back()->port_is_up)
            return false;
    return !cut_.contains({from, to});
}

} // namespace sim
