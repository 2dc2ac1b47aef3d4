// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// utils.cc -- exports: devices and texts

#include "base/refuse.hh"
#include "base/visible.hh"
#include "core/conn.hh"
#include "core/peer.hh"
#include "error_codes.h"
#include "verbs/address.hh"
#include "verbs/causes.hh"

using namespace rpma;

namespace {

ibv_context *device_of(Call &call, const CmId &id, const char *addr) {
    if (id->verbs == nullptr)
        RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, 0,
                           advice_for({.step = DEVICE, .error = ENODEV}).chars,
                           "no RDMA device has the address %s", Visible(addr).chars);
    return id->verbs;
}

ibv_context *find_device(Call &call, const char *addr, Side side) {
    AddressList addresses = resolve_name(call, addr, nullptr, side);
    if (!addresses)
        return nullptr;
    if (side == Side::LOCAL)
        return try_each_address(call, addresses, [&](const addrinfo &address) -> ibv_context * {
            CmId id = CmId::create(call, nullptr, LOOKUP);
            if (!id || !id.bind(call, address.ai_addr))
                return nullptr;
            return device_of(call, id, addr);
        });
    Source any_source = {};
    return try_each_route(
        call, addresses, any_source, addr, nullptr,
        [&](sockaddr *source, sockaddr *destination) -> ibv_context * {
            CmId id = CmId::create(call, nullptr, LOOKUP);
            if (!id || !id.resolve_addr(call, source, destination, RPMA_DEFAULT_TIMEOUT_MS))
                return nullptr;
            return device_of(call, id, addr);
        });
}

} // namespace

int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context **ibv_ctx_ptr) {
    RPMA_REFUSE(addr == NULL);
    RPMA_REFUSE(ibv_ctx_ptr == NULL);
    RPMA_REFUSE_VALUE(
        __func__, type != RPMA_UTIL_IBV_CONTEXT_LOCAL && type != RPMA_UTIL_IBV_CONTEXT_REMOTE,
        type, "RPMA_UTIL_IBV_CONTEXT_LOCAL, RPMA_UTIL_IBV_CONTEXT_REMOTE");
    Call call(__func__);
    const Side side = type == RPMA_UTIL_IBV_CONTEXT_LOCAL ? Side::LOCAL : Side::REMOTE;
    return call.deliver(find_device(call, addr, side), ibv_ctx_ptr);
}

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable) {
    RPMA_REFUSE(ibv_ctx == NULL);
    RPMA_REFUSE(is_odp_capable == NULL);
    Call call(__func__);
    ibv_device_attr_ex attributes;
    if (!query_device(call, *ibv_ctx, attributes))
        return call.finish();
    *is_odp_capable = rpma::is_odp_capable(attributes) ? 1 : 0;
    return 0;
}

const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event) {
    return event_text(conn_event);
}

uint32_t rpma_version(void) {
    return RPMA_VERSION;
}

const char *rpma_err_last_failure(int *provider_error) {
    if (provider_error != NULL)
        *provider_error = last_failure.error;
    return last_failure.has_message ? last_message : "";
}

const char *rpma_err_2str(int ret) {
    switch (ret) {
    case 0:
        return "Success";
#define RPMA_TEXT(code, text, is_failure) \
    case code:                            \
        return text;
        RPMA_ERROR_CODES(RPMA_TEXT)
#undef RPMA_TEXT
    default:
        return "Unknown error";
    }
}
