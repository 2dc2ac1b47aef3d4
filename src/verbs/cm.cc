// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.cc -- calls of librdmacm on CM IDs, and queue pairs

#include "verbs/cm.hh"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/error_text.hh"
#include "verbs/causes.hh"
#include "verbs/objects.hh"

namespace rpma {

void CmId::report_no_id(Call &call, int error, bool has_channel) {
    RPMA_FAIL_ADVISING(
        call, RPMA_E_PROVIDER, error,
        advice_for({.step = has_channel ? ID : ID_WITHOUT_CHANNEL, .error = error}).chars,
        "rdma_create_id(ps=RDMA_PS_TCP)");
}

void CmId::report_failure(Call &call, int error, const char *function) {
    RPMA_FAIL(call, RPMA_E_PROVIDER, error, "%s()", function);
}

void CmId::report_failure(Call &call, int error, Step step, const char *function,
                          uint8_t data_len) const {
    Failure failed = failure(step, error);
    failed.data = data_len;
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error, advice_for(failed).chars,
                       "%s(private_data_len=%u)", function, data_len);
}

void CmId::destroy() {
    if (is_pending_)
        rdma_reject(id_, nullptr, 0);
    rdma_destroy_id(id_);
}

bool CmId::bind(Call &call, sockaddr *address) {
    if (rdma_bind_addr(id_, address) == 0)
        return true;
    Failure failed = failure(BIND, errno);
    failed.source = address;
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, failed.error, advice_for(failed).chars,
                       "rdma_bind_addr(addr=%s)", address_text(address).chars);
    return false;
}

bool CmId::listen(Call &call, uint32_t backlog) {
    if (rdma_listen(id_, static_cast<int>(backlog)) == 0)
        return true;
    Failure failed = failure(BIND, errno);
    const sockaddr *address = failed.source = rdma_get_local_addr(id_);
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, failed.error, advice_for(failed).chars,
                       "rdma_listen(addr=%s, backlog=%u)", address_text(address).chars,
                       backlog);
    return false;
}

bool CmId::skip_addr_changes() {
    do {
        rdma_ack_cm_event(id_->event);
        id_->event = nullptr;
        if (rdma_get_cm_event(id_->channel, &id_->event) != 0)
            return false;
        const int status = id_->event->status;
        errno = status < 0 ? -status : status;
        if (status != 0)
            return false;
    } while (id_->event->event == RDMA_CM_EVENT_ADDR_CHANGE);
    return true;
}

void CmId::report_addr_failure(Call &call, int error, const sockaddr *source,
                               const sockaddr *destination, int timeout_ms) const {
    Failure failed = failure(ADDRESS, error);
    failed.source = source;
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error, advice_for(failed).chars,
                       "rdma_resolve_addr(src_addr=%s, dst_addr=%s, timeout_ms=%d)",
                       address_text(source).chars, address_text(destination).chars, timeout_ms);
}

void CmId::report_route_failure(Call &call, int error, int timeout_ms) const {
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error, advice_for(failure(ROUTE, error)).chars,
                       "rdma_resolve_route(dst_addr=%s, timeout_ms=%d)",
                       address_text(rdma_get_peer_addr(id_)).chars, timeout_ms);
}

namespace {

// The smallest exponent for which 4.096 us * 2^exponent is at least timeout_ms, which is
// positive.
uint8_t ack_timeout_exponent(int timeout_ms) {
    constexpr uint64_t UNIT_NS = 4096;
    const uint64_t units =
        (static_cast<uint64_t>(timeout_ms) * 1000000 + UNIT_NS - 1) / UNIT_NS;
    return static_cast<uint8_t>(std::bit_width(units - 1));
}

} // namespace

bool CmId::set_ack_timeout(Call &call, int timeout_ms) {
    uint8_t exponent = ack_timeout_exponent(timeout_ms);
    if (rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &exponent,
                        sizeof(exponent)) == 0)
        return true;
    RPMA_FAIL(call, RPMA_E_PROVIDER, errno,
              "rdma_set_option(RDMA_OPTION_ID_ACK_TIMEOUT, %u for %d ms)", exponent,
              timeout_ms);
    return false;
}

namespace {

// The times of InfiniBand in units of 10 us, by code; the code 0 is the longest time.
constexpr uint32_t RNR_TIMES[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                    16,    24,   32,   48,    64,    96,    128,   192,
                                    256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                    4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

// The code of the shortest time that is at least timeout_ms.
uint8_t rnr_timer_code(int timeout_ms) {
    const auto *found = std::lower_bound(RNR_TIMES + 1, std::end(RNR_TIMES),
                                         static_cast<uint32_t>(timeout_ms) * 100);
    return found != std::end(RNR_TIMES) ? static_cast<uint8_t>(found - RNR_TIMES) : 0;
}

} // namespace

// The connection manager leaves the code 0, and has no option for it (Linux,
// drivers/infiniband/core: cm.c, cm_init_qp_rtr_attr(); ucma.c, ucma_set_option_id()). The
// state is in the mask because irdma applies the code only with it (hw/irdma/verbs.c,
// irdma_modify_qp_roce()). iWARP has no such timer.
void CmId::set_rnr_timer(const Call &call, int timeout_ms) {
    if (id_->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
        return;
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.min_rnr_timer = rnr_timer_code(timeout_ms);
    const int error = ibv_modify_qp(id_->qp, &attributes, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
    if (error != 0)
        RPMA_LOG(
            RPMA_LOG_LEVEL_WARNING, call.function(),
            "ibv_modify_qp(min_rnr_timer=%u for %d ms) failed: %s; the other side waits 655 "
            "ms before it retries a message without a receive",
            attributes.min_rnr_timer, timeout_ms, ErrorText(error).chars);
}

bool CmId::set_tos(Call &call, uint8_t tos) {
    if (rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)) == 0)
        return true;
    RPMA_FAIL(call, RPMA_E_PROVIDER, errno, "rdma_set_option(RDMA_OPTION_ID_TOS, 0x%x)", tos);
    return false;
}

bool CmId::set_ipv6_only(Call &call) {
    int value = 1;
    if (rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, sizeof(value)) == 0)
        return true;
    RPMA_FAIL(call, RPMA_E_PROVIDER, errno, "rdma_set_option(RDMA_OPTION_ID_AFONLY, 1)");
    return false;
}

void CmId::reject(Call &call, const void *data, uint8_t len) {
    if (rdma_reject(id_, data, len) == 0) {
        is_pending_ = false;
        return;
    }
    const int error = errno;
    const bool is_too_long = error == EINVAL && len > 0;
    is_pending_ = is_too_long; // the release of the ID rejects without the data
    report_failure(call, error, REJECT, "rdma_reject", len);
}

// On iWARP, librdmacm moves the queue pair to SQD (rdma-core 56, librdmacm/cma.c,
// ucma_shutdown()), and drivers return EINVAL after the end of the TCP connection and before
// its beginning: Linux 6.1, drivers/infiniband/hw, c4iw_modify_qp() of cxgb4/qp.c,
// irdma_modify_qp() of irdma/verbs.c, qedr_update_qp_state() of qedr/verbs.c. On InfiniBand and
// RoCE the call succeeds in every state (core/cma.c, rdma_disconnect()).
void CmId::disconnect(Call &call, bool was_connected) {
    if (rdma_disconnect(id_) == 0)
        return;
    const int error = errno;
    if (error != EINVAL || !was_connected) {
        RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error,
                           advice_for(failure(DISCONNECT, error)).chars, "rdma_disconnect()");
        return;
    }
    RPMA_LOG(RPMA_LOG_LEVEL_DEBUG, call.function(),
             "rdma_disconnect() failed: %s (%d); the connection has ended already",
             ErrorText(error).chars, error);
    call.restore_errno();
}

void CmId::reject_pending(Call &call) {
    if (rdma_reject(id_, nullptr, 0) == 0)
        return;
    const int error = errno;
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error, advice_for(failure(REJECT, error)).chars,
                       "rdma_reject()");
}

bool CmId::try_release(Call &call) {
    if (rdma_destroy_id(id_) != 0) {
        report_failure(call, errno, "rdma_destroy_id");
        return false;
    }
    id_ = nullptr;
    return true;
}

void report_no_qp(Call &call, int error, const CmId &id, const ibv_context *device,
                  const ibv_qp_cap &requested, uint32_t max_wr, uint32_t objects) {
    Failure failed = id.failure(QP, error);
    failed.device = device;
    failed.id_device = id->verbs;
    failed.objects = objects;
    failed.sizes[0] = {"max_send_wr", "max_qp_wr", requested.max_send_wr, max_wr,
                       "rpma_conn_cfg_set_sq_size"};
    failed.sizes[1] = {"max_recv_wr", "max_qp_wr", requested.max_recv_wr, max_wr,
                       "rpma_conn_cfg_set_rq_size"};
    failed.inline_size = requested.max_inline_data;
    RPMA_FAIL_ADVISING(
        call, RPMA_E_PROVIDER, error, advice_for(failed).chars,
        "rdma_create_qp_ex(max_send_wr=%u, max_recv_wr=%u, max_send_sge=%u, max_recv_sge=%u, "
        "max_inline_data=%u, qp_type=IBV_QPT_RC, sq_sig_all=0)",
        requested.max_send_wr, requested.max_recv_wr, requested.max_send_sge,
        requested.max_recv_sge, requested.max_inline_data);
}

} // namespace rpma
