// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// objects.cc -- limits and deletion of all objects; channels and address handles.

#include "qp_state.hh"
#include "verbs.hh"
#include "word_order.hh"

#include <cerrno>
#include <climits>

namespace sim {

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
    const bool is_roce = pd->context->device->profile->transport == SIM_ROCE;
    if (is_roce && !request.attr.is_global)
        return EINVAL;
    int error = pd->context->device->check_path(request.attr);
    if (error)
        return error;
    Ah *const made = create<Ah>(*pd->context->device, error);
    if (!made)
        return error;
    made->pd = pd;
    made->attr = request.attr;
    // core/verbs.c, ib_resolve_unicast_gid_dmac(): the hop limit is that of the route, by
    // default net.ipv4.ip_default_ttl.
    if (is_roce && !sim_is_multicast_gid(&request.attr.grh.dgid))
        made->attr.grh.hop_limit = 64;
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
