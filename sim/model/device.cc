// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// device.cc -- requests about devices, and the simple objects.

#include "netlink.hh"
#include "qp_state.hh"
#include "verbs.hh"
#include "word_order.hh"

#include <cerrno>
#include <climits>

namespace sim {

template <class T, class R>
bool Verbs::decode(uint32_t op, int (Verbs::*execute)(const T &, R &), int &error) {
    T request;
    if (op != T::OP || length_ < sizeof(request))
        return false;
    memcpy(&request, request_, sizeof(request));
    R decoded{};
    error = (this->*execute)(request, decoded);
    if (error == 0 && reply_.bytes.size() < sizeof(decoded))
        reply_.bytes.resize(sizeof(decoded));
    if (error == 0)
        memcpy(reply_.bytes.data(), &decoded, sizeof(decoded));
    return true;
}

int Verbs::call(uint32_t op) {
    int error = EPROTO;
    // Executes the function whose request has this number.
    const auto execute = [&](auto... functions) {
        return (decode(op, functions, error) || ...);
    };
    execute(&Verbs::hello, &Verbs::device, &Verbs::open_context, &Verbs::query_device,
            &Verbs::query_port, &Verbs::query_gid, &Verbs::alloc_pd, &Verbs::reg_mr,
            &Verbs::rereg_mr, &Verbs::advise_mr, &Verbs::alloc_mw, &Verbs::create_channel,
            &Verbs::create_cq, &Verbs::resize_cq, &Verbs::req_notify, &Verbs::take_event,
            &Verbs::create_srq, &Verbs::modify_srq, &Verbs::query_srq, &Verbs::create_qp,
            &Verbs::modify_qp, &Verbs::query_qp, &Verbs::multicast, &Verbs::create_ah,
            &Verbs::post_send, &Verbs::post_recv, &Verbs::destroy, &Verbs::persist,
            &Verbs::read_counter, &Verbs::netlink, &Verbs::open_xrcd);
    return error;
}

int Verbs::hello(const Hello &request, Hello::Reply &reply) {
    Host *const host = fabric_.host(request.host);
    if (request.version != PROTOCOL_VERSION || caller_.session || !host)
        return EPROTO;
    auto &sessions = fabric_.sessions;
    const auto found = sessions.find(request.session);
    if (found != sessions.end()) {
        caller_.session = found->second.get();
    } else {
        auto session = std::make_unique<Session>();
        session->number = fabric_.next_session++;
        session->host = host;
        caller_.session = session.get();
        caller_.owns_session = true;
        sessions.emplace(session->number, std::move(session));
    }
    reply.session = caller_.session->number;
    reply.devices = static_cast<uint32_t>(caller_.session->host->devices.size());
    reply.needs_memory_thread = caller_.needs_memory_thread;
    reply.pid = static_cast<uint32_t>(caller_.pid);
    return 0;
}

int Verbs::device(const DeviceInfo &request, DeviceInfo::Reply &reply) {
    const Device *const found = fabric_.device(caller_.session->host->number, request.index);
    if (!found || found->removed)
        return ENODEV;
    const sim_profile &profile = *found->profile;
    const bool is_iwarp = profile.transport == SIM_IWARP;
    strncpy(reply.name, found->name.c_str(), sizeof(reply.name) - 1);
    strncpy(reply.driver, profile.driver, sizeof(reply.driver) - 1);
    strncpy(reply.profile, profile.name, sizeof(reply.profile) - 1);
    reply.node_guid = __builtin_bswap64(found->guid);
    reply.node_type = is_iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
    reply.transport_type = is_iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
    reply.index = found->index;
    reply.vectors = profile.vectors;
    for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD})
        reply.send_ops[type] = sim_send_ops(&profile, type);
    reply.has_create_flags = profile.has_create_flags;
    reply.gid_count = found->gid_count();
    reply.gid_entries = profile.gid_entries;
    reply.keeps_bad_wr = profile.keeps_bad_wr;
    reply.keeps_bad_recv = profile.keeps_bad_recv;
    reply.keeps_errno = profile.keeps_errno;
    reply.ignores_inline = profile.ignores_inline;
    reply.inline_by_flag = profile.inline_by_flag;
    reply.srq_recv_error = static_cast<uint32_t>(profile.srq_recv_error);
    reply.has_tag_matching = profile.has_tag_matching;
    reply.has_rt_values = profile.has_rt_values;
    const bool is_weak = fabric_.has(Weakness::FAILED_COMPLETION);
    reply.failed_send = is_weak ? profile.failed_send : SIM_WC_VALID;
    reply.failed_receive = is_weak ? profile.failed_receive : SIM_WC_VALID;
    reply.sent_length = profile.sent_length;
    reply.failed_length = profile.failed_length;
    reply.vendor_err = profile.vendor_err;
    reply.has_xrc = sim_has_xrc(&profile);
    return 0;
}

int Verbs::open_context(const OpenContext &request, OpenContext::Reply &reply) {
    Device *const found = fabric_.device(caller_.session->host->number, request.device);
    if (!found || found->removed)
        return ENODEV;
    Channel *const async = fabric_.create_channel(caller_.session, Channel::ASYNC, reply_);
    if (!async)
        return ENFILE;
    Context *const made = create<Context>();
    made->device = found;
    made->async = async;
    reply = {made->handle, async->handle};
    return 0;
}

int Verbs::query_device(const QueryDevice &request, ibv_device_attr_ex &reply) {
    const Context *const context = find<Context>(request.context);
    if (!context)
        return EINVAL;
    const sim_profile &profile = *context->device->profile;
    sim_describe_device(&profile, &reply);
    reply.orig_attr.node_guid = reply.orig_attr.sys_image_guid =
        __builtin_bswap64(context->device->guid);
    if (profile.cq_wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) {
        reply.completion_timestamp_mask = UINT64_MAX;
        reply.hca_core_clock = 1000000; // kHz: nanoseconds
    }
    return 0;
}

int Verbs::query_port(const QueryPort &request, ibv_port_attr &reply) {
    const Context *const context = find<Context>(request.context);
    if (!context || request.port != 1)
        return EINVAL;
    reply = Fabric::port_of(*context->device);
    return 0;
}

ibv_port_attr Fabric::port_of(const Device &device) {
    ibv_port_attr attr{};
    const bool is_infiniband = device.profile->transport == SIM_INFINIBAND;
    const bool is_up = device.port_is_up && !device.removed;
    attr.state = is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attr.phys_state = is_up ? 5 : 3; // LinkUp, Disabled
    attr.max_mtu = IBV_MTU_4096;
    attr.active_mtu = is_infiniband ? IBV_MTU_4096 : IBV_MTU_1024;
    attr.gid_tbl_len = static_cast<int>(device.profile->gid_entries);
    attr.max_msg_sz = 1U << 30;
    attr.pkey_tbl_len = 1;
    attr.lid = is_infiniband ? device.lid : 0;
    attr.sm_lid = is_infiniband ? 1 : 0;
    attr.max_vl_num = 1;
    attr.active_width = 2;  // 4X
    attr.active_speed = 32; // 25 Gbit/s for each lane
    attr.link_layer = is_infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    attr.port_cap_flags = is_infiniband ? 0 : 1 << 16; // IBV_PORT_CM_SUP
    return attr;
}

int Verbs::query_gid(const QueryGid &request, QueryGid::Reply &reply) {
    const Context *const context = find<Context>(request.context);
    if (!context || request.port != 1 || request.index >= context->device->profile->gid_entries)
        return EINVAL;
    if (request.index >= context->device->gid_count())
        return ENODATA;
    reply.gid = context->device->reported_gid(request.index);
    reply.type = context->device->profile->transport == SIM_ROCE;
    reply.ifindex = context->device->interface_index();
    return 0;
}

int Verbs::alloc_pd(const AllocPd &request, AllocPd::Reply &reply) {
    Context *const context = find<Context>(request.context);
    if (!context)
        return EINVAL;
    if (context->device->removed)
        return EIO;
    int error;
    Pd *const made = create<Pd>(*context->device, error);
    if (!made)
        return error;
    made->context = context;
    context->objects++;
    reply.pd = made->handle;
    return 0;
}

// Memory with on-demand paging was not pinned.
static void unpin(const Region &region) {
    if (!(region.access & IBV_ACCESS_ON_DEMAND))
        region.program->forget(region);
}

sim_memory Verbs::memory_of(const Mr &mr) const {
    if (!mr.program->is_persistent(mr.address, mr.length))
        return SIM_VOLATILE;
    return fabric_.options().has_fs_dax ? SIM_FS_DAX : SIM_DEVICE_DAX;
}

// Pins the memory only if the rest of the registration is valid. Only the second check takes
// the kind of the memory into account, which is known after pinning.
int Verbs::open_region(Mr &mr) {
    const sim_profile &profile = *mr.pd->context->device->profile;
    const bool is_on_demand = mr.access & IBV_ACCESS_ON_DEMAND;
    int error = sim_check_region(&profile, mr.access, mr.length, SIM_DEVICE_DAX);
    if (!error && mr.address + mr.length < mr.address)
        error = EINVAL;
    if (!error && !is_on_demand)
        error = mr.program->pin(mr);
    if (error)
        return error;
    const sim_memory memory = memory_of(mr);
    mr.is_persistent = memory != SIM_VOLATILE;
    error = sim_check_region(&profile, mr.access, mr.length, memory);
    if (error)
        unpin(mr);
    return error;
}

uint32_t Verbs::new_key() {
    uint32_t key;
    do
        key = (fabric_.next_key++ << 8) | static_cast<uint32_t>(fabric_.random(256));
    while (key == 0 || fabric_.keys.contains(key) || fabric_.mw_of(key));
    return key;
}

int Verbs::reg_mr(const RegMr &request, RegMr::Reply &reply) {
    Pd *const pd = find<Pd>(request.pd);
    if (!pd)
        return EINVAL;
    if (pd->context->device->removed)
        return EIO;
    int error;
    Mr *const made = create<Mr>(*pd->context->device, error);
    if (!made)
        return error;
    made->program = caller_.program;
    made->pd = pd;
    made->address = request.address;
    made->length = request.length;
    made->iova = request.iova;
    made->access = request.access;
    made->key = new_key(); // before pin(), which stores the region by its key
    error = open_region(*made);
    if (error) {
        fabric_.discard(*made);
        return error;
    }
    fabric_.keys.emplace(made->key, made);
    pd->users++;
    reply = {made->handle, made->key, made->key};
    return 0;
}

// Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_rereg_mr(). rdma-core 65,
// tests/test_mr.py expects that the keys stay valid; libibverbs/verbs.c, ibv_rereg_mr(): the
// remote address is the new address.
int Verbs::rereg_mr(const ReregMr &request, RegMr::Reply &reply) {
    Mr *const mr = find<Mr>(request.mr);
    Pd *const pd = request.flags & IBV_REREG_MR_CHANGE_PD ? find<Pd>(request.pd) : nullptr;
    if (!mr)
        return EINVAL;
    if (!mr->pd->context->device->profile->has_rereg_mr)
        return EOPNOTSUPP;
    if (request.flags == 0 || (!pd && (request.flags & IBV_REREG_MR_CHANGE_PD)))
        return EINVAL;
    const Region old = *mr;
    show_words(fabric_, old);
    unpin(old);
    if (pd)
        mr->pd = pd;
    if (request.flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->iova = mr->address = request.address;
        mr->length = request.length;
    }
    if (request.flags & IBV_REREG_MR_CHANGE_ACCESS)
        mr->access = request.access;
    const int error = open_region(*mr);
    if (error) {
        static_cast<Region &>(*mr) = old;
        if (!(old.access & IBV_ACCESS_ON_DEMAND))
            (void)mr->program->pin(*mr);
        return error;
    }
    old.pd->users--;
    mr->pd->users++;
    reply = {mr->handle, mr->key, mr->key};
    return 0;
}

// Only regions with on-demand paging accept advice: Linux 7.3,
// drivers/infiniband/hw/mlx5/odp.c, mlx5_ib_advise_mr_prefetch(); sw/rxe/rxe_odp.c,
// rxe_ib_advise_mr_prefetch(), which rdma-core has called since 59.
int Verbs::advise_mr(const AdviseMr &request, Empty &) {
    const Pd *const pd = find<Pd>(request.pd);
    if (!pd)
        return EINVAL;
    const sim_profile &profile = *pd->context->device->profile;
    if (!profile.has_odp)
        return EOPNOTSUPP;
    std::vector<ibv_sge> sges;
    size_t offset = sizeof(request);
    if (request.num_sge == 0 || !get_all(offset, request.num_sge, sges) ||
        request.advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ||
        (request.flags & ~static_cast<uint32_t>(IBV_ADVISE_MR_FLAG_FLUSH)))
        return EINVAL;
    for (const ibv_sge &sge : sges) {
        const Mr *const mr = fabric_.mr_of(sge.lkey);
        if (!mr || !(mr->access & IBV_ACCESS_ON_DEMAND))
            return profile.advise_error;
        const bool is_written = request.advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ||
                                profile.advises_writable_only;
        if (mr->pd != pd || (is_written && !(mr->access & IBV_ACCESS_LOCAL_WRITE)))
            return profile.advise_access_error;
        if (Fabric::check_range(mr, sge, pd, 0))
            return EFAULT;
    }
    return 0;
}

// Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_alloc_mw()
int Verbs::alloc_mw(const AllocMw &request, AllocMw::Reply &reply) {
    Pd *const pd = find<Pd>(request.pd);
    if (!pd)
        return EINVAL;
    if (!pd->context->device->profile->has_windows)
        return EOPNOTSUPP;
    if (request.type != IBV_MW_TYPE_1 && request.type != IBV_MW_TYPE_2)
        return EINVAL;
    int error;
    Mw *const made = create<Mw>(*pd->context->device, error);
    if (!made)
        return error;
    made->pd = pd;
    made->type = static_cast<ibv_mw_type>(request.type);
    made->key = new_key();
    fabric_.windows.emplace(made->key >> 8, made);
    pd->users++;
    reply = {made->handle, made->key};
    return 0;
}

int Verbs::create_channel(const CreateChannel &request, CreateChannel::Reply &reply) {
    Context *const context = find<Context>(request.context);
    Channel *const made =
        context ? fabric_.create_channel(caller_.session, Channel::COMPLETIONS, reply_)
                : nullptr;
    if (!made)
        return context ? ENFILE : EINVAL;
    made->context = context;
    context->objects++;
    reply.channel = made->handle;
    return 0;
}

int Verbs::create_ah(const CreateAh &request, CreateAh::Reply &reply) {
    Pd *const pd = find<Pd>(request.pd);
    if (!pd || request.attr.port_num != 1)
        return EINVAL;
    if (!pd->context->device->profile->has_ud)
        return EOPNOTSUPP;
    // Linux 7.3, drivers/infiniband/core/verbs.c, rdma_check_ah_attr(): Ethernet needs a GID.
    if (pd->context->device->profile->transport == SIM_ROCE && !request.attr.is_global)
        return EINVAL;
    int error;
    Ah *const made = create<Ah>(*pd->context->device, error);
    if (!made)
        return error;
    made->pd = pd;
    made->attr = request.attr;
    pd->users++;
    reply.ah = made->handle;
    return 0;
}

int Verbs::take_event(const TakeEvent &request, TakeEvent::Reply &reply) {
    Channel *const channel = find<Channel>(request.channel);
    Event event;
    if (!channel)
        return EINVAL;
    if (!fabric_.take(*channel, event))
        return EAGAIN;
    if (event.about && channel->purpose == Channel::COMPLETIONS)
        static_cast<Cq *>(event.about)->completion_events++;
    else if (event.about && channel->purpose == Channel::ASYNC)
        event.about->async_events++;
    else if (event.about)
        fabric_.cm().event_taken(event);
    reply = {event.cookie, event.type, event.port};
    reply_.bytes.resize(sizeof(reply));
    reply_.bytes.insert(reply_.bytes.end(), event.data.begin(), event.data.end());
    return 0;
}

int Verbs::destroy(const Destroy &request, Destroy::Reply &reply) {
    const auto found = fabric_.objects().find(request.handle);
    if (found == fabric_.objects().end() || found->second->session != caller_.session)
        return EINVAL;
    Object &object = *found->second;
    // Linux 7.3, drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_dereg_mr(), of a region with
    // windows
    if (object.users > 0)
        return object.kind == Object::MR ? EINVAL : EBUSY;
    if (object.kind == Object::CQ)
        reply.completion_events = static_cast<Cq &>(object).completion_events;
    reply.async_events = object.async_events;
    fabric_.destroy(object);
    return 0;
}

int Verbs::persist(const Persist &request, Empty &) {
    caller_.program->persist(request.address, request.length, 0);
    return 0;
}

int Verbs::read_counter(const ReadCounter &request, ReadCounter::Reply &reply) {
    const Device *const device = fabric_.device(request.host, request.device);
    if (!device || device->removed)
        return ENODEV;
    const auto is = [](const std::string &text, const auto &array) {
        return text.size() < sizeof(array) && memcmp(text.c_str(), array, text.size() + 1) == 0;
    };
    for (const DriverCounter &counter : counters_of(*device->profile))
        if (is(counter.group, request.group) && is(counter.name, request.name)) {
            fabric_.count_attempts();
            reply.value = fabric_.read_counter(*device, counter);
            return 0;
        }
    return ENOENT;
}

int Verbs::netlink(const Netlink &request, Netlink::Reply &reply) {
    std::vector<std::byte> messages;
    const int error =
        rdma_netlink(fabric_, request, {request_ + sizeof(request), length_ - sizeof(request)},
                     messages, reply.next);
    reply_.bytes.resize(sizeof(reply));
    reply_.bytes.insert(reply_.bytes.end(), messages.begin(), messages.end());
    return error;
}

int Verbs::check_count(const Device &device, Object::Kind kind) {
    const ibv_device_attr &attr = device.profile->attr;
    const int limit = kind == Object::PD    ? attr.max_pd
                      : kind == Object::MR  ? attr.max_mr
                      : kind == Object::CQ  ? attr.max_cq
                      : kind == Object::SRQ ? attr.max_srq
                      : kind == Object::QP  ? attr.max_qp
                      : kind == Object::AH  ? attr.max_ah
                      : attr.max_mw > 0     ? attr.max_mw
                                            : INT_MAX; // mlx4 reports none
    if (device.counts[kind] < limit)
        return 0;
    return kind == Object::MR ? ENOMEM : device.profile->excess_error;
}

Context *Verbs::context_of(const Object &object) {
    switch (object.kind) {
    case Object::CONTEXT:
        return const_cast<Context *>(static_cast<const Context *>(&object));
    case Object::CHANNEL:
        return static_cast<const Channel &>(object).context;
    case Object::PD:
        return static_cast<const Pd &>(object).context;
    case Object::MR:
        return static_cast<const Mr &>(object).pd->context;
    case Object::MW:
        return static_cast<const Mw &>(object).pd->context;
    case Object::CQ:
        return static_cast<const Cq &>(object).context;
    case Object::SRQ:
        return static_cast<const Srq &>(object).pd->context;
    case Object::XRCD:
        return static_cast<const Xrcd &>(object).context;
    case Object::QP:
        return static_cast<const Qp &>(object).context;
    case Object::AH:
        return static_cast<const Ah &>(object).pd->context;
    default:
        return nullptr;
    }
}

void Verbs::release(Fabric &fabric, Object &object) {
    switch (object.kind) {
    case Object::CONTEXT:
        if (static_cast<Context &>(object).objects > 0)
            fabric.destroy_all([&](const Object &other) {
                return &other != &object && context_of(other) == &object;
            });
        fabric.destroy(*static_cast<Context &>(object).async);
        break;
    case Object::CHANNEL:
        if (Context *const context = static_cast<Channel &>(object).context)
            context->objects--;
        fabric.environment.close_channel(object.handle);
        break;
    case Object::PD:
        static_cast<Pd &>(object).context->objects--;
        break;
    case Object::MR: {
        Mr &mr = static_cast<Mr &>(object);
        mr.pd->users--;
        show_words(fabric, mr);
        unpin(mr);
        fabric.keys.erase(mr.key);
        for (const auto &[index, mw] : fabric.windows)
            if (mw->mr == &mr)
                mw->mr = nullptr;
        break;
    }
    case Object::MW: {
        Mw &mw = static_cast<Mw &>(object);
        mw.pd->users--;
        mw.use(nullptr);
        fabric.windows.erase(mw.key >> 8);
        break;
    }
    case Object::CQ: {
        Cq &cq = static_cast<Cq &>(object);
        cq.context->objects--;
        if (cq.channel)
            cq.channel->users--;
        fabric.environment.close_ring(cq.ring, Ring::bytes(cq.entries));
        break;
    }
    case Object::SRQ: {
        const Srq &srq = static_cast<Srq &>(object);
        for (Object *const used :
             {static_cast<Object *>(srq.pd), static_cast<Object *>(srq.xrcd),
              static_cast<Object *>(srq.cq)})
            if (used)
                used->users--;
        break;
    }
    case Object::XRCD:
        static_cast<Xrcd &>(object).context->objects--;
        break;
    case Object::AH:
        static_cast<Ah &>(object).pd->users--;
        break;
    case Object::QP:
        release_qp(fabric, static_cast<Qp &>(object));
        break;
    default:
        break;
    }
}

} // namespace sim
