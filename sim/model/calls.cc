// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// calls.cc -- the functions of libibverbs and librdmacm by the requests that they make

#include "calls.hh"

#include "../protocol/protocol_cm.hh"

#include <algorithm>

namespace sim {

namespace {

constexpr bool CREATES = true, TRACED = true;

constexpr CallName CALLS[] = {
    {"ibv_open_device", OP_OPEN_CONTEXT, CallName::ANY, CREATES},
    {"ibv_close_device", OP_DESTROY, Object::CONTEXT},
    {"ibv_query_device", OP_QUERY_DEVICE},
    {"ibv_query_port", OP_QUERY_PORT},
    {"ibv_query_gid", OP_QUERY_GID},
    {"ibv_alloc_pd", OP_ALLOC_PD, CallName::ANY, CREATES},
    {"ibv_dealloc_pd", OP_DESTROY, Object::PD},
    {"ibv_reg_mr", OP_REG_MR, CallName::ANY, CREATES, TRACED},
    {"ibv_rereg_mr", OP_REREG_MR, CallName::ANY, false, TRACED},
    {"ibv_advise_mr", OP_ADVISE_MR},
    {"ibv_dereg_mr", OP_DESTROY, Object::MR},
    {"ibv_alloc_mw", OP_ALLOC_MW, CallName::ANY, CREATES},
    {"ibv_dealloc_mw", OP_DESTROY, Object::MW},
    {"ibv_create_comp_channel", OP_CREATE_CHANNEL, CallName::ANY, CREATES},
    {"ibv_destroy_comp_channel", OP_DESTROY, Object::CHANNEL},
    {"ibv_create_cq", OP_CREATE_CQ, CallName::ANY, CREATES, TRACED},
    {"ibv_resize_cq", OP_RESIZE_CQ, CallName::ANY, CREATES},
    {"ibv_destroy_cq", OP_DESTROY, Object::CQ},
    {"ibv_req_notify_cq", OP_REQ_NOTIFY, CallName::ANY, false, TRACED},
    {"ibv_get_cq_event", OP_TAKE_EVENT, Channel::COMPLETIONS, false, TRACED},
    {"ibv_get_async_event", OP_TAKE_EVENT, Channel::ASYNC, false, TRACED},
    {"ibv_create_srq", OP_CREATE_SRQ, CallName::ANY, CREATES},
    {"ibv_modify_srq", OP_MODIFY_SRQ},
    {"ibv_query_srq", OP_QUERY_SRQ},
    {"ibv_destroy_srq", OP_DESTROY, Object::SRQ},
    {"ibv_create_qp", OP_CREATE_QP, CallName::ANY, CREATES, TRACED},
    {"ibv_modify_qp", OP_MODIFY_QP},
    {"ibv_query_qp", OP_QUERY_QP},
    {"ibv_destroy_qp", OP_DESTROY, Object::QP},
    {"ibv_attach_mcast", OP_MULTICAST, 1},
    {"ibv_detach_mcast", OP_MULTICAST, 0},
    {"ibv_create_ah", OP_CREATE_AH, CallName::ANY, CREATES},
    {"ibv_destroy_ah", OP_DESTROY, Object::AH},
    {"ibv_post_send", OP_POST_SEND, 0, false, TRACED},
    {"ibv_wr_complete", OP_POST_SEND, 1, false, TRACED},
    {"ibv_post_recv", OP_POST_RECV, Object::QP, false, TRACED},
    {"ibv_post_srq_recv", OP_POST_RECV, Object::SRQ, false, TRACED},
    {"rdma_create_event_channel", OP_CM_CREATE_CHANNEL, CallName::ANY, CREATES},
    {"rdma_destroy_event_channel", OP_CM_DESTROY_CHANNEL},
    {"rdma_create_id", OP_CM_CREATE, CallName::ANY, CREATES},
    {"rdma_destroy_id", OP_CM_DESTROY, CallName::ANY, false, TRACED},
    {"rdma_migrate_id", OP_CM_MIGRATE},
    {"rdma_set_option", OP_CM_SET_OPTION},
    {"rdma_bind_addr", OP_CM_BIND, CallName::ANY, false, TRACED},
    {"rdma_resolve_addr", OP_CM_RESOLVE_ADDR, CallName::ANY, false, TRACED},
    {"rdma_resolve_route", OP_CM_RESOLVE_ROUTE, CallName::ANY, false, TRACED},
    {"rdma_listen", OP_CM_LISTEN, CallName::ANY, false, TRACED},
    {"rdma_connect", OP_CM_CONNECT, CallName::ANY, false, TRACED},
    {"rdma_accept", OP_CM_ACCEPT, 1, false, TRACED},
    {"rdma_establish", OP_CM_ACCEPT, 0, false, TRACED},
    {"rdma_reject", OP_CM_REJECT, CallName::ANY, false, TRACED},
    {"rdma_notify", OP_CM_NOTIFY},
    {"rdma_disconnect", OP_CM_DISCONNECT, CallName::ANY, false, TRACED},
    {"rdma_get_cm_event", OP_TAKE_EVENT, Channel::CONNECTIONS, false, TRACED},
    {"rdma_join_multicast", OP_CM_JOIN, CallName::ANY, CREATES},
    {"rdma_leave_multicast", OP_CM_LEAVE},
};

template <class T> bool read(std::span<const std::byte> bytes, T &value) {
    if (bytes.size() < sizeof(value))
        return false;
    memcpy(&value, bytes.data(), sizeof(value));
    return true;
}

const Object *object_of(const Fabric &fabric, uint32_t handle) {
    const auto found = fabric.objects().find(handle);
    return found == fabric.objects().end() ? nullptr : found->second.get();
}

int variant_of(const Fabric &fabric, uint32_t op, std::span<const std::byte> request) {
    Destroy destroy;
    TakeEvent take;
    PostSend send;
    PostRecv receive;
    Multicast multicast;
    CmAccept accept;
    const Object *object = nullptr;
    if (op == OP_DESTROY && read(request, destroy))
        object = object_of(fabric, destroy.handle);
    else if (op == OP_POST_RECV && read(request, receive))
        object = object_of(fabric, receive.queue);
    else if (op == OP_TAKE_EVENT && read(request, take))
        object = object_of(fabric, take.channel);
    else if (op == OP_POST_SEND && read(request, send))
        return send.is_built != 0;
    else if (op == OP_MULTICAST && read(request, multicast))
        return multicast.attaches != 0;
    else if (op == OP_CM_ACCEPT && read(request, accept))
        return accept.param.valid != 0;
    if (op == OP_TAKE_EVENT && object && object->kind == Object::CHANNEL)
        return static_cast<const Channel *>(object)->purpose;
    return object ? object->kind : CallName::ANY;
}

} // namespace

std::span<const CallName> call_names() {
    return CALLS;
}

const CallName *find_call(std::string_view name) {
    const auto found = std::ranges::find(
        CALLS, name, [](const CallName &each) { return std::string_view(each.name); });
    return found == std::end(CALLS) ? nullptr : found;
}

const CallName *name_of_call(const Fabric &fabric, std::span<const std::byte> request) {
    uint32_t op;
    if (!read(request, op))
        return nullptr;
    const int variant = variant_of(fabric, op, request);
    for (const CallName &each : CALLS)
        if (each.op == op && (each.variant == CallName::ANY || each.variant == variant))
            return &each;
    return nullptr;
}

} // namespace sim
