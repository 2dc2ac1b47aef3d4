// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.cc -- completion queues and their events

#include "core/cq.hh"

#include <algorithm>
#include <climits>

namespace {

// An acknowledgement takes a lock, so it is given for many events at once.
constexpr unsigned ACKNOWLEDGE_AT = 64;

} // namespace

rpma::Result<rpma_cq> rpma_cq::create(ibv_context &device, uint32_t size,
                                      ibv_comp_channel *shared) {
    rpma::verbs::CompChannel own;
    if (shared == nullptr) {
        auto created = rpma::verbs::create_comp_channel(device);
        if (!created)
            return rpma::fail(created.error());
        own = std::move(*created);
    }
    ibv_comp_channel *channel = shared != nullptr ? shared : own.get();

    const int entries = static_cast<int>(std::min<uint32_t>(size, INT_MAX));
    ibv_cq *queue = ibv_create_cq(&device, entries, nullptr, channel, 0);
    if (queue == nullptr)
        return rpma::verbs::failed("ibv_create_cq()");
    rpma_cq cq(std::move(own), channel, queue);

    auto armed = rpma::verbs::check("ibv_req_notify_cq()", ibv_req_notify_cq(queue, 0));
    if (!armed)
        return rpma::fail(armed.error());
    return cq;
}

rpma::Status rpma_cq::wait() {
    auto queue = rpma::next_cq_event(*channel_);
    return queue ? take_event() : rpma::fail(queue.error());
}

rpma::Status rpma_cq::take_event() {
    if (unacknowledged_.fetch_add(1) + 1 >= ACKNOWLEDGE_AT)
        acknowledge_all();
    return rpma::verbs::check("ibv_req_notify_cq()", ibv_req_notify_cq(queue_.get(), 0));
}

void rpma_cq::acknowledge_all() {
    const unsigned events = unacknowledged_.exchange(0);
    if (events > 0)
        ibv_ack_cq_events(queue_.get(), events);
}

rpma::Status rpma_cq::close() {
    // The destruction of a queue waits until each of its events is acknowledged.
    if (queue_)
        acknowledge_all();
    rpma::FirstFailure first;
    first.note(queue_.close());
    first.note(own_channel_.close());
    return first.status();
}

rpma::Status rpma_cq::try_close() {
    if (queue_)
        acknowledge_all();
    rpma::Status status = queue_.try_close();
    return status ? own_channel_.try_close() : status;
}

rpma::Result<ibv_cq *> rpma::next_cq_event(ibv_comp_channel &channel) {
    ibv_cq *queue = nullptr;
    void *context = nullptr;
    if (ibv_get_cq_event(&channel, &queue, &context) == 0)
        return queue;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return fail({RPMA_E_NO_COMPLETION, "ibv_get_cq_event()", errno});
    return verbs::failed("ibv_get_cq_event()");
}

rpma::Failure rpma::poll_failure(int got) {
    if (got == 0)
        return {RPMA_E_NO_COMPLETION, "the completion queue is empty"};
    if (got < 0)
        return {RPMA_E_PROVIDER, "ibv_poll_cq()", 0, "failed, the provider gives no reason"};
    return {RPMA_E_UNKNOWN, "ibv_poll_cq()", 0, "more completions than wanted"};
}
