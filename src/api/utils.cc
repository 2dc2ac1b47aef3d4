// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// utils.cc -- exports: devices and texts

#include "api/export.hh"
#include "core/peer.hh"
#include "verbs/address.hh"

namespace {

rpma::Result<ibv_context *> device_of(const rpma::verbs::CmId &id) {
    if (id->verbs == nullptr)
        return rpma::fail({RPMA_E_PROVIDER, "no device stands behind the address"});
    return id->verbs;
}

// Binding or resolving an address makes librdmacm choose a device.
rpma::Result<ibv_context *> local_device(const addrinfo &name) {
    auto id = rpma::verbs::CmId::create(nullptr);
    if (!id)
        return rpma::fail(id.error());
    if (rdma_bind_addr(id->get(), name.ai_addr) != 0)
        return rpma::verbs::failed("rdma_bind_addr()");
    return device_of(*id);
}

rpma::Result<ibv_context *> remote_device(sockaddr *source, sockaddr *destination) {
    auto id = rpma::verbs::CmId::create(nullptr);
    if (!id)
        return rpma::fail(id.error());
    if (rdma_resolve_addr(id->get(), source, destination, RPMA_DEFAULT_TIMEOUT_MS) != 0)
        return rpma::verbs::failed("rdma_resolve_addr()");
    return device_of(*id);
}

rpma::Result<ibv_context *> find_device(const char *addr, rpma::verbs::Side side) {
    auto names = rpma::verbs::resolve_name(addr, nullptr, side);
    if (!names)
        return rpma::fail(names.error());
    return side == rpma::verbs::Side::LOCAL ? try_each(*names, local_device)
                                            : try_each_route(*names, remote_device);
}

} // namespace

int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context **ibv_ctx_ptr) {
    RPMA_REFUSE(addr == NULL);
    RPMA_REFUSE(ibv_ctx_ptr == NULL);
    RPMA_REFUSE(type != RPMA_UTIL_IBV_CONTEXT_LOCAL && type != RPMA_UTIL_IBV_CONTEXT_REMOTE);
    const auto side = type == RPMA_UTIL_IBV_CONTEXT_LOCAL ? rpma::verbs::Side::LOCAL
                                                          : rpma::verbs::Side::REMOTE;
    return rpma::api::deliver(__func__, find_device(addr, side), ibv_ctx_ptr);
}

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable) {
    RPMA_REFUSE(ibv_ctx == NULL);
    RPMA_REFUSE(is_odp_capable == NULL);
    auto attributes = rpma::verbs::query_device(*ibv_ctx);
    if (!attributes)
        return rpma::api::report(__func__, attributes.error());
    *is_odp_capable = rpma_is_odp_capable(*attributes) ? 1 : 0;
    return 0;
}

const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event) {
    switch (conn_event) {
    case RPMA_CONN_UNDEFINED:
        return "Undefined connection event";
    case RPMA_CONN_ESTABLISHED:
        return "Connection established";
    case RPMA_CONN_CLOSED:
        return "Connection closed";
    case RPMA_CONN_LOST:
        return "Connection lost";
    case RPMA_CONN_REJECTED:
        return "Connection rejected";
    case RPMA_CONN_UNREACHABLE:
        return "Connection unreachable";
    }
    return "Unsupported connection event";
}

const char *rpma_err_2str(int ret) {
    switch (ret) {
    case 0:
        return "Success";
    case RPMA_E_NOSUPP:
        return "Not supported";
    case RPMA_E_PROVIDER:
        return "Provider error occurred";
    case RPMA_E_NOMEM:
        return "Out of memory";
    case RPMA_E_INVAL:
        return "Invalid argument";
    case RPMA_E_NO_COMPLETION:
        return "No next completion available";
    case RPMA_E_NO_EVENT:
        return "No next event available";
    case RPMA_E_AGAIN:
        return "Temporary error, try again";
    case RPMA_E_SHARED_CHANNEL:
        return "Completion channel is shared";
    case RPMA_E_NOT_SHARED_CHNL:
        return "Completion channel is not shared";
    default:
        return "Unknown error";
    }
}
