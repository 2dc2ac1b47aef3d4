// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn.cc -- connects, and reads the events of a connection

#include "core/conn.hh"

#include <algorithm>

#include "base/probes.hh"
#include "core/peer.hh"
#include "verbs/text.hh"
#include "verbs/tuned.hh"

using namespace rpma;

bool rpma_conn::use_own_channel(Call &call, bool nonblocking) {
    EventChannel channel = create_event_channel(call);
    if (!channel)
        return false;
    if (nonblocking)
        make_nonblocking(*channel.get());
    if (id_ && !id_.migrate(call, channel))
        return false;
    events_ = std::move(channel);
    return true;
}

// Registers the destination of the reads of emulated flushes, unless all flushes are native.
inline bool rpma_conn::prepare_flushes(Call &call) {
    // Native flushes may change to reads: the other side may advertise its capabilities later.
    if (!flush.can_read())
        return true;
    const rpma_mr_local *mr = peer.flush_target().acquire(call, peer);
    if (mr == nullptr)
        return false;
    flush_target_.reset(&peer.flush_target());
    flush_read = {mr->addr, FLUSH_READ_SIZE, mr->lkey};
    return true;
}

// Requests the largest values that the device and the other side support.
inline rdma_conn_param rpma_conn::parameters(const rpma_conn_private_data *pdata) const {
    rdma_conn_param param = {};
    if (pdata != nullptr) {
        param.private_data = pdata->ptr;
        param.private_data_len = pdata->len;
    }
    param.responder_resources = RDMA_MAX_RESP_RES;
    param.initiator_depth = RDMA_MAX_INIT_DEPTH;
    param.flow_control = 1;
    param.retry_count = retry_count_;
    param.rnr_retry_count = rnr_retry_count_;
    return param;
}

bool rpma_conn::connect(Call &call, const rpma_conn_private_data *pdata) {
    if ((!events_ && !use_own_channel(call, false)) || !prepare_flushes(call))
        return false;
    // Nothing may fail after the last step: the connection is established for the other side.
    entry_.add(qp, this);
    rdma_conn_param param = parameters(pdata);
    const bool is_incoming = id_.is_pending();
    if (!(is_incoming ? id_.accept(call, param) : id_.connect(call, param)))
        return false;
    if (is_incoming)
        set_rnr_timer(call);
    probe::conn_start(this, qp->qp_num, rdma_get_peer_addr(id_.get()), is_incoming);
    if (resolution_) [[unlikely]]
        end_resolution();
    return true;
}

namespace {

struct ReportedEvent {
    rpma_conn_event event;
    rpma_log_level level;
};

// Returns RPMA_CONN_UNDEFINED for an unexpected event.
ReportedEvent to_reported_event(rdma_cm_event_type type) {
    switch (type) {
    case RDMA_CM_EVENT_ESTABLISHED:
        return {RPMA_CONN_ESTABLISHED, RPMA_LOG_LEVEL_NOTICE};
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        return {RPMA_CONN_CLOSED, RPMA_LOG_LEVEL_NOTICE};
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        return {RPMA_CONN_LOST, RPMA_LOG_LEVEL_WARNING};
    case RDMA_CM_EVENT_REJECTED:
        return {RPMA_CONN_REJECTED, RPMA_LOG_LEVEL_WARNING};
    case RDMA_CM_EVENT_UNREACHABLE:
        return {RPMA_CONN_UNREACHABLE, RPMA_LOG_LEVEL_WARNING};
    default:
        return {RPMA_CONN_UNDEFINED, RPMA_LOG_LEVEL_WARNING};
    }
}

// Returns true if the event carries private data of a program. On InfiniBand and RoCE, a
// rejection without private data carries zeros.
bool has_private_data(const rdma_cm_event &event) {
    const rdma_conn_param &param = event.param.conn;
    const auto *bytes = static_cast<const char *>(param.private_data);
    return event.event == RDMA_CM_EVENT_ESTABLISHED ||
           (event.event == RDMA_CM_EVENT_REJECTED && bytes != nullptr &&
            std::any_of(bytes, bytes + param.private_data_len,
                        [](char byte) { return byte != 0; }));
}

} // namespace

rpma_conn_event rpma_conn::next_event(Call &call) {
    CmEvent event = rpma::next_event(call, *events_.get());
    if (!event)
        return RPMA_CONN_UNDEFINED;
    const rdma_cm_event_type type = event->event;
    if (type == RDMA_CM_EVENT_ADDR_CHANGE) {
        skip_addr_change(call, std::move(event));
        return RPMA_CONN_UNDEFINED;
    }
    const int status = event->status;
    PrivateData private_data;
    const rdma_conn_param &param = event->param.conn;
    const bool stores_data = private_data_.empty() && has_private_data(*event.get());
    // The event was taken from the channel and cannot be read again: it is reported even if its
    // private data cannot be copied.
    if (stores_data && !private_data.copy(param.private_data, param.private_data_len))
        RPMA_LOG(
            RPMA_LOG_LEVEL_WARNING, call.function(),
            "out of memory: the connection is %s without the %u bytes of private data of the "
            "other side",
            type == RDMA_CM_EVENT_ESTABLISHED ? "established" : "rejected",
            param.private_data_len);
    event.release(call);
    if (call.has_failed())
        return RPMA_CONN_UNDEFINED;
    if (stores_data)
        private_data_ = std::move(private_data);

    if (type == RDMA_CM_EVENT_ESTABLISHED)
        set_rnr_timer(call);
    const bool was_established = is_established_;
    is_established_ = was_established || type == RDMA_CM_EVENT_ESTABLISHED;
    const ReportedEvent reported = to_reported_event(type);
    if (reported.event != RPMA_CONN_UNDEFINED && reported.event != RPMA_CONN_ESTABLISHED)
        has_ended_ = true;
    probe::conn_event(this, qp->qp_num, reported.event, type, status);
    if (reported.event == RPMA_CONN_UNDEFINED)
        RPMA_FAIL(call, RPMA_E_UNKNOWN, 0, "unexpected event on a connection: %s%s",
                  rdma_event_str(type),
                  status_text(type, status, id_.get(), was_established).chars);
    else
        RPMA_LOG(reported.level, call.function(), "%s (%s)%s", event_text(reported.event),
                 rdma_event_str(type),
                 status_text(type, status, id_.get(), was_established).chars);
    return reported.event;
}

bool rpma_conn::is_shared(Call &call) const {
    if (!shared_)
        RPMA_WOULD_BLOCK(call, RPMA_E_NOT_SHARED_CHNL, 0,
                         "the completion channel is not shared: each CQ has its own");
    return static_cast<bool>(shared_);
}

int rpma_conn::shared_fd(Call &call) const {
    return is_shared(call) ? shared_->fd : -1;
}

int rpma_conn::refuse_wait(const char *function) const {
    Call call(function);
    is_shared(call);
    return call.finish();
}

RPMA_POST int rpma_conn::wait(const char *function, rpma_cq **ready_cq) {
    if (!shared_) [[unlikely]]
        return refuse_wait(function);
    ibv_cq *queue;
    if (!next_cq_event(*shared_.get(), queue)) [[unlikely]]
        return report_no_cq_event(function, errno);
    rpma_cq *event_cq = cq()->owns(queue) ? cq() : rcq();
    if (event_cq == nullptr || !event_cq->owns(queue)) [[unlikely]]
        return report_unexpected_cq_event(function, *queue, "the connection's");
    const int code = event_cq->count_event_and_arm(function);
    if (code == 0) [[likely]]
        *ready_cq = event_cq;
    return code;
}

const char *rpma::event_text(rpma_conn_event event) {
    switch (event) {
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
