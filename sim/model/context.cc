// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// context.cc -- dispatch of requests; requests about devices and contexts.

#include "netlink.hh"
#include "verbs.hh"

#include <cerrno>

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

} // namespace sim
